#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The mutation study of diagnostics. `make study` runs it; by hand: tests/study.py --build=build

Correct programs of at least 12 lines of code (goldens, examples, stdlib) are broken in one token on a
random line. Of the mutants that no longer check, the first message is judged:

    place       its primary place is on the mutated line (for a removed arm: or on its match's head)
    mended      it carries a suggestion that, applied by the edits it lists, gives a program that checks
    internal    its text shows an internal type variable such as `t42`
    wrong       a suggestion that it prints gives a program that does not check

Nothing is chosen by outcome: program, line, kind and site come from a generator with a fixed seed,
in that order and uniformly. `make study` writes the figures into docs/study.md; tests/property/study.py
compares those of fewer mutants with the targets.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)

SEEDS = (1, 11)     # mutants of seeds 1 to 3 were looked at while messages were written, no others
MUTANTS = 600       # of each seed
MIN_LINES = 12
TARGETS = {"place": 0.90, "mended": 0.30, "internal": 0.01, "wrong": 0.01}
TIMEOUT = 300  # seconds: against hangs only
PAGE = os.path.join(ROOT, "docs", "study.md")

KEYWORDS = set("let in if then else match fn def type when with where import operator extern derivative "
               "tangent no_derivative True False list sq Grad Ref Zero None nan inf Tensor String ref".split())
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64".split()
KINDS = {"Dim", "Shape", "Type", "BaseType"}
TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?\*/|\#![^\n]*)"
    r"|(?P<string>\"(?:\\.|[^\"\\])*\")"
    r"|(?P<float>\d+\.\d+(?:e[-+]?\d+)?(?:f\d+|bf16|f)?|\d+e[-+]?\d+(?:f\d+)?)"
    r"|(?P<int>\d+(?:[iu]\d+|i)?)"
    r"|(?P<name>[%@]?[A-Za-z_]\w*)"
    r"|(?P<op>\+\+|\*\*|@@|==|!=|<=|>=|&&|\|\||\|>|>>|::|:=|->|=>|\.\.\.|.)", re.S)
EXCHANGES = {"+": ["*", "@@", "++", "<"], "-": ["+", "@@", "=="], "*": ["@@", "+", "&&"],
             "/": ["@@", "*", "<"], "@@": ["*", "+", "@@"], "**": ["*", "@@"], "++": ["+", "*"],
             "==": ["+", "<", "&&"], "!=": ["==", "-"], "<": ["+", "&&"], ">": ["*", "||"],
             "<=": ["+", "-"], ">=": ["-", "*"], "&&": ["+", "=="], "||": ["*", "=="],
             "::": ["+", "++"], "|>": [">>", "+"], ">>": ["|>", "+"], ":=": ["==", "+"]}


class Token:
    __slots__ = ("kind", "text", "begin", "end", "line")

    def __init__(self, kind, text, begin, line):
        self.kind, self.text, self.begin, self.end, self.line = kind, text, begin, begin + len(text), line


class Program:
    """A correct program, its tokens, and the ways to break it on each of its lines."""

    def __init__(self, path, text=None):
        self.path, self.name, self.text = path, os.path.relpath(path, ROOT), text
        if text is None:
            with open(path, encoding="ascii") as f:
                self.text = f.read()
        self.tokens, line = [], 1
        for m in TOKEN.finditer(self.text):
            if m.lastgroup != "space":
                self.tokens.append(Token(m.lastgroup, m.group(), m.start(), line))
            line += m.group().count("\n")
        self.lines = sorted({t.line for t in self.tokens})
        self.partner, self.opener = {}, {}
        stack = []
        for i, t in enumerate(self.tokens):
            self.opener[i] = stack[-1] if stack else None
            if t.text in "([{":
                stack.append(i)
            elif t.text in ")]}" and stack:
                o = stack.pop()
                self.partner[o], self.partner[i] = i, o
                self.opener[i] = self.opener[o]

    # ---- looking around ----

    def at(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def item(self, i):
        """The tokens of the item around token i: items begin in the first column."""
        first, last = i, i
        while first > 0 and not self.begins_item(first):
            first -= 1
        while last + 1 < len(self.tokens) and not self.begins_item(last + 1):
            last += 1
        return first, last

    def begins_item(self, i):
        t = self.tokens[i]
        return (t.begin == 0 or self.text[t.begin - 1] == "\n") and self.opener[i] is None and \
            t.text not in ")]}"

    def is_name(self, i):
        t = self.tokens[i]
        return t.kind == "name" and t.text not in KEYWORDS and t.text not in DTYPES and t.text not in KINDS

    def is_attribute(self, i):
        o = self.opener[i]
        return self.is_name(i) and o is not None and self.at(o) == "(" and self.at(i + 1) == "=" and \
            self.at(i - 1) in ("(", ",")

    def is_field(self, i):
        if not self.is_name(i):
            return False
        if self.at(i - 1) == "." and i >= 2 and self.tokens[i - 1].begin == self.tokens[i - 2].end:
            return True
        o = self.opener[i]
        return o is not None and self.at(o) == "{" and self.at(i - 1) in ("{", ",", "with") and \
            self.at(i + 1) in (":", "=") and self.tokens[o - 1].kind == "name"

    def is_constructor(self, i):
        return self.is_name(i) and self.at(i - 1) != "." and self.tokens[i].text[0].isupper()

    def is_variable(self, i):
        return self.is_name(i) and not self.is_attribute(i) and not self.is_field(i) and \
            not self.tokens[i].text[0].isupper() and self.at(i - 1) != "."

    def parts(self, o):
        """Ranges of tokens between the commas of the bracket at token o."""
        out, first = [], o + 1
        for k in range(o + 1, self.partner[o] + 1):
            if k == self.partner[o] or (self.at(k) == "," and self.opener[k] == o):
                if k > first:
                    out.append((first, k - 1))
                first = k + 1
        return out

    def names_before(self, i):
        """What could be in scope: names the file's items bind, names this item binds before here."""
        first, _ = self.item(i)
        out = set()
        for k in range(len(self.tokens)):
            bound = self.is_variable(k) and (
                self.at(k - 1) in ("let", "def") or
                (first <= k < i and self.at(k - 1) in ("(", ",") and
                 self.at(k + 1) in (",", ")", ":")))
            if bound and (self.begins_item(k - 1) or first <= k < i):
                out.add(self.tokens[k].text)
        return out

    # ---- mutations: lists of (begin, end, text, lines that count as the mutated one) ----

    def replace(self, i, text):
        t = self.tokens[i]
        return (t.begin, t.end, text, {t.line})

    def remove_part(self, o, parts, n):
        """Part n of a bracket without its comma; line breaks stay, so that lines keep their numbers."""
        first, last = parts[n]
        line = self.tokens[first].line
        begin, end = self.tokens[first].begin, self.tokens[last].end
        if n + 1 < len(parts):
            end = self.tokens[parts[n + 1][0]].begin
        elif n > 0:
            begin = self.tokens[parts[n - 1][1]].end
        return (begin, end, "\n" * self.text.count("\n", begin, end), {line})

    def double_part(self, o, part):
        first, last = part
        begin, end = self.tokens[first].begin, self.tokens[last].end
        text = " ".join(self.text[begin:end].split("\n"))
        return (begin, begin, text + ", ", {self.tokens[first].line})

    def mutations(self, line, rng):
        out = collections.defaultdict(list)
        for i, t in enumerate(self.tokens):
            if t.line == line:
                self.mutate_token(i, t, rng, out)
        return out

    def mutate_token(self, i, t, rng, out):
        if t.kind == "int":
            m = re.match(r"\d+", t.text)
            n, suffix = int(m.group()), t.text[m.end():]
            choices = {n + 1, 2 * n, max(n - 1, 0)} - {n}
            kind = "projection" if self.at(i - 1) == "." else "size"
            out[kind].append(self.replace(i, str(rng.choice(sorted(choices))) + suffix))
            if kind == "size" and not suffix:
                out["dtype"].append(self.replace(i, t.text + ".0"))
        elif t.kind == "float":
            whole = t.text.split(".")[0]
            if whole.isdigit() and "e" not in t.text:
                out["dtype"].append(self.replace(i, whole))
            out["dtype"].append(self.replace(i, t.text.rstrip("f0123456789b") and
                                             re.match(r"[\d.e+-]+", t.text).group() + "f64"))
        elif t.kind == "name" and t.text in DTYPES:
            out["dtype"].append(self.replace(i, rng.choice([d for d in DTYPES if d != t.text])))
        elif t.kind == "op" and t.text in EXCHANGES and not self.in_type(i):
            if self.at(i - 1) not in ("", "(", ",", "=", "{", "[", ";", "return"):
                out["operator"].append(self.replace(i, rng.choice(EXCHANGES[t.text])))
        elif self.is_attribute(i):
            out["attribute"].append(self.replace(i, misspelled(t.text, rng)))
        elif self.is_field(i):
            fields = {self.at(k) for k in range(len(self.tokens)) if self.is_field(k)} - {t.text}
            out["field"].append(self.replace(i, misspelled(t.text, rng)))
            if fields:
                out["field"].append(self.replace(i, rng.choice(sorted(fields))))
        elif self.is_constructor(i):
            others = {self.at(k) for k in range(len(self.tokens)) if self.is_constructor(k)} - {t.text}
            out["constructor"].append(self.replace(i, misspelled(t.text, rng)))
            if others:
                out["constructor"].append(self.replace(i, rng.choice(sorted(others))))
        elif self.is_variable(i):
            out["name"].append(self.replace(i, misspelled(t.text, rng)))
            others = self.names_before(i) - {t.text}
            if others and self.at(i - 1) not in ("let", "def"):
                out["exchange"].append(self.replace(i, rng.choice(sorted(others))))
        if t.text in ("(", "[") and i in self.partner:
            self.mutate_bracket(i, rng, out)
        self.mutate_arm(i, out)

    def mutate_bracket(self, o, rng, out):
        parts = self.parts(o)
        if not parts:
            return
        before = self.tokens[o - 1] if o else None
        adjacent = before is not None and before.end == self.tokens[o].begin
        called = adjacent and (before.kind == "name" and before.text not in KEYWORDS or before.text in ")>")
        if self.at(o) == "(" and called and self.at(o - 2) != "def":
            plain = [p for p in parts if not self.is_attribute(p[0])]
            for n, p in enumerate(plain):
                out["arity"].append(self.remove_part(o, parts, n))
                out["arity"].append(self.double_part(o, p))
        elif self.at(o) == "[" and not adjacent and self.tokens[parts[0][0]].kind in ("int", "float"):
            n = rng.randrange(len(parts))
            out["element"].append(self.remove_part(o, parts, n))
            out["element"].append(self.double_part(o, parts[n]))

    def in_type(self, i):
        o = self.opener[i]
        while o is not None:
            if self.at(o) == "[" and self.at(o - 1) == "Tensor":
                return True
            o = self.opener[o]
        return False

    def match_head(self, brace):
        """The token `match` whose arms stand in this brace, or None."""
        k = brace - 1
        if self.at(k) == ")" and k in self.partner:
            k = self.partner[k]
            if self.at(k - 1) == "match":
                return k - 1
        return None

    def mutate_arm(self, i, out):
        """Arms that begin at token i."""
        o = self.opener[i]
        if o is None or self.at(o) != "{":
            return
        head = self.match_head(o)
        if head is None or self.at(i - 1) not in ("{", ","):
            return
        parts = self.parts(o)
        for n, p in enumerate(parts):
            if p[0] == i and len(parts) > 1:
                begin, end, text, lines = self.remove_part(o, parts, n)
                out["arm"].append((begin, end, text, lines | {self.tokens[head].line}))


def misspelled(name, rng):
    """One letter dropped, doubled, swapped with the next, or replaced."""
    sigil = name[0] if name[0] in "%@" else ""
    s = name[len(sigil):]
    while True:
        k, how = rng.randrange(len(s)), rng.randrange(4)
        if how == 0:
            new = s[:k] + s[k + 1:]
        elif how == 1:
            new = s[:k] + s[k] + s[k:]
        elif how == 2:
            new = s[:k] + s[k + 1:k + 2] + s[k] + s[k + 2:]
        else:
            new = s[:k] + rng.choice("abcdefghijklmnopqrstuvwxyz") + s[k + 1:]
        if new != s and re.fullmatch(r"[A-Za-z_]\w*", new) and new not in KEYWORDS:
            return sigil + new


class Relay:
    def __init__(self, program, folder):
        self.program = os.path.abspath(program)
        self.folder = folder

    def check(self, text, name, beside):
        """(status, diagnostics) of `relay check`; the file lies beside the original for its imports."""
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            f.write(text)
        env = dict(os.environ, RELAY_PATH=beside + ":" + os.path.join(ROOT, "stdlib"))
        try:
            p = subprocess.run([self.program, "check", "--diagnostics=json", path], capture_output=True,
                               timeout=TIMEOUT, env=env, cwd=beside)
        except subprocess.TimeoutExpired:
            return None, []
        diags = []
        for line in p.stderr.decode("utf-8", "replace").splitlines():
            if line.startswith('{"severity"'):
                diags.append(json.loads(line))
        return p.returncode, diags


def apply_edits(text, edits):
    data = text.encode()
    for e in sorted(edits, key=lambda e: -e["begin"]):
        data = data[:e["begin"]] + e["text"].encode() + data[e["end"]:]
    return data.decode()


def said(d):
    return "\n".join([d["message"], d["label"]] + [l["label"] for l in d["labels"]] + d["facts"] + d["helps"])


def judge(relay, program, mutation, name):
    """A mutant's row, or None when it still checks."""
    begin, end, text, lines = mutation[1]
    mutant = program.text[:begin] + text + program.text[end:]
    status, diags = relay.check(mutant, name, os.path.dirname(program.path))
    if status == 0:
        return None
    line = min(lines) if mutation[0] != "arm" else max(lines)
    row = {"program": program.name, "begin": begin, "end": end, "kind": mutation[0], "line": line,
           "was": program.text[begin:end], "now": text, "code": "", "message": "", "place": False,
           "mended": False, "internal": False, "wrong": False, "died": status not in (1,), "at": 0}
    errors = [d for d in diags if d["severity"] == "error"]
    if not errors:
        row["died"] = True
        return row
    d = errors[0]
    row.update(code=d["code"], message=d["message"], at=d["line"],
               place=os.path.basename(d["file"] or "") == name and d["line"] in lines)
    row["internal"] = any(not re.search(r"\b%s\b" % v, mutant) for v in re.findall(r"\bt\d+\b", said(d)))
    for s in d["suggestions"]:
        again, _ = relay.check(apply_edits(mutant, s["edits"]), "again_" + name,
                               os.path.dirname(program.path))
        if again == 0:
            row["mended"] = True
        else:
            row["wrong"] = True
    return row


def corpus(relay):
    """Programs that check by themselves, of at least MIN_LINES lines of code."""
    paths = []
    for top in ("tests/golden", "examples", "stdlib"):
        for folder, _, names in sorted(os.walk(os.path.join(ROOT, top))):
            paths += [os.path.join(folder, n) for n in sorted(names) if n.endswith(".rly")]
    out = []
    for path in paths:
        try:
            p = Program(path)
        except UnicodeDecodeError:
            continue
        if len(p.lines) < MIN_LINES or "#[version" in p.text:
            continue
        if re.search(r"//\s?(error|flags|command|skip)(@\S+)?:", p.text):
            continue
        status, diags = relay.check(p.text, "corpus.rly", os.path.dirname(path))
        if status == 0:
            out.append(p)
    return out


def draw(programs, seed):
    """Mutants without end; each its program, kind and change."""
    rng = random.Random(seed)
    while True:
        p = rng.choice(programs)
        by_kind = p.mutations(rng.choice(p.lines), rng)
        if not by_kind:
            continue
        kind = rng.choice(sorted(by_kind))
        yield p, (kind, rng.choice(by_kind[kind]))


def study(relay, programs, seed, wanted, jobs):
    """The first `wanted` mutants of this seed that no longer check, and how many were made."""
    rows, made, source = [], 0, draw(programs, seed)
    seen = set()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        while len(rows) < wanted:
            batch = []
            while len(batch) < 64:
                p, m = next(source)
                key = (p.name,) + m[1][:3]
                if key not in seen:
                    seen.add(key)
                    batch.append((p, m))
            results = pool.map(lambda a: judge(relay, a[1][0], a[1][1], "m%d.rly" % a[0]),
                               list(enumerate(batch, made)))
            for row in results:
                made += 1
                if row and len(rows) < wanted:
                    rows.append(row)
    return rows, made


def share(rows, what):
    return sum(r[what] for r in rows) / max(len(rows), 1)


def table(rows):
    out = ["| kind | mutants | place | mended | internal | wrong |", "|---|---:|---:|---:|---:|---:|"]
    kinds = sorted({r["kind"] for r in rows})
    for kind in kinds + [None]:
        some = [r for r in rows if kind in (None, r["kind"])]
        out.append("| %s | %d | %.1f %% | %.1f %% | %.1f %% | %.1f %% |" % (
            (kind or "**all**", len(some)) + tuple(100 * share(some, w) for w in TARGETS)))
    return "\n".join(out)


def below_target(rows):
    """The targets that rows do not meet, in words."""
    wrong = []
    for what, target in TARGETS.items():
        figure = share(rows, what)
        least = what in ("place", "mended")
        if figure < target if least else figure > target:
            wrong.append("%s: %.1f %%, %s %.0f %% are wanted" %
                         (what, 100 * figure, "at least" if least else "at most", 100 * target))
    wrong += ["died: %s line %d, `%s` for `%s`" % (r["program"], r["line"], r["now"], r["was"])
              for r in rows if r["died"]]
    return wrong


def page(programs, studies):
    out = [PAGE_HEAD % (len(programs), sum(len(p.lines) for p in programs)) % MIN_LINES]
    for seed, rows, made in studies:
        use = "looked at while the messages were written" if seed == SEEDS[0] else \
            "held out"
        out.append("## Seed %d (%s)\n\n%d mutants made, %d no longer check.\n\n%s\n" %
                   (seed, use, made, len(rows), table(rows)))
    out.append(PAGE_TAIL)
    return "\n".join(out)


PAGE_HEAD = """# The mutation study of diagnostics

How good are the messages? `make study` takes the %d correct programs of the repository that have at least
%%d lines (%d lines of code in all), breaks each in one token on a random line, keeps the mutants that no
longer check, and judges the first message of each:

- **place**: its primary place begins on the mutated line. An arm that was removed has no line left: the
  line where it stood and that of its `match` count. Target: at least 90 %%%%.
- **mended**: it carries a suggestion that, applied by the edits listed in its JSON, gives a program that
  checks. Target: at least 30 %%%%.
- **internal**: it shows an internal type variable such as `t42`. Target: at most 1 %%%%.
- **wrong**: it carries a suggestion that, applied, gives a program that does not check. Suggestions are
  tried before they are printed, so this is for mistakes that show in several items at once. Target: at
  most 1 %%%%.

Program, line, kind of mutation and site are drawn in that order, each uniformly, from a generator with a
fixed seed; no mutant is chosen by its outcome. The kinds: an integer literal changed (size), an element of a
tensor literal dropped or doubled (element), a dtype or the dtype of a literal changed (dtype), a name
misspelt (name) or exchanged for another in scope (exchange), so too a constructor, a field, an attribute
(misspelt), an argument dropped or doubled (arity), an infix operator exchanged (operator), an arm of a
`match` removed (arm), the number of a projection (projection).
"""

PAGE_TAIL = """## How to reproduce

    make study                                # these tables, written to this page
    make study STUDY='--seed 7 --dump rows'   # other mutants; every row, to look at

`make check` runs a part of it and fails when the figures fall below the targets.
"""


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--build", default=os.path.join(ROOT, "build"))
    a.add_argument("--mutants", type=int, default=MUTANTS)
    a.add_argument("--seed", type=int, action="append")
    a.add_argument("--jobs", type=int, default=2)
    a.add_argument("--dump", help="write the rows as JSON lines, to look at")
    args = a.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        relay = Relay(os.path.join(args.build, "relay"), folder)
        programs = corpus(relay)
        print("%d programs, %d lines of code" % (len(programs), sum(len(p.lines) for p in programs)))
        studies = []
        for seed in args.seed or SEEDS:
            rows, made = study(relay, programs, seed, args.mutants, args.jobs)
            studies.append((seed, rows, made))
            if args.dump:
                with open(args.dump, "w") as f:
                    for r in rows:
                        f.write(json.dumps(r) + "\n")
            print("\nseed %d: %d mutants made, %d no longer check\n" % (seed, made, len(rows)))
            print(table(rows))
        if not args.seed and args.mutants == MUTANTS:
            with open(PAGE, "w") as f:
                f.write(page(programs, studies))
        wrong = [w for _, rows, _ in studies for w in below_target(rows)]
        print("\n".join(wrong))
        sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
