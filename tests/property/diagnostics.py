# SPDX-License-Identifier: Apache-2.0
"""Diagnostics of every golden program in all three styles: JSON is as docs/diagnostics.md says, codes
and severities are diag.def's, places lie in their files and agree with their text, and the styles say
the same. Run as: diagnostics.py RELAY"""
import concurrent.futures
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True
import run
import share
from golden import Golden
from process import PATIENCE, SLOW, run_program

ROOT = os.path.dirname(os.path.dirname(HERE))
SPAN = {"file": (str, type(None)), "line": int, "column": int, "end_line": int, "end_column": int,
        "begin": int, "end": int}
LABEL = dict(SPAN, label=str)
DIAG = dict(LABEL, severity=str, code=str, message=str, labels=list, facts=list, helps=list,
            suggestions=list)
FIX = {"message": str, "type": (str, type(None)), "edits": list}
EDIT = dict(SPAN, text=str)
CHECK = dict(DIAG, operator=(str, type(None)), argument=(str, type(None)), axis=(int, type(None)),
             inside=(dict, type(None)))
INSIDE = dict(SPAN, definition=str)


def read_codes():
    with open(os.path.join(ROOT, "base", "diag.def"), encoding="utf-8") as f:
        return {c: s.lower() for c, s in re.findall(r"^DIAG\((R\d{4}), SEVERITY_(\w+),", f.read(), re.M)}


def read_documented():
    """Fields of the tables in the manual."""
    with open(os.path.join(ROOT, "docs", "diagnostics.md"), encoding="utf-8") as f:
        rows = re.findall(r"^\| (`.*?) \|", f.read(), re.M)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


CODES = read_codes()


def shape(wrong, what, value, fields):
    if not isinstance(value, dict) or set(value) != set(fields):
        wrong.append("%s has the fields %s" % (what, sorted(value) if isinstance(value, dict) else value))
        return False
    for name, kind in fields.items():
        if not isinstance(value[name], kind) or isinstance(value[name], bool):
            wrong.append("%s: %s is %r" % (what, name, value[name]))
            return False
    return True


def place(wrong, what, span, folder):
    if span["file"] is None:
        if any(span[k] for k in SPAN if k != "file"):
            wrong.append(what + " has a place and no file")
        return
    path = os.path.join(folder, span["file"])
    if not os.path.isfile(path):
        if not re.match(r"prompt \d+$|-e$|<|prelude/|stdlib/|standard input", span["file"]):
            wrong.append("%s: there is no file %s" % (what, span["file"]))
        return
    if path.endswith(".onnx"):  # a place in what the model was translated to
        return
    with open(path, "rb") as f:
        text = f.read()
    if not 0 <= span["begin"] <= span["end"] <= len(text):
        wrong.append("%s: bytes %d to %d of %d" % (what, span["begin"], span["end"], len(text)))
        return
    for at, line, column in ((span["begin"], span["line"], span["column"]),
                             (span["end"], span["end_line"], span["end_column"])):
        start = text.rfind(b"\n", 0, at) + 1
        want = (text.count(b"\n", 0, at) + 1,
                sum(c & 0xC0 != 0x80 for c in text[start:at]) + 1)
        if (line, column) != want:
            wrong.append("%s: byte %d is at %s, not %s" % (what, at, want, (line, column)))
        if at < len(text) and text[at] & 0xC0 == 0x80 and span["code"] != "R0007":
            wrong.append("%s: byte %d is inside a character" % (what, at))


def check_json(wrong, d, folder):
    what = "%s `%s`" % (d.get("code"), d.get("message"))
    if not shape(wrong, what, d, CHECK if d.get("severity") == "note" else DIAG):
        return
    if CODES.get(d["code"]) != d["severity"]:
        wrong.append("%s: diag.def has %s, not %s" % (what, CODES.get(d["code"]), d["severity"]))
    if not d["message"] or d["message"] != d["message"].strip() or d["message"].endswith("."):
        wrong.append(what + ": the message begins or ends badly")
    place(wrong, what, d, folder)
    if d.get("inside") and shape(wrong, what + " inside", d["inside"], INSIDE):
        place(wrong, what + " inside", dict(d["inside"], code=d["code"]), folder)
    for label in d["labels"]:
        if shape(wrong, what + " label", label, LABEL):
            place(wrong, what + " label", dict(label, code=d["code"]), folder)
    for text in d["facts"] + d["helps"]:
        if not isinstance(text, str) or not text:
            wrong.append(what + ": a fact or help is no text")
    for fix in d["suggestions"]:
        if shape(wrong, what + " suggestion", fix, FIX):
            for edit in fix["edits"]:
                if shape(wrong, what + " edit", edit, EDIT):
                    place(wrong, what + " edit", dict(edit, code=d["code"]), folder)


def short_line(d):
    at = "%s:%d:%d: " % (d["file"], d["line"], d["column"]) if d["file"] is not None else ""
    text = "; ".join([d["message"]] + [f["message"] for f in d["suggestions"][:1]])
    return "%s%s[%s]: %s" % (at, d["severity"], d["code"], text.replace("\n", " "))


def full_head(d):
    return ("%s[%s]: " % (d["severity"], d["code"]),
            "%s:%d:%d" % (d["file"], d["line"], d["column"]) if d["file"] is not None else None)


def heads(text):
    """(`error[R0312]: `, place or None) of each diagnostic in the full style."""
    found = []
    for line in text.splitlines():
        m = re.match(r"(?:error|warning)\[R\d{4}\]: ", line)
        if m:
            found.append((m.group(), None))
        m = re.match(r" +--> (.*)$", line)
        if m and found and found[-1][1] is None:
            found[-1] = (found[-1][0], m.group(1))
    return found


def check_file(relay, path):
    golden = Golden(path)
    if "--residual" in golden.args:
        golden.args = [a for a in golden.args if not a.startswith("--diagnostics")]
    if golden.skip or golden.prints_text() or \
            (golden.command and golden.command[0] not in ("check", "fmt", "ir", "run")):
        return None
    folder, name = os.path.split(path)
    stdin = "".join(l + "\n" for l in golden.stdin).encode("utf-8", "surrogateescape")

    def say(style):
        command = [relay, "--jit=off"] + golden.flags + ["--diagnostics=" + style] + golden.command
        status, out, err = run_program(command + [name] + golden.args, stdin, PATIENCE * SLOW, folder)
        return status, err, out

    status, err, out = say("json")
    wrong, diags = [], []
    for line in out.splitlines():
        if line.startswith('{"severity":"note"'):
            check_json(wrong, json.loads(line), folder)
    for line in err.splitlines():
        if line.startswith('{"severity"'):
            try:
                diags.append(json.loads(line))
            except ValueError as e:
                wrong.append("no JSON: %s: %s" % (e, line))
    if not diags and not wrong:
        return [] if '{"severity":"note"' in out else None
    for d in diags:
        check_json(wrong, d, folder)
    if wrong or diags[0]["code"] == "R0018":  # usage has a form of its own in other styles
        return wrong
    short_status, short, _ = say("short")
    full_status, full, _ = say("full")
    if not status == short_status == full_status:
        wrong.append("exit status %s, %s and %s" % (status, short_status, full_status))
    want = [short_line(d) for d in diags]
    got = [l for l in short.splitlines() if re.search(r"(error|warning)\[R\d{4}\]: ", l)]
    if got != want:
        wrong += ["the short style says", *got, "instead of", *want]
    got, want = heads(full), [full_head(d) for d in diags]
    more = re.findall(r"^and (\d+) more", full, re.M)
    if len(got) + sum(int(n) for n in more) != len(want) or [h for h in got if h not in want] or \
            (not more and got != want):
        wrong += ["the full style says", *map(str, got), "instead of", *map(str, want)]
    return wrong


def main():
    options = share.arguments(__doc__).parse_args()
    relay = os.path.abspath(options.relay)
    os.environ.update(LC_ALL="C.UTF-8", TERM="dumb")
    passed = failed = 0
    documented, known = read_documented(), set(CHECK) | set(INSIDE) | set(FIX) | set(EDIT)
    if documented == known:
        passed += 1
    else:
        failed += 1
        print("docs/diagnostics.md: fields that differ: %s" % sorted(documented ^ known))
    paths = share.sample(options, run.find_files(os.path.join(os.path.dirname(HERE), "golden"), ".rly", []))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for path, wrong in zip(paths, pool.map(lambda p: check_file(relay, p), paths)):
            if wrong:
                failed += 1
                print("FAILED " + os.path.relpath(path, ROOT))
                print("\n".join("    " + w for w in wrong))
            elif wrong is not None:
                passed += 1
    if passed < len(paths) // 4:
        failed += 1
        print("only %d of %d programs had diagnostics" % (passed, len(paths)))
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
