# SPDX-License-Identifier: Apache-2.0
"""No code looks into the text of a diagnostic: Note [Diagnostics are data] in base/diag.h.

C code searches such a text when a function that compares or scans text has it among its arguments, or when a
letter of it is compared. A variable that holds the text, or a label, help or fix whose text it is, counts as well
in the function that it is of."""
import re

SEARCH = re.compile(r"\b(?:strstr|strcasestr|strn?cmp|strn?casecmp|strr?chr|strc?spn|strpbrk|strtol|sscanf|memcmp|"
                    r"memmem|memchr|str_(?:has|find|is|starts|begins|ends|contains)\w*)\s*\(")
TEXTS = [r"(?:->|\.)message\b", r"\b(?:facts|helps)\.data\b", r"\bprimary\.text\b",
         r"\blabels\.data\[[^]]*\]\.text\b"]
HOLDERS = re.compile(r"\bDiag(?:Label|Help|Fix)\s+(?:\*\s*(?:const\s+)?)?(\w+)\s*[=;,)]")
COPIES = re.compile(r"\bchar\s*\*\s*(?:const\s+)?(\w+)\s*=\s*([^;]*);")


def bare(text):
    """Code without what stands in strings and comments; lines stay where they are."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def arguments(code, begin):
    """What stands between the bracket at begin and the one that closes it."""
    depth = 0
    for i in range(begin, len(code)):
        depth += (code[i] == "(") - (code[i] == ")")
        if depth == 0:
            return code[begin + 1:i]
    return code[begin + 1:]


def searches(text):
    """Pairs of a line and the code there that looks into the text of a diagnostic."""
    code, out = bare(text), []
    for function in re.finditer(r"^[A-Za-z][^;{}]*\([^;{}]*\)\s*\{.*?^\}", code, re.S | re.M):
        body = function.group()
        texts = TEXTS + [r"(?<![\w.>])%s(?:->|\.)(?:text|message)\b" % name for name in HOLDERS.findall(body)]
        known = re.compile("|".join(texts))
        texts += [r"(?<![\w.>])%s\b" % m.group(1) for m in COPIES.finditer(body) if known.search(m.group(2))]
        known = re.compile("|".join(texts))
        letter = re.compile(r"(?:%s)\s*\[[^]]*\]\s*[=!]=\s*'" % "|".join(texts))
        places = [m.start() for m in SEARCH.finditer(body) if known.search(arguments(body, m.end() - 1))]
        places += [m.start() for m in letter.finditer(body)]
        for at in sorted(places):
            line = code.count("\n", 0, function.start() + at) + 1
            out.append((line, body[at:].split("\n")[0].strip()))
    return out


FOUND = [
    'if (strstr(d->message, "expected List["))',
    "if (strncmp(m->d->primary.text, asks, 12) == 0)",
    "bool same = !strcmp(a->facts.data[0],\n                    b->facts.data[0]);",
    'if (strstr(d->labels.data[i].text, "here")) return;',
    'if (d->labels.data[i].text[0] == \'(\') return;',
    'const DiagLabel *label = &d->labels.data[0]; if (strncmp(label->text, "ref(", 4) == 0) return;',
    'const char *help = d->helps.data[i].text; if (strstr(help, "` checks")) return;',
    'DiagFix *fix = d->fixes.data[0]; size_t n = strspn(fix->message, "0123456789");',
    "if (str_has_prefix(d->message, \"it\")) return;",
]
ALLOWED = [
    'if (strstr(text, "message")) diag_add_fact(d, "%s", d->message);',
    "str_add(out, d->message); if (d->primary.text[0]) str_add(out, d->primary.text);",
    '/* strstr(d->message, "x") */ puts("strstr(d->message, x)");',
    'if (strcmp(t->sym->text, "dtype") == 0) diag_set_label(d, "%s", t->sym->text);',
    "if (m->unknown && d->missing == m->unknown) return;",
]


def self_test():
    """What the search itself does not find, or finds wrongly."""
    wrong = []
    for part, want in [(part, 1) for part in FOUND] + [(part, 0) for part in ALLOWED]:
        found = searches("static bool f(const Diag *d)\n{\n    %s\n}\n" % part)
        if len(found) != want:
            wrong.append("tests/lint_text.py: %d places found, not %d: %s" % (len(found), want, part))
    return wrong
