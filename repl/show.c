/* SPDX-License-Identifier: Apache-2.0 */
/* Values and bindings as the prompt shows them: `value : type`. */
#include "repl/session_internal.h"

void show_value(Session *s, Value v, const Scheme *scheme, Str *out)
{
    ValuePrintOptions options = {.width = s->options.width, .edge = 3, .max_elements = 1000};
    value_print(out, v, &options);
    if (scheme) {
        str_add(out, " : ");
        scheme_print(out, scheme, NULL);
    }
    str_add_char(out, '\n');
}

void show_binding(Str *out, const Symbol *name, const Scheme *scheme)
{
    str_printf(out, "%s : ", name->text);
    scheme_print(out, scheme, NULL);
    str_add_char(out, '\n');
}

static void show_ctor(Str *out, const Ctor *c, TypeNamer *namer)
{
    str_add(out, c->name->text);
    if (!c->nfields)
        return;
    str_add(out, c->field_names ? " { " : "(");
    for (uint32_t i = 0; i < c->nfields; i++) {
        if (i)
            str_add(out, ", ");
        if (c->field_names)
            str_printf(out, "%s: ", c->field_names[i]->text);
        type_print(out, c->fields[i], namer);
    }
    str_add(out, c->field_names ? " }" : ")");
}

void show_type_decl(Str *out, const TypeDecl *decl)
{
    TypeNamer namer = {0};
    str_printf(out, "type %s", decl->name->text);
    for (uint32_t i = 0; i < decl->nparams; i++) {
        str_add(out, i ? ", " : "[");
        type_print(out, decl->params[i], &namer);
    }
    if (decl->nparams)
        str_add_char(out, ']');
    for (uint32_t i = 0; i < decl->nctors; i++) {
        str_add(out, i ? " | " : " = ");
        show_ctor(out, decl->ctors[i], &namer);
    }
    str_add_char(out, '\n');
}
