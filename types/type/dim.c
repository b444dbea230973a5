/* SPDX-License-Identifier: Apache-2.0 */
/* Polynomials over sizes, always in normal form: terms sorted, none zero, a lone variable with
 * coefficient 1 is that variable's own type. Sizes are never negative, which min and max use. */
#include "types/type/dim.h"

#include "base/mem.h"

/* A polynomial under construction: its terms are in any order, and like terms are not joined yet. */
typedef struct Poly {
    int64_t constant;
    VEC(DimMonomial) terms;
    bool overflow;
} Poly;

static int compare_dims(Type *a, Type *b);

static int compare_atoms(const DimAtom *a, const DimAtom *b) {
    if (a == b)
        return 0;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->kind == DIM_ATOM_TYPE) {
        uint32_t x = a->type->tag == TY_VAR ? a->type->var.id : a->type->param.id;
        uint32_t y = b->type->tag == TY_VAR ? b->type->var.id : b->type->param.id;
        return x < y ? -1 : x > y;
    }
    int first = compare_dims(a->a, b->a);
    return first ? first : compare_dims(a->b, b->b);
}

/* Higher degree first, then by atoms. */
static int compare_monomials(const DimMonomial *a, const DimMonomial *b) {
    if (a->natoms != b->natoms)
        return a->natoms > b->natoms ? -1 : 1;
    for (uint32_t i = 0; i < a->natoms; i++) {
        int c = compare_atoms(a->atoms[i], b->atoms[i]);
        if (c)
            return c;
    }
    return 0;
}

static const DimAtom *new_atom(DimAtomKind kind, Type *type, Type *a, Type *b) {
    DimAtom *atom = mem_new(DimAtom);
    *atom = (DimAtom){.kind = kind, .type = type, .a = a, .b = b};
    return atom;
}

static void add_term(Poly *p, DimMonomial m) {
    for (size_t i = 0; i < p->terms.len; i++) {
        int c = compare_monomials(&p->terms.data[i], &m);
        if (c == 0) {
            int64_t sum;
            if (__builtin_add_overflow(p->terms.data[i].coef, m.coef, &sum))
                p->overflow = true;
            p->terms.data[i].coef = sum;
            if (sum == 0) {
                for (size_t k = i + 1; k < p->terms.len; k++)
                    p->terms.data[k - 1] = p->terms.data[k];
                p->terms.len--;
            }
            return;
        }
        if (c > 0) {
            vec_push(&p->terms, m);
            for (size_t k = p->terms.len - 1; k > i; k--)
                p->terms.data[k] = p->terms.data[k - 1];
            p->terms.data[i] = m;
            return;
        }
    }
    vec_push(&p->terms, m);
}

static void add_constant(Poly *p, int64_t c) {
    if (__builtin_add_overflow(p->constant, c, &p->constant))
        p->overflow = true;
}

static DimMonomial lone(const DimAtom *const *atom) {
    return (DimMonomial){.coef = 1, .natoms = 1, .atoms = (const DimAtom **)atom};
}

/* p += scale * d. A TY_VAR, TY_PARAM or TY_ANY is one atom. */
static void add_dim(Poly *p, Type *d, int64_t scale) {
    if (d->tag != TY_DIM) {
        const DimAtom **atoms = mem_new_n(const DimAtom *, 1);
        atoms[0] = new_atom(DIM_ATOM_TYPE, d, NULL, NULL);
        DimMonomial m = lone(atoms);
        m.coef = scale;
        add_term(p, m);
        return;
    }
    int64_t c;
    if (__builtin_mul_overflow(d->dim->constant, scale, &c))
        p->overflow = true;
    else
        add_constant(p, c);
    for (uint32_t i = 0; i < d->dim->nterms; i++) {
        DimMonomial m = d->dim->terms[i];
        if (__builtin_mul_overflow(m.coef, scale, &m.coef))
            p->overflow = true;
        add_term(p, m);
    }
}

static uint32_t atom_flags(const DimAtom *a) {
    return a->kind == DIM_ATOM_TYPE ? a->type->flags : a->a->flags | a->b->flags;
}

static Type *finish(Poly *p, const Origin *origin) {
    if (p->overflow)
        return type_any(KIND_DIM, origin);
    if (p->terms.len == 1 && p->constant == 0 && p->terms.data[0].coef == 1 &&
        p->terms.data[0].natoms == 1 && p->terms.data[0].atoms[0]->kind == DIM_ATOM_TYPE)
        return p->terms.data[0].atoms[0]->type;
    Type *t = type_dim_int(p->constant, origin);
    if (p->terms.len) {
        Dim *d = mem_new(Dim);
        d->constant = p->constant;
        d->nterms = (uint32_t)p->terms.len;
        d->terms = p->terms.data;
        t->dim = d;
        for (size_t i = 0; i < p->terms.len; i++)
            for (uint32_t k = 0; k < p->terms.data[i].natoms; k++)
                t->flags |= atom_flags(p->terms.data[i].atoms[k]);
    }
    return t;
}

static Type *linear(Type *a, int64_t sa, Type *b, int64_t sb) {
    a = type_resolve(a);
    b = type_resolve(b);
    Poly p = {0};
    add_dim(&p, a, sa);
    add_dim(&p, b, sb);
    return finish(&p, a->origin ? a->origin : b->origin);
}

static bool is_int(Type *d, int64_t n) {
    int64_t found;
    return type_get_int(d, &found) && found == n;
}

Type *dim_add(Type *a, Type *b) {
    if (is_int(b, 0))
        return type_resolve(a);
    if (is_int(a, 0))
        return type_resolve(b);
    return linear(a, 1, b, 1);
}

Type *dim_sub(Type *a, Type *b) { return is_int(b, 0) ? type_resolve(a) : linear(a, 1, b, -1); }

Type *dim_add_int(Type *a, int64_t n) {
    return n == 0 ? type_resolve(a) : linear(a, 1, type_dim_int(n, NULL), 1);
}

static DimMonomial multiply_monomials(Poly *p, const DimMonomial *a, const DimMonomial *b) {
    DimMonomial m = {.natoms = a->natoms + b->natoms};
    if (__builtin_mul_overflow(a->coef, b->coef, &m.coef))
        p->overflow = true;
    m.atoms = mem_new_n(const DimAtom *, m.natoms);
    for (uint32_t i = 0, k = 0, n = 0; n < m.natoms; n++) {
        bool left = k == b->natoms ||
                    (i < a->natoms && compare_atoms(a->atoms[i], b->atoms[k]) <= 0);
        m.atoms[n] = left ? a->atoms[i++] : b->atoms[k++];
    }
    return m;
}

Type *dim_mul(Type *a, Type *b) {
    a = type_resolve(a);
    b = type_resolve(b);
    if (is_int(a, 1))
        return b;
    if (is_int(b, 1))
        return a;
    Poly x = {0}, y = {0}, p = {0};
    add_dim(&x, a, 1);
    add_dim(&y, b, 1);
    if (__builtin_mul_overflow(x.constant, y.constant, &p.constant))
        p.overflow = true;
    for (size_t i = 0; i < x.terms.len; i++)
        for (size_t k = 0; k < y.terms.len; k++)
            add_term(&p, multiply_monomials(&p, &x.terms.data[i], &y.terms.data[k]));
    for (size_t i = 0; x.constant == 0 ? false : i < y.terms.len; i++) {
        DimMonomial m = y.terms.data[i];
        if (__builtin_mul_overflow(m.coef, x.constant, &m.coef))
            p.overflow = true;
        add_term(&p, m);
    }
    for (size_t i = 0; y.constant == 0 ? false : i < x.terms.len; i++) {
        DimMonomial m = x.terms.data[i];
        if (__builtin_mul_overflow(m.coef, y.constant, &m.coef))
            p.overflow = true;
        add_term(&p, m);
    }
    return finish(&p, a->origin ? a->origin : b->origin);
}

static Type *of_atom(DimAtomKind kind, Type *a, Type *b) {
    const DimAtom **atoms = mem_new_n(const DimAtom *, 1);
    atoms[0] = new_atom(kind, NULL, a, b);
    Poly p = {0};
    add_term(&p, lone(atoms));
    return finish(&p, a->origin ? a->origin : b->origin);
}

static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* m without the atoms of `by`; false when one is missing. */
static bool divide_monomial(const DimMonomial *m, const DimMonomial *by, DimMonomial *out) {
    if (by->natoms > m->natoms || m->coef % by->coef != 0)
        return false;
    *out = (DimMonomial){.coef = m->coef / by->coef};
    out->atoms = mem_new_n(const DimAtom *, m->natoms);
    uint32_t k = 0;
    for (uint32_t i = 0; i < m->natoms; i++) {
        if (k < by->natoms && compare_atoms(m->atoms[i], by->atoms[k]) == 0)
            k++;
        else
            out->atoms[out->natoms++] = m->atoms[i];
    }
    return k == by->natoms;
}

/* The exact quotient by one monomial, or NULL. The size that divides is taken to be positive. */
static Type *divide_exactly(Type *a, Type *b) {
    Poly x = {0}, y = {0}, q = {0};
    add_dim(&x, a, 1);
    add_dim(&y, b, 1);
    if (y.terms.len != 1 || y.constant != 0 || x.constant != 0 || x.overflow)
        return NULL;
    for (size_t i = 0; i < x.terms.len; i++) {
        DimMonomial m;
        if (!divide_monomial(&x.terms.data[i], &y.terms.data[0], &m))
            return NULL;
        if (m.natoms == 0)
            add_constant(&q, m.coef);
        else
            add_term(&q, m);
    }
    return x.terms.len ? finish(&q, a->origin) : NULL;
}

Type *dim_floordiv(Type *a, Type *b) {
    a = type_resolve(a);
    b = type_resolve(b);
    int64_t c;
    if (!type_get_int(b, &c)) {
        Type *exact = divide_exactly(a, b);
        return exact ? exact : of_atom(DIM_ATOM_FLOORDIV, a, b);
    }
    if (c == 1)
        return a;
    if (c <= 0)
        return c == 0 ? type_any(KIND_DIM, a->origin) : of_atom(DIM_ATOM_FLOORDIV, a, b);
    /* floordiv(c * q + r, c) = q + floordiv(r, c) */
    Poly x = {0}, q = {0}, r = {0};
    add_dim(&x, a, 1);
    q.constant = floor_div(x.constant, c);
    r.constant = x.constant - q.constant * c;
    for (size_t i = 0; i < x.terms.len; i++) {
        DimMonomial whole = x.terms.data[i], rest = whole;
        whole.coef = floor_div(whole.coef, c);
        rest.coef -= whole.coef * c;
        if (whole.coef)
            vec_push(&q.terms, whole);
        if (rest.coef)
            vec_push(&r.terms, rest);
    }
    Type *quotient = finish(&q, a->origin);
    if (r.terms.len == 0)
        return quotient;
    /* floordiv(floordiv(x, d), c) = floordiv(x, c * d) */
    int64_t d, product;
    if (r.terms.len == 1 && r.constant == 0 && r.terms.data[0].coef == 1 &&
        r.terms.data[0].natoms == 1 && r.terms.data[0].atoms[0]->kind == DIM_ATOM_FLOORDIV &&
        type_get_int(r.terms.data[0].atoms[0]->b, &d) && d > 0 &&
        !__builtin_mul_overflow(c, d, &product))
        return dim_add(quotient,
                       dim_floordiv(r.terms.data[0].atoms[0]->a, type_dim_int(product, b->origin)));
    Type *rest = finish(&r, a->origin);
    return dim_add(quotient, of_atom(DIM_ATOM_FLOORDIV, rest, b));
}

/* ---- what is never negative ------------------------------------------------------------------ */

/* Note [Sizes in order]. p ≥ 0 is shown by taking the atoms out one by one:
 *
 *     r + c * max(x, y) ≥ 0   if r + c * x ≥ 0 or r + c * y ≥ 0     (c > 0; and, if c < 0)
 *     r + c * min(x, y) ≥ 0   if r + c * x ≥ 0 and r + c * y ≥ 0    (c > 0; or, if c < 0)
 *     r + c * floordiv(x, k) ≥ 0   if k * r + c * (x - k + 1) ≥ 0   (c > 0; k * r + c * x, if c < 0)
 *
 * until only sizes are left, which are never negative themselves. Sound, and complete enough for the
 * sizes of slices: max(n - 1, 0) and n - min(n, 1) are found equal. */
enum { ORDER_DEPTH = 8 };

static bool is_never_negative(const Poly *p, int depth);

static bool dim_never_negative(Type *t, int depth) {
    Poly p = {0};
    add_dim(&p, type_resolve(t), 1);
    return is_never_negative(&p, depth);
}

static bool atom_never_negative(const DimAtom *a, int depth) {
    int64_t n;
    switch (a->kind) {
    case DIM_ATOM_TYPE: return a->type->tag != TY_ANY || !a->type->param.value;
    case DIM_ATOM_FLOORDIV:
        return (!type_get_int(a->b, &n) || n > 0) && dim_never_negative(a->b, depth) &&
               dim_never_negative(a->a, depth);
    case DIM_ATOM_MIN: return dim_never_negative(a->a, depth) && dim_never_negative(a->b, depth);
    case DIM_ATOM_MAX: return dim_never_negative(a->a, depth) || dim_never_negative(a->b, depth);
    }
    BUG("an unknown kind of atom in a size");
}

/* scale * p without term `at`, plus coef * d + constant, is never negative. */
static bool holds_with(const Poly *p, size_t at, int64_t scale, int64_t coef, Type *d,
                       int64_t constant, int depth) {
    Poly q = {.overflow = p->overflow};
    int64_t c;
    if (__builtin_mul_overflow(p->constant, scale, &c))
        return false;
    add_constant(&q, c);
    add_constant(&q, constant);
    for (size_t i = 0; i < p->terms.len; i++) {
        DimMonomial m = p->terms.data[i];
        if (i == at)
            continue;
        if (__builtin_mul_overflow(m.coef, scale, &m.coef))
            return false;
        add_term(&q, m);
    }
    add_dim(&q, type_resolve(d), coef);
    return is_never_negative(&q, depth);
}

/* Tries the rules of the note. Those that ask for both sides (`both`) are equivalences, and are tried first. */
static bool without_an_atom(const Poly *p, bool both, int depth) {
    for (size_t i = 0; i < p->terms.len; i++) {
        const DimMonomial *m = &p->terms.data[i];
        if (m->natoms != 1 || m->atoms[0]->kind == DIM_ATOM_TYPE)
            continue;
        const DimAtom *a = m->atoms[0];
        int64_t k, c = m->coef, constant = 0;
        if (a->kind == DIM_ATOM_FLOORDIV) {
            bool usable = !both && type_get_int(a->b, &k) && k > 0 &&
                          (c < 0 || !__builtin_mul_overflow(c, 1 - k, &constant));
            if (usable && holds_with(p, i, k, c, a->a, constant, depth))
                return true;
            continue;
        }
        if (both == ((a->kind == DIM_ATOM_MAX) == (c > 0)))
            continue;
        bool first = holds_with(p, i, 1, c, a->a, 0, depth);
        if (both)
            return first && holds_with(p, i, 1, c, a->b, 0, depth);
        if (first || holds_with(p, i, 1, c, a->b, 0, depth))
            return true;
    }
    return false;
}

static bool is_never_negative(const Poly *p, int depth) {
    if (p->overflow)
        return false;
    bool plain = p->constant >= 0;
    for (size_t i = 0; plain && i < p->terms.len; i++) {
        plain = p->terms.data[i].coef > 0;
        for (uint32_t k = 0; plain && k < p->terms.data[i].natoms; k++)
            plain = (depth > 0 || p->terms.data[i].atoms[k]->kind == DIM_ATOM_TYPE) &&
                    atom_never_negative(p->terms.data[i].atoms[k], depth - 1);
    }
    if (plain || depth == 0)
        return plain;
    return without_an_atom(p, true, depth - 1) || without_an_atom(p, false, depth - 1);
}

/* A size written as a max of mins of sums, the sums being free of min and max. Given up where there would be
 * too many of them. */
enum { FORM_CLAUSES = 8, FORM_TERMS = 8 };
typedef struct Form {
    uint32_t n; /* 0 where there were too many */
    struct {
        uint32_t n;
        Type *of[FORM_TERMS];
    } clauses[FORM_CLAUSES];
} Form;

static Form form_of(Type *t, int64_t scale, int depth);

static Form form_union(const Form *a, const Form *b) {
    Form f = *a;
    if (a->n == 0 || b->n == 0 || a->n + b->n > FORM_CLAUSES)
        return (Form){0};
    for (uint32_t i = 0; i < b->n; i++)
        f.clauses[f.n++] = b->clauses[i];
    return f;
}

/* Combines each clause of a with each of b: into the union of their terms (min), or into all sums. */
static Form form_product(const Form *a, const Form *b, bool sums) {
    Form f = {0};
    if (a->n * b->n > FORM_CLAUSES)
        return f;
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t k = 0; k < b->n; k++) {
            uint32_t x = a->clauses[i].n, y = b->clauses[k].n, n = 0;
            if ((sums ? x * y : x + y) > FORM_TERMS)
                return (Form){0};
            Type **out = f.clauses[f.n].of;
            for (uint32_t p = 0; p < x && !sums; p++)
                out[n++] = a->clauses[i].of[p];
            for (uint32_t q = 0; q < y && !sums; q++)
                out[n++] = b->clauses[k].of[q];
            for (uint32_t p = 0; p < x && sums; p++)
                for (uint32_t q = 0; q < y; q++)
                    out[n++] = linear(a->clauses[i].of[p], 1, b->clauses[k].of[q], 1);
            f.clauses[f.n++].n = n;
        }
    return f;
}

static Form form_of(Type *t, int64_t scale, int depth) {
    Poly p = {0}, rest = {0};
    add_dim(&p, type_resolve(t), scale);
    rest.constant = p.constant;
    rest.overflow = p.overflow;
    Form f = {.n = depth > 0 && !p.overflow};
    f.clauses[0].n = 1;
    f.clauses[0].of[0] = type_dim_int(0, NULL);
    for (size_t i = 0; i < p.terms.len && f.n; i++) {
        const DimMonomial *m = &p.terms.data[i];
        const DimAtom *a = m->natoms == 1 ? m->atoms[0] : NULL;
        if (!a || a->kind == DIM_ATOM_TYPE || a->kind == DIM_ATOM_FLOORDIV) {
            add_term(&rest, *m);
            continue;
        }
        Form x = form_of(a->a, m->coef, depth - 1), y = form_of(a->b, m->coef, depth - 1);
        bool either = (a->kind == DIM_ATOM_MAX) == (m->coef > 0);
        Form both = either ? form_union(&x, &y) : form_product(&x, &y, false);
        f = form_product(&f, &both, true);
    }
    Form last = {.n = 1};
    last.clauses[0].n = 1;
    last.clauses[0].of[0] = finish(&rest, NULL);
    return form_product(&f, &last, true);
}

static bool sum_at_least(Type *a, Type *b) {
    Poly p = {0};
    add_dim(&p, type_resolve(a), 1);
    add_dim(&p, type_resolve(b), -1);
    return is_never_negative(&p, ORDER_DEPTH);
}

/* min(xs) ≥ min(ys) if for each x there is a y with x ≥ y; likewise max, with the sides exchanged. */
static bool form_at_least(const Form *a, const Form *b) {
    for (uint32_t k = 0; k < b->n; k++) {
        bool found = false;
        for (uint32_t i = 0; i < a->n && !found; i++) {
            found = true;
            for (uint32_t j = 0; j < a->clauses[i].n && found; j++) {
                found = false;
                for (uint32_t l = 0; l < b->clauses[k].n && !found; l++)
                    found = sum_at_least(a->clauses[i].of[j], b->clauses[k].of[l]);
            }
        }
        if (!found)
            return false;
    }
    return a->n && b->n;
}

static bool has_atoms(const Type *t, bool floordiv) {
    for (uint32_t i = 0; t->tag == TY_DIM && i < t->dim->nterms; i++)
        for (uint32_t k = 0; k < t->dim->terms[i].natoms; k++) {
            DimAtomKind kind = t->dim->terms[i].atoms[k]->kind;
            if (kind != DIM_ATOM_TYPE && (floordiv || kind != DIM_ATOM_FLOORDIV))
                return true;
        }
    return false;
}

/* Whether a ≥ b whatever the sizes in them are. */
static bool is_at_least(Type *a, Type *b) {
    if (sum_at_least(a, b))
        return true;
    if (!has_atoms(a, false) && !has_atoms(b, false))
        return false;
    Form x = form_of(a, 1, ORDER_DEPTH), y = form_of(b, 1, ORDER_DEPTH);
    return form_at_least(&x, &y);
}

/* Splits a into an atom of this kind and the rest; false when it has no such atom. */
static bool split_atom(Type *a, DimAtomKind kind, const DimAtom **atom, Type **rest) {
    if (a->tag != TY_DIM)
        return false;
    for (uint32_t i = 0; i < a->dim->nterms; i++) {
        const DimMonomial *m = &a->dim->terms[i];
        if (m->natoms != 1 || m->coef != 1 || m->atoms[0]->kind != kind)
            continue;
        *atom = m->atoms[0];
        *rest = dim_sub(a, of_atom(kind, m->atoms[0]->a, m->atoms[0]->b));
        return true;
    }
    return false;
}

static Type *extreme(DimAtomKind kind, Type *a, Type *b) {
    a = type_resolve(a);
    b = type_resolve(b);
    bool max = kind == DIM_ATOM_MAX;
    if (is_at_least(a, b))
        return max ? a : b;
    if (is_at_least(b, a))
        return max ? b : a;
    /* max(max(x, y) + r, b) = max(x + r, b) where y + r is at most b */
    for (int turn = 0; turn < 2; turn++) {
        const DimAtom *atom;
        Type *rest, *with = turn ? b : a, *other = turn ? a : b;
        if (!split_atom(with, kind, &atom, &rest))
            continue;
        Type *x = dim_add(atom->a, rest), *y = dim_add(atom->b, rest);
        if (max ? is_at_least(other, y) : is_at_least(y, other))
            return extreme(kind, x, other);
        if (max ? is_at_least(other, x) : is_at_least(x, other))
            return extreme(kind, y, other);
    }
    return compare_dims(a, b) <= 0 ? of_atom(kind, a, b) : of_atom(kind, b, a);
}

Type *dim_min(Type *a, Type *b) { return extreme(DIM_ATOM_MIN, a, b); }

Type *dim_max(Type *a, Type *b) { return extreme(DIM_ATOM_MAX, a, b); }

/* ---- normal form ----------------------------------------------------------------------------- */

static bool atom_changed(const DimAtom *a) {
    if (a->kind == DIM_ATOM_TYPE)
        return a->type->tag == TY_VAR && a->type->var.link;
    return type_resolve(a->a) != a->a || type_resolve(a->b) != a->b;
}

static Type *atom_value(const DimAtom *a) {
    switch (a->kind) {
    case DIM_ATOM_TYPE: return type_resolve(a->type);
    case DIM_ATOM_FLOORDIV: return dim_floordiv(a->a, a->b);
    case DIM_ATOM_MIN: return dim_min(a->a, a->b);
    case DIM_ATOM_MAX: return dim_max(a->a, a->b);
    }
    BUG("an unknown kind of atom in a size");
}

Type *dim_normal(Type *d) {
    while (d->tag == TY_DIM && d->normal)
        d = d->normal;
    if (d->tag != TY_DIM)
        return d->tag == TY_VAR ? type_resolve(d) : d;
    bool changed = false;
    for (uint32_t i = 0; i < d->dim->nterms && !changed; i++)
        for (uint32_t k = 0; k < d->dim->terms[i].natoms && !changed; k++)
            changed = atom_changed(d->dim->terms[i].atoms[k]);
    if (!changed)
        return d;
    Type *sum = type_dim_int(d->dim->constant, d->origin);
    for (uint32_t i = 0; i < d->dim->nterms; i++) {
        const DimMonomial *m = &d->dim->terms[i];
        Type *product = type_dim_int(m->coef, NULL);
        for (uint32_t k = 0; k < m->natoms; k++)
            product = dim_mul(product, atom_value(m->atoms[k]));
        sum = dim_add(sum, product);
    }
    d->normal = sum;
    return sum;
}

static int compare_dims(Type *a, Type *b) {
    a = type_resolve(a);
    b = type_resolve(b);
    if (a == b)
        return 0;
    Poly x = {0}, y = {0};
    add_dim(&x, a, 1);
    add_dim(&y, b, 1);
    if (x.terms.len != y.terms.len)
        return x.terms.len > y.terms.len ? -1 : 1;
    for (size_t i = 0; i < x.terms.len; i++) {
        int c = compare_monomials(&x.terms.data[i], &y.terms.data[i]);
        if (c)
            return c;
        if (x.terms.data[i].coef != y.terms.data[i].coef)
            return x.terms.data[i].coef > y.terms.data[i].coef ? -1 : 1;
    }
    return x.constant < y.constant ? -1 : x.constant > y.constant;
}

bool dim_is_size(Type *d) { return dim_never_negative(d, ORDER_DEPTH); }

/* Whether the difference d cannot be zero: a sum of multiples of c plus a number that c does not divide, as
 * 2 * n - (2 * m + 1) is. */
static bool never_zero(const Type *d) {
    int64_t c = 0;
    for (uint32_t i = 0; d->tag == TY_DIM && i < d->dim->nterms; i++)
        for (int64_t k = d->dim->terms[i].coef; k != 0;) {
            int64_t rest = c % k; /* Euclid, with the gcd so far and this coefficient */
            c = k;
            k = rest;
        }
    return c != 0 && d->dim->constant % c != 0;
}

/* Note [Sizes in order] decides between sums with floordiv, min and max. */
DimCompare dim_compare(Type *a, Type *b) {
    a = type_resolve(a);
    b = type_resolve(b);
    if (a == b)
        return DIM_EQUAL;
    Type *d = dim_sub(a, b);
    int64_t n;
    if (type_get_int(d, &n))
        return n == 0 ? DIM_EQUAL : DIM_DIFFERENT;
    if (never_zero(d))
        return DIM_DIFFERENT;
    if (!has_atoms(d, true))
        return DIM_UNDECIDED;
    bool least = is_at_least(a, b), most = is_at_least(b, a);
    if (least && most)
        return DIM_EQUAL;
    if ((least && is_at_least(a, dim_add_int(b, 1))) || (most && is_at_least(b, dim_add_int(a, 1))))
        return DIM_DIFFERENT;
    return DIM_UNDECIDED;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static DimKnown evaluate_atom(const DimAtom *a, DimOf of, void *ctx, int64_t *out) {
    if (a->kind == DIM_ATOM_TYPE)
        return dim_evaluate(a->type, of, ctx, out);
    int64_t x = 0, y = 0;
    DimKnown known = dim_evaluate(a->a, of, ctx, &x);
    if (known == DIM_KNOWN)
        known = dim_evaluate(a->b, of, ctx, &y);
    if (known != DIM_KNOWN)
        return known;
    switch (a->kind) {
    case DIM_ATOM_TYPE: break;
    case DIM_ATOM_MIN: *out = x < y ? x : y; return DIM_KNOWN;
    case DIM_ATOM_MAX: *out = x > y ? x : y; return DIM_KNOWN;
    case DIM_ATOM_FLOORDIV:
        if (x == INT64_MIN && y == -1)
            return DIM_NO_SIZE;
        /* Nothing is left of no elements: `newshape=[n, -1]` gives (0, 0) for an n that is 0. */
        *out = y == 0 ? 0 : x / y - (x % y != 0 && (x < 0) != (y < 0));
        return DIM_KNOWN;
    }
    return DIM_NO_SIZE;
}

DimKnown dim_evaluate_term(const DimMonomial *term, DimOf of, void *ctx, int64_t *out) {
    int64_t product = term->coef, x = 0;
    for (uint32_t k = 0; k < term->natoms; k++) {
        DimKnown known = evaluate_atom(term->atoms[k], of, ctx, &x);
        if (known != DIM_KNOWN)
            return known;
        if (__builtin_mul_overflow(product, x, &product))
            return DIM_NO_SIZE;
    }
    *out = product;
    return DIM_KNOWN;
}

DimKnown dim_evaluate(Type *d, DimOf of, void *ctx, int64_t *out) {
    d = type_resolve(d);
    if (type_get_int(d, out))
        return DIM_KNOWN;
    if (d->tag != TY_DIM)
        return of(ctx, d, out);
    int64_t sum = d->dim->constant, x = 0;
    for (uint32_t i = 0; i < d->dim->nterms; i++) {
        DimKnown known = dim_evaluate_term(&d->dim->terms[i], of, ctx, &x);
        if (known != DIM_KNOWN)
            return known;
        if (__builtin_add_overflow(sum, x, &sum))
            return DIM_NO_SIZE;
    }
    *out = sum;
    return DIM_KNOWN;
}
