#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of prelude/simplify.rly: both sides of each give the same, and the pass applies it.

A rule is run on nan, infinities, both zeros, the least and the largest numbers and random ones, in every dtype that it
takes, without passes, and both sides must print alike. Then the pass must make the second side of the first, on a
parameter as well as through a name.

    simplify.py RELAY [--seed=N]
"""
import os
import random
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from process import PATIENCE, SLOW  # noqa: E402

RULES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "prelude", "simplify.rly")
RULE = re.compile(r"^def @(_simplify_(\w+)_(\d+))\[([^\]]*)\]\((.*)\) \{ \((.*)\) \}$")
PARAMETER = re.compile(r"(\w+): Tensor\[s, (\w+)\]")
DTYPES = ("float16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool")
SIZE = 24


def split_pair(text):
    """The two sides: the comma that stands in no parenthesis parts them."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            return text[:at].strip(), text[at + 1:].strip()
    raise ValueError(text)


def numbers(rng, dtype):
    if dtype == "bool":
        return [rng.choice(("True", "False")) for _ in range(SIZE)]
    if dtype.startswith("float"):
        odd = ["0.0", "-0.0", "0.0 / 0.0", "1.0 / 0.0", "-1.0 / 0.0", "1.0", "-1.0", "0.5", "-2.5", "3.5"]
        small = {"float16": "0.00000006", "float32": "1e-45", "float64": "5e-324"}[dtype]
        large = {"float16": "65504.0", "float32": "3e38", "float64": "1e308"}[dtype]
        odd += [small, "-" + small, small + " * 3.0", large, "-" + large]
        return odd + [repr(rng.uniform(-9, 9)) for _ in range(SIZE - len(odd))]
    bits = int(dtype.lstrip("uint"))
    low, high = (0, 2 ** bits - 1) if dtype[0] == "u" else (-2 ** (bits - 1) + 1, 2 ** (bits - 1) - 1)
    odd = [str(n) for n in (0, 1, low, high)] + ([f"{low} - 1"] if low else [])
    return odd + [str(rng.randint(max(low, -99), 99)) for _ in range(SIZE - len(odd))]


def run(relay, text, *args):
    with tempfile.NamedTemporaryFile("w", suffix=".rly") as f:
        f.write(text)
        f.flush()
        p = subprocess.run([relay, *args, f.name], capture_output=True, text=True, timeout=PATIENCE * SLOW,
                           stdin=subprocess.DEVNULL, check=False)
    return p.returncode, p.stdout, p.stderr


def try_values(relay, rng, params, sides, dtype):
    """None where the rule does not take the dtype, else what is wrong, or ''."""
    lets = heads = ""
    for name, declared in params:
        t = dtype if declared == "t" else declared
        lets += f"let {name}_: Tensor[({SIZE},), {t}] = [{', '.join(numbers(rng, t))}];\n"
        heads += f"{name}: Tensor[({SIZE},), {t}], "
    names = ", ".join(name + "_" for name, _ in params)
    text = lets + "".join(f"def side{i}({heads[:-2]}) {{ {side} }}\n" for i, side in enumerate(sides))
    text += "".join(f"print(side{i}({names}));\n" for i in range(2))
    code, out, err = run(relay, text, "--opt=0")
    if code:
        return None if "error[R02" in err or "error[R03" in err else err
    lines = out.replace("\n ", " ").splitlines()
    return "" if len(lines) == 2 and lines[0] == lines[1] else f"{dtype}:\n  " + "\n  ".join(lines)


def last_line(function):
    """The value of a printed function, which may have bindings before it."""
    return function.split("{", 1)[1].rsplit("}", 1)[0].strip().splitlines()[-1].strip()


def try_pass(relay, params, sides, dtypes):
    """What is wrong with how the pass applies the rule."""
    dtype = next(d for d in ("float32", "int32", "bool") if d in dtypes)
    heads = ", ".join(f"{name}: Tensor[(4, 3), {dtype if t == 't' else t}]" for name, t in params)
    code, wanted, err = run(relay, f"def f({heads}) {{ {sides[1]} }}\n", "ir", "--pass=fold")
    found = run(relay, f"def f({heads}) {{ {sides[0]} }}\n", "ir", "--pass=simplify,fold")
    if code or found[0] or wanted != found[1]:
        return f"the pass makes\n  {found[1]}{found[2]}of it, expected\n  {wanted}{err}"
    inner = re.fullmatch(r"([\w.]+)\(([\w.]+\(x\))\)", sides[0])
    if inner:
        bound = f"def f({heads}) {{ let y = {inner[2]}; {inner[1]}(y) }}\n"
        found = run(relay, bound, "ir", "--pass=simplify,fold,dce")
        if last_line(found[1]) != last_line(wanted):
            return f"through a name the pass makes\n  {found[1]}{found[2]}of it, expected\n  {wanted}"
    return ""


def main():
    relay = os.path.abspath(sys.argv[1])
    seed = next((int(a[7:]) for a in sys.argv[2:] if a.startswith("--seed=")), random.randrange(2 ** 32))
    rng = random.Random(seed)
    passed = failed = 0
    next_number = {}
    with open(RULES, encoding="utf-8") as f:
        lines = [line.rstrip("\n") for line in f if line.startswith("def ")]
    for line in lines:
        rule = RULE.match(line)
        wrong = [] if rule else ["it is not of the form of a rule"]
        if rule:
            name, operator, number, _, heads, pair = rule.groups()
            params, sides = PARAMETER.findall(heads), split_pair(pair)
            next_number[operator] = next_number.get(operator, 0) + 1
            if int(number) != next_number[operator]:
                wrong.append(f"{name} should have the number {next_number[operator]}")
            told = {dtype: try_values(relay, rng, params, sides, dtype)
                    for dtype in (DTYPES if "t]" in heads else DTYPES[:1])}
            taken = {dtype for dtype, text in told.items() if text is not None}
            wrong += [text for text in told.values() if text]
            wrong += [] if taken else ["no dtype is taken"]
            wrong += [text for text in ([try_pass(relay, params, sides, taken | (set() if "t]" in heads else {"bool"}))]
                                        if taken else []) if text]
        if wrong:
            failed += 1
            print(f"FAILED {line}\n  " + "\n  ".join(wrong))
        passed += not wrong
    if failed:
        print(f"seed {seed}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
