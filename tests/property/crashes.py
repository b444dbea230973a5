# SPDX-License-Identifier: Apache-2.0
"""Programs of the repository, broken in a few places, must check or be refused: nothing else.

Each mutant is a golden, an example or a page of the library after one to four changes. Half of them are of tokens,
as in tests/study.py; the others are of items and of what joins them: an item moves, goes, or comes twice, or from
another program; a name of one item becomes that of another; a definition becomes a `let` of a function or
the other way round; what is declared of a type goes; a bracket takes the place of another.

`relay check` may end with status 0 or 1 and within LIMIT seconds of the processor. What it says is a diagnostic a
line, an error just where the status is 1, and no word of it is an internal type variable such as `t42`. The core
of what it accepts holds to its rules (`--check-core`). A mutant that does something else is made smaller and shown.

    crashes.py RELAY [--share=F] [--seed=N] [--keep=DIR] [--limit=SECONDS]
"""
import collections
import concurrent.futures
import json
import os
import random
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True
import reduce
import share
import study
from process import PATIENCE, SLOW, run_program

WHOLE = 1600
LIMIT = 60  # seconds of processor time; few take one
STEPS = 1500  # in making a mutant smaller
ROOT = study.ROOT


def read_programs():
    """Every program of the repository that is text of ASCII, with the folder that its imports are beside."""
    found = []
    for top in ("tests/golden", "examples", "stdlib"):
        for folder, _, names in sorted(os.walk(os.path.join(ROOT, top))):
            found += [os.path.join(folder, n) for n in sorted(names) if n.endswith(".rly")]
    return found


class Text:
    """A text between two changes, as tokens and as items."""

    def __init__(self, path, text):
        self.program = study.Program(path, text)
        self.tokens = self.program.tokens
        starts = [i for i in range(len(self.tokens)) if self.program.begins_item(i)]
        self.items = list(zip(starts, starts[1:] + [len(self.tokens)]))

    def item_text(self, item):
        """From its first token to the next item, comments and blanks included."""
        begin, end = item
        stop = self.tokens[end].begin if end < len(self.tokens) else len(self.program.text)
        return self.program.text[self.tokens[begin].begin:stop]

    def item_texts(self):
        return [self.item_text(item) for item in self.items]

    def names(self):
        """What items bind: (token of the name, name)."""
        at = self.program.at
        return [(b + 1, at(b + 1)) for b, _ in self.items if at(b) in ("def", "let", "type") and
                b + 1 < len(self.tokens) and self.program.is_name(b + 1)]


def join(texts):
    return "".join(t if t.endswith("\n") else t + "\n" for t in texts)


def replace(text, begin, end, new):
    return text[:begin] + new + text[end:]


def change_token(t, rng, _):
    by_kind = t.program.mutations(rng.choice(t.program.lines), rng)
    if not by_kind:
        return None
    return replace(t.program.text, *rng.choice(by_kind[rng.choice(sorted(by_kind))])[:3])


def drop_token(t, rng, _):
    token = rng.choice(t.tokens)
    return replace(t.program.text, token.begin, token.end, "")


def swap_tokens(t, rng, _):
    a, b = sorted(rng.sample(t.tokens, 2), key=lambda token: token.begin)
    text = replace(t.program.text, b.begin, b.end, a.text)
    return replace(text, a.begin, a.end, b.text)


def swap_items(t, rng, _):
    texts = t.item_texts()
    a, b = rng.sample(range(len(texts)), 2)
    texts[a], texts[b] = texts[b], texts[a]
    return join(texts)


def move_item(t, rng, _):
    texts = t.item_texts()
    one = texts.pop(rng.randrange(len(texts)))
    texts.insert(rng.randint(0, len(texts)), one)
    return join(texts)


def drop_item(t, rng, _):
    texts = t.item_texts()
    texts.pop(rng.randrange(len(texts)))
    return join(texts)


def double_item(t, rng, _):
    texts = t.item_texts()
    texts.insert(rng.randint(0, len(texts)), rng.choice(texts))
    return join(texts)


def borrow_item(t, rng, other):
    texts, others = t.item_texts(), other.item_texts()
    if not others:
        return None
    texts.insert(rng.randint(0, len(texts)), rng.choice(others))
    return join(texts)


def rename(t, rng, _):
    """A name of one item becomes another's: where it is bound, where it is used once, or everywhere."""
    names = t.names()
    if len({name for _, name in names}) < 2:
        return None
    at, old = rng.choice(names)
    new = rng.choice([name for _, name in names if name != old])
    uses = [k for k in range(len(t.tokens)) if t.tokens[k].text == old]
    places = rng.choice([[at], [rng.choice(uses)], uses])
    text = t.program.text
    for k in reversed(places):
        text = replace(text, t.tokens[k].begin, t.tokens[k].end, new)
    return text


def let_for_def(t, rng, _):
    """`def f(x) {…}` as `let f = fn (x) {…};`."""
    p = t.program
    heads = [b for b, _ in t.items if p.at(b) == "def" and p.at(b + 2) in ("(", "[") and b + 2 in p.partner]
    if not heads:
        return None
    b = rng.choice(heads)
    k = b + 2
    while k < len(t.tokens) and p.at(k) != "{":
        k = p.partner.get(k, k) + 1
    if k not in p.partner:
        return None
    close = t.tokens[p.partner[k]].end
    return "%slet %s = fn %s;%s" % (p.text[:t.tokens[b].begin], p.at(b + 1), p.text[t.tokens[b + 2].begin:close],
                                    p.text[close:])


def def_for_let(t, rng, _):
    """`let x = e;` as `def x() { e }`."""
    p = t.program
    ends = [(b, e) for b, e in t.items if p.at(b) == "let" and p.at(b + 2) == "=" and p.at(e - 1) == ";"]
    if not ends:
        return None
    b, e = rng.choice(ends)
    return "%sdef %s() { %s }%s" % (p.text[:t.tokens[b].begin], p.at(b + 1),
                                    p.text[t.tokens[b + 3].begin:t.tokens[e - 1].begin], p.text[t.tokens[e - 1].end:])


def drop_annotation(t, rng, _):
    """`: T` of a parameter, `-> T` of a definition."""
    p, found = t.program, []
    for k in range(1, len(t.tokens)):
        last = k + 1
        if p.at(k) == "->" and p.at(k - 1) == ")" or p.at(k) == ":" and p.is_name(k - 1):
            while p.at(last + 1) in ("(", "[", "->") and last + 1 in p.partner or p.at(last) in ("fn", "->"):
                last = p.partner.get(last + 1, last + 1)
            if last < len(t.tokens):
                found.append((t.tokens[k].begin, t.tokens[last].end))
    return replace(p.text, *rng.choice(found), "") if found else None


def move_bracket(t, rng, other):
    """What one bracket holds stands in another too; now and then it is another program's."""
    source = other if rng.random() < 0.2 else t
    if not t.program.partner or not source.program.partner:
        return None
    of, to = sorted(source.program.partner.items()), sorted(t.program.partner.items())
    a, b = sorted(rng.choice(of))
    c, d = sorted(rng.choice(to))
    part = source.program.text[source.tokens[a].end:source.tokens[b].begin]
    return replace(t.program.text, t.tokens[c].end, t.tokens[d].begin, part)


CHANGES = [(8, change_token), (1, drop_token), (1, swap_tokens), (2, swap_items), (2, move_item), (1, drop_item), (1, double_item),
           (1, borrow_item), (3, rename), (2, let_for_def), (1, def_for_let), (2, drop_annotation), (2, move_bracket)]
NEEDS_TWO = (swap_items, move_item, drop_item)


def read(path):
    with open(path, encoding="utf-8", errors="replace", newline="") as f:
        return f.read()


def mutant(programs, seed):
    """(path of the program, the changes' names, the text)"""
    rng = random.Random("%d" % seed)
    while True:
        path = rng.choice(programs)
        text, names = read(path), []
        for _ in range(rng.choice([1, 1, 2, 2, 3, 4])):
            t = Text(path, text)
            _, change = rng.choices(CHANGES, [w for w, _ in CHANGES])[0]
            if len(t.tokens) < 2 or not t.items or change in NEEDS_TWO and len(t.items) < 2:
                continue
            changed = change(t, rng, Text(path, read(rng.choice(programs))))
            if changed is not None and changed != text:
                text = changed
                names.append(change.__name__)
        if names:
            return path, names, text


def judge(status, err, text):
    """What is wrong in how a check ended, or None; the words up to the first colon are those of a kind."""
    if status is None:
        return "no end:"
    if status not in (0, 1):
        return "status %d: %s" % (status, err[-1500:])
    errors = 0
    for line in err.splitlines():
        try:
            said = json.loads(line)
        except ValueError:
            return "no diagnostic: " + line[:300]
        errors += said["severity"] == "error"
        for name in re.findall(r"\bt\d+\b", study.said(said)):
            if not re.search(r"\b%s\b" % name, text):
                return "internal type variable: %s in %s" % (name, study.said(said))
    if (errors > 0) != (status == 1):
        return "status %d with %d errors: %s" % (status, errors, err[:300])
    return None


class Checker:
    def __init__(self, relay, limit):
        self.relay, self.limit = relay, limit

    def wrong(self, path, text):
        with tempfile.TemporaryDirectory(prefix="relay-crashes-") as folder:
            file = os.path.join(folder, "mutant.rly")
            with open(file, "w", encoding="utf-8", newline="") as f:
                f.write(text)
            beside = "RELAY_PATH=%s:%s" % (os.path.dirname(path), os.path.join(ROOT, "stdlib"))
            status, _, err = run_program(["env", beside, self.relay, "check", "--check-core", "--diagnostics=json", file],
                                         b"", PATIENCE * SLOW, os.path.dirname(path), self.limit * SLOW)
        return judge(status, err, text)

    def shrink(self, path, text, wrong):
        kind = wrong.split(":")[0]
        try:
            return reduce.reduce_text(text, lambda t: (self.wrong(path, t) or "").startswith(kind + ":"), limit=STEPS)
        except ValueError:
            return text


def main():
    parser = share.arguments(__doc__)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of processor time")
    options = parser.parse_args()
    checker = Checker(os.path.abspath(options.relay), options.limit)
    programs, changes = read_programs(), collections.Counter()
    first = options.seed * 10000000
    seeds = range(first, first + share.count(options, WHOLE // (4 if SLOW > 1 else 1), 50))
    failed = 0

    def one(seed):
        path, names, text = mutant(programs, seed)
        return seed, path, names, text, checker.wrong(path, text)

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for seed, path, names, text, wrong in pool.map(one, seeds):
            changes.update(set(names))
            if wrong is None:
                continue
            failed += 1
            small = checker.shrink(path, text, wrong)
            print("mutant %d of %s: %s\n%s" % (seed, os.path.relpath(path, ROOT), wrong, small), flush=True)
            if options.keep:
                os.makedirs(options.keep, exist_ok=True)
                for name, what in ("crash%d.rly", text), ("crash%d.small.rly", small):
                    with open(os.path.join(options.keep, name % seed), "w", encoding="utf-8") as f:
                        f.write(what)
    for _, change in CHANGES:
        print("%6d %s" % (changes[change.__name__], change.__name__))
    missing = [c.__name__ for _, c in CHANGES if len(seeds) >= 200 and not changes[c.__name__]]
    if missing:
        failed += 1
        print("never made: " + ", ".join(missing))
    print("%d passed, %d failed, 0 skipped" % (len(seeds) - failed, failed))


if __name__ == "__main__":
    main()
