#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs as people write them, of any length, the same for the same numbers.

    bench/ordinary.py [--lines N] [--seed N] > program.rly
    bench/ordinary.py [--lines N] [--seed N] --ocaml > program.ml

The program is a sequence of small parts of fifteen kinds, drawn with weights: scalar functions,
integer recursion, helpers without annotations, data types with their functions, polymorphic trees,
records, networks with their losses and gradient steps, convolution blocks, normalisation and
attention over known shapes, list pipelines, optional values, text, references, settings, with
comments and blank lines. Bodies are random expressions over what is in scope and over functions
defined before, so no two parts are alike. With `--ocaml` the same parts in OCaml, where a tensor has
no shape: what its checker does for the same program less the shapes. Nothing is meant to be run.
"""
import argparse
import random

OCAML_START = """type tensor = float array
external ( +: ) : tensor -> tensor -> tensor = "add"
external ( -: ) : tensor -> tensor -> tensor = "subtract"
external ( *: ) : tensor -> tensor -> tensor = "multiply"
external ( /: ) : tensor -> tensor -> tensor = "divide"
external ( @@: ) : tensor -> tensor -> tensor = "matmul"
external scale : float -> tensor -> tensor = "scale"
external shift : tensor -> float -> tensor = "shift"
external dense : tensor -> tensor -> tensor = "dense"
external relu : tensor -> tensor = "relu"
external tanh_t : tensor -> tensor = "tanh_t"
external sqrt_t : tensor -> tensor = "sqrt_t"
external softmax : tensor -> tensor = "softmax"
external transpose : tensor -> tensor = "transpose"
external mean : axis:int list -> tensor -> tensor = "mean"
external total : tensor -> float = "total"
external conv2d : padding:int list -> strides:int list -> tensor -> tensor -> tensor = "conv2d"
external bias_add : axis:int -> tensor -> tensor -> tensor = "bias_add"
external max_pool2d : pool_size:int list -> strides:int list -> tensor -> tensor = "max_pool2d"
external batch_flatten : tensor -> tensor = "batch_flatten"
external grad : ('a -> float) -> 'a -> float * 'a = "grad"
let rec range n = if n = 0 then [] else (n - 1) :: range (n - 1)
""".splitlines()

WORDS = """alpha area bias blend bound carry chain clamp cost decay depth drift edge energy factor fit
flow gain gap gauge grade heat index joint kernel lag level limit margin mass mix noise offset pace
pulse quota rank rate ratio risk scale score shade share shift skew slope span speed spread step
stress tail tension tilt trend trim value wave weight width yield_""".split()


def tensor(*shape):
    dims = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    return f"Tensor[({dims}), float32]"


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.relay, self.ocaml = [], list(OCAML_START)
        self.number = 0
        self.floats = []  # (name, arity): functions of float32
        self.ints = []    # (name, arity): functions of int32

    # ---- parts of parts ----

    def emit(self, relay, ocaml):
        self.relay += relay.strip("\n").split("\n")
        self.ocaml += ocaml.strip("\n").split("\n")

    def name(self, stem=None):
        self.number += 1
        return f"{stem or self.random.choice(WORDS)}_{self.number}"

    def pick(self, *choices):
        return self.random.choice(choices)

    def float_text(self):
        return f"{self.random.randrange(1, 400) / 100}"

    def float_expr(self, names, depth):
        """The same expression in both languages."""
        kind = self.random.random()
        if depth == 0 or kind < 0.12:
            if self.random.random() < 0.7:
                return (self.random.choice(names),) * 2
            return (self.float_text(),) * 2
        if kind < 0.62:
            op = self.pick("+", "-", "*", "/")
            a, b = self.float_expr(names, depth - 1), self.float_expr(names, depth - 1)
            return f"({a[0]} {op} {b[0]})", f"({a[1]} {op}. {b[1]})"
        if kind < 0.8 or not self.floats:
            f = self.pick("exp", "sin", "cos", "tanh", "sqrt", "log")
            a = self.float_expr(names, depth - 1)
            return f"{f}({a[0]})", f"({f} {a[1]})"
        f, arity = self.random.choice(self.floats[-40:])
        args = [self.float_expr(names, depth - 1) for _ in range(arity)]
        return f"{f}({', '.join(a[0] for a in args)})", f"({f} {' '.join(f'({a[1]})' for a in args)})"

    def int_expr(self, names, depth):
        kind = self.random.random()
        if depth == 0 or kind < 0.2:
            return (self.random.choice(names),) * 2 if self.random.random() < 0.7 else \
                (str(self.random.randrange(1, 100)),) * 2
        if kind < 0.85 or not self.ints:
            op = self.pick("+", "-", "*")
            a, b = self.int_expr(names, depth - 1), self.int_expr(names, depth - 1)
            return f"({a[0]} {op} {b[0]})", f"({a[1]} {op} {b[1]})"
        f, arity = self.random.choice(self.ints[-40:])
        args = [self.int_expr(names, depth - 1) for _ in range(arity)]
        return f"{f}({', '.join(a[0] for a in args)})", f"({f} {' '.join(f'({a[1]})' for a in args)})"

    def comment(self):
        text = f"{self.random.choice(WORDS)} and {self.random.choice(WORDS)}, " \
               f"{self.pick('as measured', 'see the notes', 'by hand', 'kept small', 'in order')}"
        self.emit(f"// The {text}.", f"(* The {text}. *)")

    # ---- the parts ----

    def scalar(self):
        f = self.name()
        names = self.random.sample(["x", "lo", "hi", "rate", "bias"], self.pick(2, 3))
        self.comment()
        params = ", ".join(f"{n}: float32" for n in names)
        relay, ocaml = [f"def {f}({params}) -> float32 {{"], \
            [f"let {f} {' '.join(f'({n} : float)' for n in names)} : float ="]
        scope = list(names)
        for local in self.random.sample(["u", "v", "w", "z"], self.pick(1, 2, 3)):
            r, o = self.float_expr(scope, 2)
            relay.append(f"  let {local} = {r};")
            ocaml.append(f"  let {local} = {o} in")
            scope.append(local)
        used = " + ".join(scope[len(names):])
        a, b = self.float_expr(scope, 2), self.float_expr(scope, 2)
        relay += [f"  if ({scope[-1]} < {names[0]}) {{ {a[0]} }} else {{ {b[0]} + {used} }}", "}"]
        ocaml += [f"  if {scope[-1]} < {names[0]} then {a[1]}",
                  f"  else {b[1]} +. {used.replace('+', '+.')}"]
        self.emit("\n".join(relay), "\n".join(ocaml))
        self.floats.append((f, len(names)))

    def recursion(self):
        f, step = self.name("count"), self.random.randrange(1, 5)
        e = self.int_expr(["n", "acc"], 2)
        self.emit(f"""
def {f}(n: int32, acc: int32) -> int32 {{
  if (n <= {step}) {{ acc }} else {{ {f}(n - {step}, {e[0]}) }}
}}""", f"""
let rec {f} n acc =
  if n <= {step} then acc else {f} (n - {step}) {e[1]}""")
        self.ints.append((f, 2))

    def helper(self):
        f, kind = self.name("help"), self.random.randrange(5)
        c = self.float_text()
        if kind == 0:
            self.emit(f"def {f}(f, x) {{ f(f(x)) }}", f"let {f} f x = f (f x)")
        elif kind == 1:
            self.emit(f"def {f}(f, p) {{ (f(p.0), f(p.1)) }}", f"let {f} f (a, b) = (f a, f b)")
        elif kind == 2:
            self.emit(f"def {f}(a, b) {{ a * {c} + b / (a + 1.0) }}",
                      f"let {f} a b = a *. {c} +. b /. (a +. 1.0)")
        elif kind == 3:
            self.emit(f"""
def {f}(f, g, xs) {{
  map(fn (x) {{ g(f(x)) }}, xs)
}}""", f"""
let {f} f g xs =
  List.map (fun x -> g (f x)) xs""")
        else:
            self.emit(f"""
def {f}(x) {{
  let scaled = x * {c};
  tanh(scaled) + scaled
}}""", f"""
let {f} x =
  let scaled = x *. {c} in
  tanh scaled +. scaled""")

    def shapes(self):
        n = self.name("v")[2:]
        s, a, b = self.float_expr(["r"], 2), self.float_expr(["w", "h"], 2), self.float_text()
        self.emit(f"""
// Shapes, and what they cover.
type Shape_{n} {{
  Disc_{n}(float32),
  Box_{n}(float32, float32),
  Moved_{n}(float32, Shape_{n}),
  Group_{n}(List[Shape_{n}])
}}

def cover_{n}(s: Shape_{n}) -> float32 {{
  match (s) {{
    Disc_{n}(r) => {s[0]} * r,
    Box_{n}(w, h) => {a[0]},
    Moved_{n}(by, inner) => cover_{n}(inner) + by * {b},
    Group_{n}(parts) => foldl(fn (acc, p) {{ acc + cover_{n}(p) }}, 0.0, parts)
  }}
}}

def grow_{n}(k: float32, s: Shape_{n}) -> Shape_{n} {{
  match (s) {{
    Disc_{n}(r) => Disc_{n}(k * r),
    Box_{n}(w, h) => Box_{n}(k * w, k * h),
    Moved_{n}(by, inner) => Moved_{n}(by, grow_{n}(k, inner)),
    Group_{n}(parts) => Group_{n}(map(fn (p) {{ grow_{n}(k, p) }}, parts))
  }}
}}""", f"""
(* Shapes, and what they cover. *)
type shape_{n} =
  | Disc_{n} of float
  | Box_{n} of float * float
  | Moved_{n} of float * shape_{n}
  | Group_{n} of shape_{n} list

let rec cover_{n} (s : shape_{n}) : float =
  match s with
  | Disc_{n} r -> {s[1]} *. r
  | Box_{n} (w, h) -> {a[1]}
  | Moved_{n} (by, inner) -> cover_{n} inner +. by *. {b}
  | Group_{n} parts -> List.fold_left (fun acc p -> acc +. cover_{n} p) 0.0 parts

let rec grow_{n} (k : float) (s : shape_{n}) : shape_{n} =
  match s with
  | Disc_{n} r -> Disc_{n} (k *. r)
  | Box_{n} (w, h) -> Box_{n} (k *. w, k *. h)
  | Moved_{n} (by, inner) -> Moved_{n} (by, grow_{n} k inner)
  | Group_{n} parts -> Group_{n} (List.map (fun p -> grow_{n} k p) parts)""")

    def tree(self):
        n = self.name("v")[2:]
        self.emit(f"""
type Tree_{n}[A] {{ Leaf_{n}, Fork_{n}(Tree_{n}[A], A, Tree_{n}[A]) }}

def insert_{n}[A](less: fn(A, A) -> bool, x: A, t: Tree_{n}[A]) -> Tree_{n}[A] {{
  match (t) {{
    Leaf_{n} => Fork_{n}(Leaf_{n}, x, Leaf_{n}),
    Fork_{n}(l, y, r) => if (less(x, y)) {{ Fork_{n}(insert_{n}(less, x, l), y, r) }}
      else {{ Fork_{n}(l, y, insert_{n}(less, x, r)) }}
  }}
}}

def fold_{n}(f, z, t) {{
  match (t) {{
    Leaf_{n} => z,
    Fork_{n}(l, x, r) => f(fold_{n}(f, z, l), x, fold_{n}(f, z, r))
  }}
}}

def size_{n}(t) {{ fold_{n}(fn (a, _x, b) {{ a + b + 1 }}, 0, t) }}""", f"""
type 'a tree_{n} = Leaf_{n} | Fork_{n} of 'a tree_{n} * 'a * 'a tree_{n}

let rec insert_{n} (less : 'a -> 'a -> bool) (x : 'a) (t : 'a tree_{n}) : 'a tree_{n} =
  match t with
  | Leaf_{n} -> Fork_{n} (Leaf_{n}, x, Leaf_{n})
  | Fork_{n} (l, y, r) ->
    if less x y then Fork_{n} (insert_{n} less x l, y, r)
    else Fork_{n} (l, y, insert_{n} less x r)

let rec fold_{n} f z t =
  match t with
  | Leaf_{n} -> z
  | Fork_{n} (l, x, r) -> f (fold_{n} f z l) x (fold_{n} f z r)

let size_{n} t = fold_{n} (fun a _ b -> a + b + 1) 0 t""")

    def record(self):
        n = self.name("v")[2:]
        e = self.float_expr(["c.rate", "c.decay"], 2)
        o = e[1].replace("c.rate", f"c.rate_{n}").replace("c.decay", f"c.decay_{n}")
        self.emit(f"""
type Config_{n} {{ Config_{n} {{ rate: float32, decay: float32, steps: int32, name: String }} }}

def rate_{n}(c: Config_{n}) -> float32 {{ {e[0]} }}

def slower_{n}(c: Config_{n}) -> Config_{n} {{
  if (c.steps > {self.number}) {{ {{ c with rate = rate_{n}(c), steps = c.steps - 1 }} }} else {{ c }}
}}

def told_{n}(c: Config_{n}) -> String {{
  c.name ++ " after " ++ show(c.steps) ++ " steps"
}}""", f"""
type config_{n} = {{ rate_{n} : float; decay_{n} : float; steps_{n} : int; name_{n} : string }}

let rate_{n} (c : config_{n}) : float = {o}

let slower_{n} (c : config_{n}) : config_{n} =
  if c.steps_{n} > {self.number} then {{ c with rate_{n} = rate_{n} c; steps_{n} = c.steps_{n} - 1 }} else c

let told_{n} (c : config_{n}) : string =
  c.name_{n} ^ " after " ^ string_of_int c.steps_{n} ^ " steps\"""")

    def network(self):
        n = self.name("v")[2:]
        batch, wide, hidden, out = (self.pick(*sizes) for sizes in (
            (1, 16, 32, 64), (64, 128, 784), (32, 100, 256), (2, 10, 100)))
        rate = self.float_text()
        act = self.pick("nn.relu", "tanh")
        act_ml = "relu" if act == "nn.relu" else "tanh_t"
        self.emit(f"""
// A network of two layers and one step of its training.
type Net_{n} {{
  Net_{n} {{
    w1: {tensor(hidden, wide)}, b1: {tensor(hidden)},
    w2: {tensor(out, hidden)}, b2: {tensor(out)}
  }}
}}

def logits_{n}(net: Net_{n}, x: {tensor(batch, wide)}) -> {tensor(batch, out)} {{
  let h = {act}(nn.dense(x, net.w1) + net.b1);
  nn.dense(h, net.w2) + net.b2
}}

def loss_{n}(net: Net_{n}, x, y) {{
  let d = logits_{n}(net, x) - y;
  mean(d * d)
}}

def step_{n}(net: Net_{n}, x, y: {tensor(batch, out)}) {{
  let g = grad(fn (p) {{ loss_{n}(p, x, y) }})(net);
  let d = g.1.0;
  let next = Net_{n} {{
    w1: net.w1 - {rate} * d.w1, b1: net.b1 - {rate} * d.b1,
    w2: net.w2 - {rate} * d.w2, b2: net.b2 - {rate} * d.b2
  }};
  (next, g.0)
}}""", f"""
(* A network of two layers and one step of its training. *)
type net_{n} = {{
  w1_{n} : tensor; b1_{n} : tensor;
  w2_{n} : tensor; b2_{n} : tensor;
}}

let logits_{n} (net : net_{n}) (x : tensor) : tensor =
  let h = {act_ml} (dense x net.w1_{n} +: net.b1_{n}) in
  dense h net.w2_{n} +: net.b2_{n}

let loss_{n} (net : net_{n}) x y =
  let d = logits_{n} net x -: y in
  total (mean ~axis:[] (d *: d))

let step_{n} (net : net_{n}) x (y : tensor) =
  let g = grad (fun p -> loss_{n} p x y) net in
  let d = snd g in
  let next = {{
    w1_{n} = net.w1_{n} -: scale {rate} d.w1_{n}; b1_{n} = net.b1_{n} -: scale {rate} d.b1_{n};
    w2_{n} = net.w2_{n} -: scale {rate} d.w2_{n}; b2_{n} = net.b2_{n} -: scale {rate} d.b2_{n}
  }} in
  (next, fst g)""")

    def convolution(self):
        f = self.name("block")
        c, k, size = self.pick(3, 16, 32), self.pick(16, 32, 64), self.pick(28, 32, 64, 224)
        stride = self.pick(1, 2)
        self.emit(f"""
def {f}(x: {tensor(self.pick(1, 8), c, size, size)}, w: {tensor(k, c, 3, 3)}, b: {tensor(k)}) {{
  let y = nn.conv2d(x, w, padding=[1, 1], strides=[{stride}, {stride}]);
  let z = nn.relu(nn.bias_add(y, b, axis=1));
  nn.batch_flatten(nn.max_pool2d(z, pool_size=[2, 2], strides=[2, 2]))
}}""", f"""
let {f} (x : tensor) (w : tensor) (b : tensor) =
  let y = conv2d ~padding:[1; 1] ~strides:[{stride}; {stride}] x w in
  let z = relu (bias_add ~axis:1 y b) in
  batch_flatten (max_pool2d ~pool_size:[2; 2] ~strides:[2; 2] z)""")

    def normalise(self):
        f, rows, cols = self.name("normal"), self.pick(1, 8, 32), self.pick(64, 128, 512)
        self.emit(f"""
def {f}(x: {tensor(rows, cols)}, gain: {tensor(cols)}) -> {tensor(rows, cols)} {{
  let m = mean(x, axis=[1], keepdims=True);
  let d = x - m;
  let v = mean(d * d, axis=[1], keepdims=True);
  d / sqrt(v + 1e-5) * gain
}}""", f"""
let {f} (x : tensor) (gain : tensor) : tensor =
  let m = mean ~axis:[1] x in
  let d = x -: m in
  let v = mean ~axis:[1] (d *: d) in
  d /: sqrt_t (shift v 1e-5) *: gain""")

    def attention(self):
        f, t, h = self.name("attend"), self.pick(16, 64, 128), self.pick(32, 64)
        self.emit(f"""
def {f}(x: {tensor(t, h)}, wq: {tensor(h, h)}, wk: {tensor(h, h)}, wv: {tensor(h, h)}) {{
  let q = x @@ wq;
  let k = x @@ wk;
  let weights = nn.softmax(q @@ transpose(k) * {1 / h ** 0.5:.4f}, axis=-1);
  weights @@ (x @@ wv) + x
}}""", f"""
let {f} (x : tensor) (wq : tensor) (wk : tensor) (wv : tensor) =
  let q = x @@: wq in
  let k = x @@: wk in
  let weights = softmax (scale {1 / h ** 0.5:.4f} (q @@: transpose k)) in
  weights @@: (x @@: wv) +: x""")

    def lists(self):
        f, e = self.name("report"), self.int_expr(["x"], 2)
        bound = self.random.randrange(100)
        self.emit(f"""
def {f}(xs: List[int32]) -> (int32, List[int32]) {{
  let kept = filter(fn (x) {{ x > {bound} }}, xs);
  let made = map(fn (x) {{ {e[0]} }}, concat(kept, range({bound + 1})));
  (foldl(fn (a, b) {{ a + b }}, 0, made), made)
}}""", f"""
let {f} (xs : int list) : int * int list =
  let kept = List.filter (fun x -> x > {bound}) xs in
  let made = List.map (fun x -> {e[1]}) (kept @ range {bound + 1}) in
  (List.fold_left (fun a b -> a + b) 0 made, made)""")

    def option(self):
        f, e = self.name("seek"), self.int_expr(["x", "otherwise"], 2)
        self.emit(f"""
def {f}(p, xs: List[int32], otherwise: int32) -> int32 {{
  match (find(p, xs)) {{
    Some(x) when x > {self.number % 7} => {e[0]},
    Some(_) => otherwise,
    None => -otherwise
  }}
}}""", f"""
let {f} p (xs : int list) (otherwise : int) : int =
  match List.find_opt p xs with
  | Some x when x > {self.number % 7} -> {e[1]}
  | Some _ -> otherwise
  | None -> - otherwise""")

    def text(self):
        f, word = self.name("label"), self.random.choice(WORDS)
        self.emit(f"""
def {f}(n: int32, xs: List[String]) -> String {{
  let head = if (n == 0) {{ "no {word}" }} else {{ show(n) ++ " of {word}" }};
  head ++ ": " ++ str.join(", ", xs)
}}""", f"""
let {f} (n : int) (xs : string list) : string =
  let head = if n = 0 then "no {word}" else string_of_int n ^ " of {word}" in
  head ^ ": " ^ String.concat ", " xs""")

    def reference(self):
        f, e = self.name("sum"), self.int_expr(["i", "n"], 1)
        self.emit(f"""
def {f}(n: int32) -> int32 {{
  let total = ref(0);
  let go = fn (i) {{
    if (i < n) {{ total := !total + {e[0]}; go(i + 1) }} else {{ !total }}
  }};
  go(0)
}}""", f"""
let {f} (n : int) : int =
  let total = ref 0 in
  let rec go i =
    if i < n then begin total := !total + {e[1]}; go (i + 1) end else !total
  in
  go 0""")
        self.ints.append((f, 1))

    def setting(self):
        a, b = self.float_expr(["1.5"], 2), self.float_expr(["0.25"], 1)
        name = self.name("setting")
        self.emit(f"let {name} = ({a[0]}, {b[0]});", f"let {name} = ({a[1]}, {b[1]})")


PARTS = [(Program.scalar, 22), (Program.recursion, 9), (Program.helper, 14), (Program.shapes, 5),
         (Program.tree, 4), (Program.record, 5), (Program.network, 6), (Program.convolution, 5),
         (Program.normalise, 5), (Program.attention, 4), (Program.lists, 7), (Program.option, 5),
         (Program.text, 4), (Program.reference, 4), (Program.setting, 4)]


def ordinary(lines, seed=1):
    """The program in Relay and in OCaml; the first has `lines` lines or a few more."""
    p = Program(seed)
    parts, weights = zip(*PARTS)
    while len(p.relay) < lines:
        p.random.choices(parts, weights)[0](p)
        p.emit("\n", "\n")
    return "\n".join(p.relay) + "\n", "\n".join(p.ocaml) + "\n"


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--lines", type=int, default=10000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--ocaml", action="store_true", help="the same program in OCaml")
    given = options.parse_args()
    print(ordinary(given.lines, given.seed)[given.ocaml], end="")
