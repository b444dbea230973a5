# SPDX-License-Identifier: Apache-2.0
"""Every message of the sources is drawn by some test.

A diagnostic is made at a *site*: a call of one of MAKERS with a code and a format string. While the
goldens, transcripts and documentation run, what they draw is collected; a site whose format fits
none of it, under its code, is a failure. So a message that nobody can draw does not stay.
"""
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
ROOMS = ["base", "parser", "tensor", "types", "ops", "passes", "interchange", "eval", "jit", "repl"]

# name of the function -> position of the code among its arguments, position of the format
MAKERS = {
    "diag_error": (1, 3), "diag_new": (0, 2), "infer_error": (1, 3), "infer_warning": (1, 3),
    "rel_error": (2, 3), "shape_error": (1, 2), "shape_mistake": (1, 2), "machine_fail": (1, 2), "machine_fail_at": (2, 3),
    "builtin_fail": (1, 2), "file_fail": (1, 2), "parse_mistake": (1, 3), "parse_complain": (1, 3),
}
# What a maker puts before the format.
PREFIX = {"shape_error": "`%s`: ", "file_fail": "`%s`: "}
# Sites that no test here draws, with the reason. A site that is drawn after all may not stand here.
SIZE = "needs more text or memory than a test has"
EARLIER = "an operator's relation refuses these calls before they run; what it leaves open is checked again"
OPEN = "draws on what is open in a relation when it fails: other messages come first in all programs known"
UNDRAWN = {
    ("parser/parser.c", "the text is longer than 4 GB"): SIZE,
    ("types/infer/expr.c", "nested too deeply"): SIZE,
    ("eval/file_safetensors.c", "its header takes more than 100 MB"): SIZE,
    ("types/infer/settle.c", "the dtype of this cast is not known"): OPEN,
    ("types/infer/pattern.c", "the arms of this `match` are too many to tell what they cover"): SIZE,
    ("types/solve/rel_broadcast.c", "`%s` needs %s here, not %s"): OPEN,
    ("types/solve/solver.c", "the type of %s nests more than %d deep"): OPEN,
    ("types/solve/solver.c", "a size of %s must be %s, it is %s"): OPEN,
    ("ops/broadcast.c", "`shape` has %lld sizes"): EARLIER,
    ("ops/einsum_grad.c", "the tuples have different lengths"): EARLIER,
    ("ops/qnn_product.c", "the tuples have different lengths"): EARLIER,
    ("ops/einsum_grad.c", "`grad` has shape %s, the result %s"): EARLIER,
    ("ops/einsum_grad.c", "einsum of more than two tensors has no derivative of the third order"):
        EARLIER,
    ("ops/index_view.c", "\"%s\" is not an index spec"): EARLIER,
    ("ops/index_view.c", "%d indices for a tensor with %d %s"): EARLIER,
    ("ops/join.c", "a tuple has at most %d parts here"): EARLIER,
    ("ops/pad.c", "pads at most %d axes by reflection"): EARLIER,
    ("ops/random.c", "out_dtype is %s, and `%s` is %s"): EARLIER,
    ("ops/relate/relations.c", "`%s`: `%s` must be a list of integers"): EARLIER,
    ("ops/reshape.c", "newshape must be a list of at most %d known sizes"): EARLIER,
    ("ops/relate/shape_util.c", "`%s` cannot have elements of type %s"): EARLIER,
    ("ops/relate/structured.c", "argument %d of `%s` is a tuple of tensors; %s is not taken"): EARLIER,
}

CALL = re.compile(r"\b(%s)\(" % "|".join(MAKERS))
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
CONVERSION = re.compile(r"%(?:%|[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t)?[a-zA-Z])")


class Site:
    def __init__(self, path, line, maker, codes, format):
        self.path, self.line, self.maker, self.codes, self.format = path, line, maker, codes, format
        self.pattern = re.compile(to_pattern(PREFIX.get(maker, "") + format) + r"\Z", re.S)

    def __str__(self):
        return "%s:%d: %s `%s`" % (self.path, self.line, "/".join(sorted(self.codes)) or "R....",
                                   self.format)


def to_pattern(format):
    out, at = "", 0
    for m in CONVERSION.finditer(format):
        out += re.escape(format[at:m.start()])
        out += "%" if m.group() == "%%" else r"-?\d+" if m.group()[-1] in "diu" else ".*"
        at = m.end()
    return out + re.escape(format[at:])


def without_comments(text):
    """Comments become blanks, so that places stay."""
    return re.sub(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'|/\*.*?\*/|//[^\n]*',
                  lambda m: m.group() if m.group()[0] in "\"'" else re.sub(r"[^\n]", " ", m.group()),
                  text, flags=re.S)


def arguments(text, at):
    """The arguments of a call whose `(` stands before `at`."""
    out, depth, begin = [], 0, at
    while at < len(text):
        c = text[at]
        if c == '"':
            at = STRING.match(text, at).end()
            continue
        if c == "'":
            at += 3 if text[at + 1] == "\\" else 2
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            if depth == 0:
                return out + [text[begin:at]]
            depth -= 1
        elif c == "," and depth == 0:
            out.append(text[begin:at])
            begin = at + 1
        at += 1
    return out


def unescape(text):
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m.group(1), m.group(1)), text)


def formats(argument):
    """The strings an argument may be: of `c ? "a" : "b"` both; those side by side are one."""
    joined = re.sub(r'"\s*(?:PRI\w+\s*)?"', "", argument)
    return [unescape(m.group(1)) for m in STRING.finditer(joined)]


def find_sites():
    for room in ROOMS:
        for directory, _, names in os.walk(os.path.join(ROOT, room)):
            for name in sorted(names):
                if not name.endswith((".c", ".h")):
                    continue
                path = os.path.relpath(os.path.join(directory, name), ROOT)
                with open(os.path.join(ROOT, path), encoding="utf-8") as f:
                    text = without_comments(f.read())
                yield from sites_of(path, text)


def sites_of(path, text):
    for m in CALL.finditer(text):
        args = arguments(text, m.end())
        code_at, format_at = MAKERS[m.group(1)]
        if len(args) <= format_at or "..." in args[-1] and '"' not in args[-1]:
            continue  # a declaration
        line = text.count("\n", 0, m.start()) + 1
        codes = set(re.findall(r"DIAG_(R\d{4})", args[code_at]))
        if "mismatch_code(" in args[code_at]:  # of any kind of mismatch
            codes = set()
        found = formats(args[format_at])
        if found == ["%s"] and args[format_at + 1:] and re.search(r"\bstr_text\(", args[-1]):
            continue  # a maker itself, which has put the text together
        for format in found:
            yield Site(path, line, m.group(1), codes, format)


def undrawn(drawn):
    """Lines on the sites that fit none of `drawn`, pairs of code and message."""
    by_code = {}
    for code, message in drawn:
        by_code.setdefault(code, set()).add(message)
    every = set().union(*by_code.values()) if by_code else set()
    wrong, seen = [], set()
    for site in find_sites():
        key = (site.path, site.format)
        among = set().union(*(by_code.get(c, set()) for c in site.codes)) if site.codes else every
        if not any(site.pattern.match(m) for m in among):
            if key not in UNDRAWN:
                wrong.append("no test draws " + str(site))
        elif key in UNDRAWN:
            wrong.append("drawn after all: " + str(site))
        seen.add(key)
    wrong += ["no such site: %s `%s`" % key for key in UNDRAWN if key not in seen]
    return wrong


def drawn_in(text):
    """Pairs of code and message in text that the full or short style has."""
    return re.findall(r"(?:error|warning)\[(R\d{4})\]: (.*)", text)


def check(report, options):
    wrong = undrawn(options.drawn)
    report.add("messages drawn", "failed" if wrong else "passed", "\n".join(wrong))


if __name__ == "__main__":
    for s in find_sites():
        print(s)
