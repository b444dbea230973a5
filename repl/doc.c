/* SPDX-License-Identifier: Apache-2.0 */
/* Documentation of operators. */
#include "repl/doc.h"

#include <string.h>

/* ---- signs ----------------------------------------------------------------------------------- */

const char *op_name_of_sign(const char *text) {
    for (int i = 0; i < BINOP_COUNT; i++)
        if (infix_ops[i] && strcmp(infix_table[i].sign, text) == 0)
            return infix_ops[i]->name;
    return text;
}

/* ---- parts ----------------------------------------------------------------------------------- */

void str_add_indented(Str *out, const char *text, size_t n) {
    for (size_t len = strlen(text); len && text[len - 1] == '\n'; len--)
        text = mem_strndup(text, len - 1);
    for (; *text; text++) {
        str_add_char(out, *text);
        if (*text == '\n' && text[1] != '\n')
            str_printf(out, "%*s", (int)n, "");
    }
}

const char *join_lines(const char *text) {
    Str out = {0};
    for (; *text; text++) {
        bool joins = *text == '\n' && out.len && out.text[out.len - 1] != '\n' && text[1] &&
                     !strchr("\n -*|", text[1]);
        str_add_char(&out, joins ? ' ' : *text);
    }
    return str_text(&out);
}

void op_print_signature(Str *out, const Op *op, size_t width) {
    Str line = {0};
    str_printf(&line, "%s(%s", op->name, op->args ? op->args : "");
    for (int i = 0; i < op->nattrs; i++) {
        const AttrSpec *a = &op->attrs[i];
        const char *part = fmt_text("%s%s%s", a->name, a->initial ? "=" : "",
                                    a->initial ? a->initial : "");
        bool first = i == 0 && op->nargs == 0;
        if (width && line.len + strlen(part) + 3 > width) {
            str_printf(out, "%s,\n", str_text(&line));
            line = (Str){0};
            str_printf(&line, "%*s%s", (int)strlen(op->name) + 1, "", part);
        } else {
            str_printf(&line, "%s%s", first ? "" : ", ", part);
        }
    }
    str_printf(out, "%s)", str_text(&line));
}

const char *dtype_set_text(DTypeSet set) {
    static const struct {
        DTypeSet set;
        const char *text;
    } classes[] = {
        {DTS_ALL, "every dtype"},
        {DTS_NUM, "integers and floats"},
        {DTS_INT | DTS_BOOL, "integers and bool"},
        {DTS_INT, "integers"},
        {DTS_FLOAT, "floats"},
    };
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (set == classes[i].set)
            return classes[i].text;
    Str out = {0};
    for (int t = 0; t < DTYPE_COUNT; t++)
        if (set & DT_BIT(t))
            str_printf(&out, "%s%s", out.len ? ", " : "", dtype_info[t].name);
    return str_text(&out);
}

const char *op_rule_text(Env *env, const Op *op) {
    const Rule *rule = env_find_rule(env, op, RULE_DERIVATIVE);
    if (!rule || rule->kind != RULE_DERIVATIVE || !rule->span.source)
        return NULL;
    return mem_strndup(rule->span.source->text + rule->span.begin,
                       rule->span.end - rule->span.begin);
}

const char *op_type_text(Env *env, const Op *op) {
    for (int i = 0; i < op->nattrs; i++)
        if (!op->attrs[i].initial)
            return NULL;
    Source *source = source_new("operator", op->name, strlen(op->name), 0);
    Module *module = NULL;
    Diags diags = {0};
    ParseOptions options = {0};
    if (parse_module(source, &options, &diags, &module) != PARSE_OK || module->items.len != 1 ||
        module->items.data[0]->kind != ITEM_EXPR)
        return NULL;
    Scheme *scheme = infer_type_of(env, module->items.data[0]->value, &diags);
    if (!scheme)
        return NULL;
    Str out = {0};
    TypeNamer namer = {0};
    scheme_print(&out, scheme, &namer);
    return str_text(&out);
}

/* ---- the page -------------------------------------------------------------------------------- */

enum { NAMES = 12, TEXTS = NAMES + 2 };

static void entry(Str *out, const char *name, const char *text) {
    str_printf(out, "  %-*s", NAMES - 1, name);
    str_add(out, strlen(name) < NAMES ? " " : "  ");
    str_add_indented(out, text, TEXTS);
    str_add_char(out, '\n');
}

void op_print_doc(Str *out, Env *env, const Op *op, size_t width) {
    BinOp infix = op_find_infix(op);
    op_print_signature(out, op, width);
    if (infix != BINOP_COUNT) {
        const char *comma = strchr(op->args, ',');
        str_printf(out, "      written %.*s %s %s", (int)(comma - op->args), op->args,
                   infix_table[infix].sign, comma + 2);
    }
    str_add(out, "\n  ");
    str_add_indented(out, op->doc, 2);
    str_add_char(out, '\n');
    for (int i = 0; i < op->nattrs; i++)
        entry(out, op->attrs[i].name,
              fmt_text("%s: %s", attr_type_words(op->attrs[i].type), op->attrs[i].doc));
    entry(out, "takes", dtype_set_text(op->dtypes));
    const char *type = op_type_text(env, op);
    if (type)
        entry(out, "as a value", type);
    const char *result = op->example_result;
    bool short_result = !strchr(result, '\n') && strlen(op->example) + strlen(result) + 30 < width;
    entry(out, "example",
          fmt_text("%s%s%s", op->example, short_result ? "   gives   " : "\n", result));
    const char *rule = op_rule_text(env, op);
    entry(out, "gradient", rule ? rule : "none: `grad` refuses a value that comes through here");
    entry(out, "shape", fmt_text("its sizes follow from %s", shape_mode_words(op->shape_mode)));
    if (op->reference_only)
        entry(out, "kernel", fmt_text("none: %s", op->reference_only));
    if (op->see_also)
        entry(out, "see also", op->see_also);
}

/* ---- words of the language ------------------------------------------------------------------- */

static const WordDoc words[] = {
    {"let", "let NAME = VALUE",
     "Binds a name, or the parts of a tuple or record, for what follows.", "let x = 2.0; x * x",
     "4.0 : float32"},
    {"def", "def NAME(PARAMETERS) { BODY }",
     "Defines a function, which may call itself. Types of parameters and result are found where "
     "they are "
     "not written.",
     "def twice(f, x) { f(f(x)) } twice(fn (x) { x * 3 }, 2)", "18 : int32"},
    {"fn", "fn (PARAMETERS) { BODY }", "A function without a name, which sees the names around it.",
     "map(fn (x) { x * x }, list[1, 2, 3])", "list[1, 4, 9] : List[int32]"},
    {"if", "if (CONDITION) { A } else { B }",
     "A where the condition holds, else B. It has one type.",
     "if (1 < 2) { \"yes\" } else { \"no\" }", "\"yes\" : String"},
    {"match", "match (VALUE) { PATTERN => A, … }",
     "The first arm whose pattern the value has. All values must be covered.",
     "match (list[1, 2]) { Cons(x, _) => x, Nil => 0 }", "1 : int32"},
    {"type", "type NAME[PARAMETERS] { CONSTRUCTOR(TYPES), … }",
     "Declares data: constructors with parts, by position or `{ name: TYPE }`.",
     "type Line { Line { w: float32, b: float32 } } Line { w: 2.0, b: 1.0 }.w", "2.0 : float32"},
    {"import", "import NAME;",
     "Brings the names of a module or of a file: `import optim;` for `optim.sgd`.",
     "import optim; optim.sgd(0.5, 1.0, 1.0)", "0.5 : float32"},
    {"with", "{ RECORD with FIELD = VALUE }      { TENSOR with [INDICES] = PART }",
     "The same record or tensor with that part replaced: a new value, made in place where nobody "
     "else holds the old one.",
     "{ [1.0, 2.0, 3.0] with [1:] = 0.0 }", "[1.0, 0.0, 0.0] : Tensor[(3,), float32]"},
    {"list", "list[A, B, …]",
     "A List of these elements, which may have any one type. `[A, B]` is a tensor.",
     "list[\"a\", \"b\"]", "list[\"a\", \"b\"] : List[String]"},
    {"ref", "ref(VALUE)",
     "A reference, whose value may change: `!r` reads it, `r := VALUE` writes it.",
     "let r = ref(1); r := !r + 1; !r", "2 : int32"},
    {":=", "REFERENCE := VALUE", "Writes the value of a reference.", "let r = ref(1); r := 5; !r",
     "5 : int32"},
    {"::", "VALUE :: LIST", "A List with one more element in front. It stands in patterns too.",
     "1 :: list[2, 3]", "list[1, 2, 3] : List[int32]"},
    {"++", "A ++ B", "Two Strings joined.", "\"a\" ++ show(1)", "\"a1\" : String"},
    {"|>", "VALUE |> FUNCTION", "Calls the function: `x |> f` is `f(x)`.", "4.0 |> sqrt",
     "2.0 : float32"},
    {">>", "F >> G", "The function that calls F, and G of its result.",
     "(sqrt >> fn (x) { x + 1.0 })(4.0)", "3.0 : float32"},
    {"Tensor", "Tensor[(SIZES), DTYPE]",
     "The type of tensors of these sizes: numbers, names, arithmetic of names, `?` for an unknown "
     "one. A scalar's may be written as its dtype: float32 is Tensor[(), float32].",
     "let x: Tensor[(2, ?), float32] = [[1.0], [2.0]]; shape_of(x)",
     "[2, 1] : Tensor[(2,), int32]"},
    {"Rows", "Rows[SIZE, TYPE]",
     "The type of so many values of a type, stacked: its constructors and fields, each tensor with "
     "a first axis more. `vmap` and `build` make such values and take them apart.",
     "let x: Rows[2, (int32, bool)] = ([1, 2], [True, False]); x.0",
     "[1, 2] : Tensor[(2,), int32]"},
};

const WordDoc *word_doc_at(size_t i) { return i < sizeof words / sizeof *words ? &words[i] : NULL; }

bool word_print_doc(Str *out, const char *text) {
    const WordDoc *w;
    for (size_t i = 0; (w = word_doc_at(i)); i++) {
        if (strcmp(w->word, text) != 0)
            continue;
        str_printf(out, "%s\n  %s\n", w->form, w->text);
        str_printf(out, "  example   %s\n  gives     %s\n", w->example, w->result);
        return true;
    }
    return false;
}
