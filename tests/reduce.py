#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a program that shows a fault as small as it can.

    tests/reduce.py RELAY FILE.rly [-o OUT.rly] --differs="--opt=0" --and="--engine=reference"
    tests/reduce.py RELAY FILE.rly --says="bug in Relay" [--way="--opt=3"]
    tests/reduce.py RELAY FILE.rly --status=-11
    tests/reduce.py RELAY FILE.rly --command="./shows_it.sh {}"      its status is 0 where the fault shows

The program is taken as a tree of items, statements, elements in brackets and operands, which any text of Relay
is, one with errors too. Parts are left out, replaced by a part of themselves or by a literal, the large ones
first, as long as the fault shows; at the end no such step is left (Zeller and Hildebrandt, "Simplifying and
Isolating Failure-Inducing Input", 2002; Misherghi and Su, "HDD", 2006). A step that makes nonsense does no harm: the fault does
not show, and it is undone. A fault of one kind does not turn into another: what differs has to stay the
same (values, output, diagnostics), and a program that was accepted stays accepted.
"""
import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "engines")]
sys.dont_write_bytecode = True
import process
import ways

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|[%@]?[A-Za-z_][A-Za-z0-9_.]*|\d[A-Za-z0-9_]*(?:\.\d[A-Za-z0-9_]*)?'
                   r"|=>|->|:=|==|!=|<=|>=|&&|\|\||\|>|>>|::|\+\+|@@|\*\*|\n|[ \t\r]+|.", re.S)
CLOSING = {"(": ")", "[": "]", "{": "}"}
LITERALS = ("0", "1.0", "1.0f64", "True", "()")
DEEP, MANY = 3, 16  # the parts of a part that may stand for it: so many levels down, and no more than so many
# What parts the pieces of one level, the loosest first; a piece may stand for the whole.
PARTING = ((";", "\n"), (",",), ("=>",), ("=", ":="), ("|>", ">>"), ("&&", "||"), ("==", "!=", "<", "<=", ">", ">="),
           ("::",), ("+", "-", "++"), ("*", "/", "@@"), ("**",))


def tokens_of(text):
    """Without comments and blanks, but with line breaks."""
    return [t for t in TOKEN.findall(text) if not t.startswith(("//", "/*")) and (t == "\n" or t.strip())]


def text_of(tokens):
    """One blank between words, none inside of brackets, so that `x[0]` and `f(x)` stay together."""
    out = []
    for before, token in zip([""] + tokens, tokens):
        tight = (not before or before in "([\n!." or token in ")],;.\n" or token in "(["
                 and (re.match(r"[\w)\]}%@]", before[-1:]) and before not in ("in", "if", "match", "fn", "=", "else")))
        out.append(token if tight else " " + token)
    return "".join(out).strip("\n") + "\n"


def match_brackets(tokens):
    """The position of the other bracket, by position; what is not closed is not there."""
    other, stack = {}, []
    for i, t in enumerate(tokens):
        if t in CLOSING:
            stack.append(i)
        elif t in CLOSING.values() and stack and CLOSING[tokens[stack[-1]]] == t:
            other[stack[-1]] = i
            other[i] = stack.pop()
    return other


def pieces(tokens, other, begin, end, signs):
    """The ranges between these signs, at the level of the range."""
    found, i, start = [], begin, begin
    while i < end:
        if tokens[i] in CLOSING and i in other:
            i = other[i]
        elif tokens[i] in signs:
            found.append((start, i))
            start = i + 1
        i += 1
    return found + [(start, end)]


def ranges(tokens):
    """Of every part that could go or stand for what is around it: (begin, end)."""
    other, found = match_brackets(tokens), set()

    def visit(begin, end, depth):
        if begin >= end or depth > 200:
            return
        found.add((begin, end))
        for signs in PARTING:
            parts = pieces(tokens, other, begin, end, signs)
            if len(parts) > 1:
                for part in parts:
                    visit(*part, depth + 1)
                return
        i = begin
        while i < end:
            if i in other and other[i] > i:
                visit(i, other[i] + 1, depth + 1) if (begin, end) != (i, other[i] + 1) else None
                visit(i + 1, other[i], depth + 1)
                i = other[i]
            i += 1
    visit(0, len(tokens), 0)
    return sorted(found, key=lambda r: (r[0] - r[1], r[0]))


def without(tokens, begin, end):
    """Left out, with the sign that parted it from its neighbour."""
    if end < len(tokens) and tokens[end] in (",", ";", "\n"):
        end += 1
    elif begin and tokens[begin - 1] in (",", ";", "\n"):
        begin -= 1
    return tokens[:begin] + tokens[end:]


def leave_out_items(tokens, shows):
    """Halves, quarters, … of the lines at the outermost level go (ddmin)."""
    size = None
    while True:
        parts = pieces(tokens, match_brackets(tokens), 0, len(tokens), ("\n",))
        parts = [p for p in parts if p[0] < p[1]]
        size = len(parts) // 2 if size is None else min(size, len(parts))
        if size < 1:
            return tokens
        at = len(parts)
        changed = False
        while at > 0:
            gone = set(range(max(at - size, 0), at))
            rest = []
            for i, (begin, end) in enumerate(parts):
                if i not in gone:
                    rest += tokens[begin:end] + ["\n"]
            if rest and len(gone) < len(parts) and shows(text_of(rest)):
                tokens, changed = rest, True
                parts = [p for p in pieces(tokens, match_brackets(tokens), 0, len(tokens), ("\n",)) if p[0] < p[1]]
            at -= size
        if size == 1 and not changed:
            return tokens
        size = max(size // 2, 1)


def smaller(tokens, everything, begin, end):
    """Ways to write the range with less."""
    yield without(tokens, begin, end)
    if end - begin > 1:
        for literal in LITERALS:
            yield tokens[:begin] + tokens_of(literal) + tokens[end:]
    inner = []  # the parts of it, and theirs, large ones first
    for b, e in everything:
        if begin <= b and e <= end and e - b < end - begin and sum(c <= b and e <= d for c, d in inner) < DEEP:
            inner.append((b, e))
    for b, e in inner[:MANY]:
        yield tokens[:begin] + tokens[b:e] + tokens[end:]


def reduce_text(text, shows, say=lambda words: None, limit=None):
    """The smallest text found, with at most so many runs, for which shows(text) is true; ValueError where it is not
    true of the text."""
    if not shows(text):
        raise ValueError("the fault does not show")
    runs = 0
    tokens = tokens_of(text)
    if not shows(text_of(tokens)):
        return text
    seen = set()

    def try_once(candidate):
        nonlocal runs
        key = tuple(candidate)
        if key in seen or (limit and runs >= limit):
            return False
        seen.add(key)
        runs += 1
        return shows(text_of(candidate))

    tokens = leave_out_items(tokens, shows)
    changed = True
    while changed:
        changed = False
        say("%d tokens" % len(tokens))
        everything, at = ranges(tokens), 0
        while at < len(everything):
            begin, end = everything[at]
            for candidate in smaller(tokens, everything, begin, end):
                if len(candidate) < len(tokens) and try_once(candidate):
                    tokens, changed = candidate, True
                    everything = ranges(tokens)
                    break
            else:
                at += 1
                continue
            at = next((i for i, (b, e) in enumerate(everything) if e - b <= end - begin), len(everything))
        for i in reversed(range(len(tokens))):  # signs and brackets that do not match
            if try_once(tokens[:i] + tokens[i + 1:]):
                del tokens[i]
                changed = True
    return text_of(tokens)


class Fault:
    """Whether a text shows the fault of the options."""

    def __init__(self, options):
        self.options, self.kind, self.runs = options, None, 0

    def kind_of(self, path):
        """What is wrong, in words that stay the same while the program shrinks; None if nothing."""
        options = self.options
        folder, name = os.path.split(path)
        if options.command:
            command = options.command.replace("{}", shlex.quote(path))
            return "yes" if subprocess.run(command, shell=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL, check=False).returncode == 0 else None
        if options.differs is None:
            left = ways.Left(options.relay, shlex.split(options.way), [name], b"", folder)
            if options.says is not None:
                return "yes" if options.says in left.out + "\n".join(left.said) else None
            return "yes" if str(left.status) == options.status else None
        one, two = (ways.Left(options.relay, shlex.split(way), [name], b"", folder) for way in (options.other, options.differs))
        wrong = ways.compare(one, two)
        refused = any('"code":"R0%d' % k in line for line in one.said for k in range(6))
        return wrong and "%s %s" % (re.sub(r"line \d+", "", wrong.split("\n")[0]), refused)

    def shows(self, text):
        self.runs += 1
        with tempfile.TemporaryDirectory(prefix="relay-reduce-") as folder:
            path = os.path.join(folder, "program.rly")
            with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as f:
                f.write(text)
            kind = self.kind_of(path)
        if self.kind is None:
            self.kind = kind
        return kind is not None and kind == self.kind


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("relay")
    p.add_argument("file")
    p.add_argument("-o", "--output", help="instead of standard output")
    p.add_argument("--differs", metavar="OPTIONS", help="a way that leaves something else than --and does")
    p.add_argument("--and", dest="other", metavar="OPTIONS", default="--engine=reference")
    p.add_argument("--says", metavar="TEXT")
    p.add_argument("--status", metavar="N", help="-11 is death by signal 11")
    p.add_argument("--way", metavar="OPTIONS", default="", help="with --says and --status")
    p.add_argument("--command")
    options = p.parse_args()
    if sum(o is not None for o in (options.differs, options.says, options.status, options.command)) != 1:
        p.error("one of --differs, --says, --status and --command tells the fault")
    options.relay = os.path.abspath(options.relay)
    process.CPU_LIMIT = 20  # a step may make a loop without end
    with open(options.file, encoding="utf-8", errors="surrogateescape", newline="") as f:
        text = f.read()
    fault = Fault(options)
    try:
        small = reduce_text(text, fault.shows, lambda words: print(words, file=sys.stderr))
    except ValueError as wrong:
        print("%s: %s" % (options.file, wrong), file=sys.stderr)
        return 1
    print("%d runs" % fault.runs, file=sys.stderr)
    if options.output:
        with open(options.output, "w", encoding="utf-8", errors="surrogateescape", newline="") as f:
            f.write(small)
    else:
        sys.stdout.write(small)
    return 0


if __name__ == "__main__":
    sys.exit(main())
