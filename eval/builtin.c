/* SPDX-License-Identifier: Apache-2.0 */
/* The table of builtins: builtin.def, and ad.def for what derivatives need. */
#include "eval/builtin_all.h"

#include "eval/ad.h"
#include "eval/machine.h"
#include "types/core/builtin.h"

static const Builtin table[] = {
#define BUILTIN(name, nargs, fn, effects) {name, nargs, fn},
#define AD(name, nargs, fn, effects, gives) {name, nargs, fn},
#include "types/core/ad.def"
#include "types/core/builtin.def"
#undef AD
#undef BUILTIN
};

const Builtin *builtin_find(const Symbol *name) {
    int number = builtin_number(name->text);
    return number < 0 ? NULL : &table[number];
}

Diag *builtin_fail(const BuiltinCall *call, DiagCode code, const char *fmt, ...) {
    va_list ap;
    Str text = {0};
    va_start(ap, fmt);
    str_vprintf(&text, fmt, ap);
    va_end(ap);
    return diag_error(call->in->diags, code, call->span, "%s", str_text(&text));
}

/* ---- values of the prelude's types ----------------------------------------------------------- */

Ctor *builtin_ctor(const BuiltinCall *call, const char *name) {
    Ctor *c = env_prelude_ctor(call->in->env, name);
    if (!c)
        BUG("the prelude has no constructor `%s`", name);
    return c;
}

Value builtin_list(const BuiltinCall *call, const Value *items, size_t n) {
    Ctor *cons = builtin_ctor(call, "Cons");
    Value list = value_data(builtin_ctor(call, "Nil"), NULL);
    while (n-- > 0) {
        Value fields[2] = {items[n], list};
        list = value_data(cons, fields);
    }
    return list;
}

Value builtin_some(const BuiltinCall *call, Value v) {
    return value_data(builtin_ctor(call, "Some"), &v);
}
Value builtin_none(const BuiltinCall *call) { return value_data(builtin_ctor(call, "None"), NULL); }

bool builtin_list_next(Value *list, Value *item) {
    if (list->tag != VAL_CTOR || data_size(*list) != 2)
        return false;
    *item = data_get(*list, 0);
    *list = data_get(*list, 1);
    return true;
}
