# SPDX-License-Identifier: Apache-2.0
"""Programs that are one long chain of n links, each kind by another part of the language. What they
cost must grow as n does."""


def lets(n):
    return "def f(x0: float32) {\n" + "".join(f"  let x{i + 1} = x{i} + 1.0;\n" for i in range(n)) + \
        f"  x{n}\n}}\nf(1.0)\n"


def polymorphic_lets(n):
    return "def f(x0) {\n" + "".join(f"  let x{i + 1} = nn.relu(x{i});\n" for i in range(n)) + \
        f"  x{n}\n}}\nf(1.0)\n"


def functions_in_lets(n):
    return "def f(x: float32) {\n" + "".join(
        f"  let g{i + 1} = fn (y) {{ y + {f'g{i}(x)' if i else 'x'} }};\n" for i in range(n)) + \
        f"  g{n}(x)\n}}\nf(1.0)\n"


def statements(n):
    return "def f(r: Ref[int32]) {\n" + "  r := !r + 1;\n" * n + "  !r\n}\nf(ref(0))\n"


def graph_bindings(n):
    return "def @f(%x: float32) {\n  %0 = add(%x, 1f);\n" + "".join(
        f"  %{i + 1} = add(%{i}, 1f);\n" for i in range(n)) + f"  %{n}\n}}\nf(1.0)\n"


def operators(n):
    return "def f(x0: Tensor[(4, 8), float32]) {\n" + "".join(
        f"  let x{i + 1} = nn.relu(x{i});\n" for i in range(n)) + \
        f"  x{n}\n}}\nf(ones(shape=[4, 8], dtype=float32))\n"


def sums(n):
    return "def f(x) { x" + " + x" * n + " }\nf(1.0)\n"


def pipes(n):
    return "def f(x: float32) { x" + "\n  |> sin" * n + " }\nf(1.0)\n"


def branches(n):
    return "def f(x: int32) { " + "".join(f"if (x == {i}) {{ {i} }} else " for i in range(n)) + \
        "{ 0 } }\nf(5)\n"


def literal_arms(n):
    return "def f(x: int32) { match (x) {\n" + "".join(f"  {i} => {i},\n" for i in range(n)) + \
        "  _ => 0\n} }\nf(5)\n"


def constructor_arms(n):
    return "type T { " + ", ".join(f"C{i}(int32)" for i in range(n)) + " }\n" + \
        "def f(t: T) { match (t) {" + ", ".join(f"C{i}(x) => x + {i}" for i in range(n)) + \
        "} }\nf(C5(3))\n"


def list_elements(n):
    return "length(list[" + ", ".join(map(str, range(n))) + "])\n"


def definitions(n):
    return "def f0(x) { x }\n" + "".join(
        f"def f{i + 1}(x) {{ f{i}(x) + 1.0 }}\n" for i in range(n)) + f"f{n}(1.0)\n"


def items(n):
    return "let x0 = 1.0;\n" + "".join(f"let x{i + 1} = x{i} + 1.0;\n" for i in range(n)) + f"x{n}\n"


KINDS = [lets, polymorphic_lets, functions_in_lets, statements, graph_bindings, operators, sums, pipes,
         branches, literal_arms, constructor_arms, list_elements, definitions, items]
