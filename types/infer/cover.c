/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "types/infer/cover_impl.h"

enum {
    FUEL = 20000000, /* how many cells of matrices are looked at before it gives up */
    FUEL_OF_A_SET = 200000,
    FUEL_OF_COVERS = 2000000,
    MAX_SPLITS = 4000, /* how many matrices are open at once, which bounds the recursion */
    MAX_SET = 40,      /* among how many arms a covering set is looked for */
};

typedef struct Row {
    uint32_t arm;
    Node **cells;
} Row;

typedef struct Matrix {
    uint32_t nrows, ncols;
    Row *rows;
    Place **cols;
} Matrix;

typedef struct Seen {
    uint64_t a, b;
} Seen;

typedef struct Checker {
    long fuel;
    bool gave_up;
    bool wants_missing;
    bool found;
    uint32_t splits;
    uint32_t impossible; /* how many branches around are of types without values */
    uint32_t silent;     /* how many branches around have their missing values in `arms` already */
    bool *guarded;       /* whether an arm covers nothing, because it has a guard */
    bool *useful;
    Place *root;
    Node **nodes; /* a hash table of all patterns */
    size_t nnodes, cap_nodes;
    Seen *seen; /* open addressing; {0, 0} is free */
    size_t nseen, cap_seen;
    const TypeDecl *list; /* List, when some arm is written `list[…]` or `::` */
    const char *missing;
    const char *arms[COVER_ARMS];
    uint32_t narms;
    bool more; /* there are missing values that no pattern in `arms` takes */
} Checker;

static bool has_one_ctor(const Ctor *c) { return c->decl->nctors == 1; }

static bool node_is(const Node *a, PatternKind kind, const Pattern *p, Node *const *args) {
    if (a->kind != kind)
        return false;
    const Pattern *q = a->pattern;
    switch (kind) {
    case PAT_LIT:
        if (p->lit->is_float != q->lit->is_float || !type_equal(p->lit->type, q->lit->type))
            return false;
        return p->lit->is_float ? memcmp(&p->lit->f, &q->lit->f, sizeof p->lit->f) == 0
                                : p->lit->i == q->lit->i;
    case PAT_STRING:
        return p->text_len == q->text_len && memcmp(p->text, q->text, p->text_len) == 0;
    case PAT_CTOR:
        if (p->ctor != q->ctor)
            return false;
        break;
    case PAT_TUPLE:
        if (a->nargs != p->nargs)
            return false;
        break;
    case PAT_WILDCARD:
    case PAT_VAR: return false;
    }
    return a->nargs == 0 || memcmp(a->args, args, a->nargs * sizeof *args) == 0;
}

static uint64_t node_hash(const Pattern *p, Node *const *args) {
    uint64_t seed = (uint64_t)p->kind;
    switch (p->kind) {
    case PAT_LIT: return hash_bytes(&p->lit->i, sizeof p->lit->i, seed);
    case PAT_STRING: return hash_bytes(p->text, p->text_len, seed);
    case PAT_CTOR: seed ^= (uint64_t)(uintptr_t)p->ctor; break;
    case PAT_TUPLE:
    case PAT_WILDCARD:
    case PAT_VAR: break;
    }
    return hash_bytes(args, p->nargs * sizeof *args, seed);
}

static void grow_nodes(Checker *m) {
    size_t cap = m->cap_nodes ? 2 * m->cap_nodes : 64;
    Node **table = mem_new_n(Node *, cap);
    for (size_t i = 0; i < m->cap_nodes; i++) {
        for (Node *n = m->nodes[i], *next; n; n = next) {
            next = n->next;
            n->next = table[n->hash & (cap - 1)];
            table[n->hash & (cap - 1)] = n;
        }
    }
    m->nodes = table;
    m->cap_nodes = cap;
}

/* The node of a pattern whose arguments have theirs. */
static Node *intern(Checker *m, const Pattern *p, Node **args) {
    bool tests = p->kind == PAT_LIT || p->kind == PAT_STRING ||
                 (p->kind == PAT_CTOR && !has_one_ctor(p->ctor));
    for (uint32_t i = 0; i < p->nargs && !tests; i++)
        tests = args[i] != NULL;
    if (!tests)
        return NULL;
    if (m->nnodes >= m->cap_nodes)
        grow_nodes(m);
    uint64_t hash = node_hash(p, args);
    Node **slot = &m->nodes[hash & (m->cap_nodes - 1)];
    for (Node *n = *slot; n; n = n->next) {
        if (n->hash == hash && node_is(n, p->kind, p, args))
            return n;
    }
    Node *n = mem_new(Node);
    n->kind = p->kind;
    n->pattern = p;
    n->nargs = p->nargs;
    n->args = args;
    n->hash = hash;
    n->key = p->kind == PAT_CTOR ? (const void *)p->ctor : p->kind == PAT_TUPLE ? m : (void *)n;
    n->next = *slot;
    *slot = n;
    m->nnodes++;
    return n;
}

/* The node of a pattern. The last argument is followed in a loop, since list patterns are long. */
static Node *make_node(Checker *m, const Pattern *p) {
    VEC(const Pattern *) spine = {0};
    for (;;) {
        vec_push(&spine, p);
        if ((p->kind != PAT_CTOR && p->kind != PAT_TUPLE) || p->nargs == 0)
            break;
        p = p->args[p->nargs - 1];
    }
    Node *last = NULL;
    for (size_t i = spine.len; i-- > 0;) {
        p = spine.data[i];
        if (p->kind == PAT_WILDCARD || p->kind == PAT_VAR)
            continue;
        Node **args = mem_new_n(Node *, p->nargs + 1);
        for (uint32_t k = 0; k + 1 < p->nargs; k++)
            args[k] = make_node(m, p->args[k]);
        if (p->nargs)
            args[p->nargs - 1] = last;
        if (p->listed)
            m->list = p->ctor->decl;
        last = intern(m, p, args);
    }
    return last;
}

/* ---- the matrix ------------------------------------------------------------------------------ */

/* Notes a missing value. The first is shown, the next few tell which arms would mend the match. */
static void note_missing(Checker *m) {
    if (m->impossible || m->silent || !m->wants_missing)
        return;
    if (!m->found)
        m->missing = place_text(m->root, m->list, false);
    m->found = true;
    if (m->narms < COVER_ARMS) {
        m->arms[m->narms] = place_text(m->root, m->list, true);
        m->more |= !m->arms[m->narms++];
    } else {
        m->more = true;
        m->wants_missing = false;
    }
}

static bool is_open(const Row *row, uint32_t ncols) {
    for (uint32_t c = 0; c < ncols; c++) {
        if (row->cells[c])
            return false;
    }
    return true;
}

/* Drops the rows after the first that takes everything, and the columns without tests. */
static void reduce(Checker *m, Matrix *x) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->nrows; i++) {
        bool open = is_open(&x->rows[i], x->ncols);
        if (n == 0 && open) { /* no earlier row is left, so some value reaches this arm */
            m->useful[x->rows[i].arm] = true;
            if (m->guarded[x->rows[i].arm])
                continue;
        }
        x->rows[n++] = x->rows[i];
        if (open && !m->guarded[x->rows[i].arm])
            break;
    }
    x->nrows = n;
    if (!m->wants_missing || m->impossible) {
        while (x->nrows && m->useful[x->rows[x->nrows - 1].arm])
            x->nrows--;
    }
    uint32_t ncols = 0;
    for (uint32_t c = 0; c < x->ncols; c++) {
        bool tested = false;
        for (uint32_t i = 0; i < x->nrows && !tested; i++)
            tested = x->rows[i].cells[c] != NULL;
        if (!tested)
            continue;
        if (ncols != c) {
            x->cols[ncols] = x->cols[c];
            for (uint32_t i = 0; i < x->nrows; i++)
                x->rows[i].cells[ncols] = x->rows[i].cells[c];
        }
        ncols++;
    }
    x->ncols = ncols;
}

/* Whether the matrix was looked at before. Its key is a hash of its rows, of 128 bits. */
static bool was_seen(Checker *m, const Matrix *x) {
    if (x->nrows * x->ncols < 4)
        return false;
    Seen key = {(m->impossible != 0) + 2 * (m->silent != 0), 1};
    for (uint32_t i = 0; i < x->nrows; i++) {
        key.a = hash_bytes(&x->rows[i].arm, sizeof x->rows[i].arm, key.a);
        key.a = hash_bytes(x->rows[i].cells, x->ncols * sizeof *x->rows[i].cells, key.a);
        key.b = hash_bytes(x->rows[i].cells, x->ncols * sizeof *x->rows[i].cells,
                           key.b + x->rows[i].arm * 0x9E3779B97F4A7C15u);
    }
    if (2 * m->nseen >= m->cap_seen) {
        size_t cap = m->cap_seen ? 2 * m->cap_seen : 256;
        Seen *table = mem_bytes(cap * sizeof *table);
        memset(table, 0, cap * sizeof *table);
        for (size_t i = 0; i < m->cap_seen; i++) {
            if (!m->seen[i].a && !m->seen[i].b)
                continue;
            size_t at = m->seen[i].a & (cap - 1);
            while (table[at].a || table[at].b)
                at = (at + 1) & (cap - 1);
            table[at] = m->seen[i];
        }
        m->seen = table;
        m->cap_seen = cap;
    }
    size_t at = key.a & (m->cap_seen - 1);
    for (; m->seen[at].a || m->seen[at].b; at = (at + 1) & (m->cap_seen - 1)) {
        if (m->seen[at].a == key.a && m->seen[at].b == key.b)
            return true;
    }
    m->seen[at] = key;
    m->nseen++;
    return false;
}

/* The column to split by: of those that the first row tests, the one that most rows test, so that fewest rows
 * are copied. */
static uint32_t choose_column(const Matrix *x) {
    uint32_t best = 0, most = 0;
    for (uint32_t c = 0; c < x->ncols; c++) {
        if (!x->rows[0].cells[c])
            continue;
        uint32_t tests = 0;
        for (uint32_t i = 0; i < x->nrows; i++)
            tests += x->rows[i].cells[c] != NULL;
        if (tests > most) {
            best = c;
            most = tests;
        }
    }
    return best;
}

/* The matrix of a branch: the rows that match under `head`, or under none of the heads if it is NULL. */
static Matrix branch(const Matrix *x, uint32_t col, const RowList *list, const Node *head) {
    uint32_t nargs = head ? head->nargs : 0, ncols = x->ncols - 1 + nargs, n = (uint32_t)list->len;
    Matrix y = {.nrows = n, .ncols = ncols};
    y.rows = mem_new_n(Row, n + 1);
    y.cols = mem_new_n(Place *, ncols + 1);
    Node **cells = mem_new_n(Node *, (size_t)n * ncols + 1);
    for (uint32_t i = 0; i < n; i++, cells += ncols) {
        const Row *row = &x->rows[list->data[i]];
        y.rows[i] = (Row){row->arm, cells};
        if (nargs && row->cells[col])
            memcpy(cells, row->cells[col]->args, nargs * sizeof *cells);
        memcpy(cells + nargs, row->cells, col * sizeof *cells);
        memcpy(cells + nargs + col, row->cells + col + 1, (x->ncols - col - 1) * sizeof *cells);
    }
    memcpy(y.cols + nargs, x->cols, col * sizeof *y.cols);
    memcpy(y.cols + nargs + col, x->cols + col + 1, (x->ncols - col - 1) * sizeof *y.cols);
    return y;
}

static void clear_places(const Matrix *x) {
    for (uint32_t c = 0; c < x->ncols; c++) {
        x->cols[c]->head = NULL;
        x->cols[c]->absent_ctor = NULL;
        x->cols[c]->several = false;
        x->cols[c]->others = NULL;
        x->cols[c]->kids = NULL;
    }
}

/* The heads of a column, with the rows that may match under each, and under none. */
typedef struct Split {
    VEC(Head) heads;
    RowList none;
} Split;

static void split_rows(const Matrix *x, uint32_t col, Split *s) {
    Map index = {0}; /* key of a head -> its position + 1 */
    for (uint32_t i = 0; i < x->nrows; i++) {
        Node *head = x->rows[i].cells[col];
        if (!head || map_has(&index, head->key))
            continue;
        vec_push(&s->heads, ((Head){.node = head}));
        map_set(&index, head->key, (void *)(uintptr_t)s->heads.len);
    }
    for (uint32_t i = 0; i < x->nrows; i++) {
        Node *head = x->rows[i].cells[col];
        if (head) {
            vec_push(&s->heads.data[(uintptr_t)map_find(&index, head->key) - 1].rows, i);
            continue;
        }
        vec_push(&s->none, i);
        for (size_t h = 0; h < s->heads.len; h++)
            vec_push(&s->heads.data[h].rows, i);
    }
}

/* Whether the heads cover all values of the column. If not, the place is set to what they leave out. */
static bool heads_are_all(Checker *m, const Split *s, Place *place, bool *possible) {
    const Node *first = s->heads.data[0].node;
    *possible = true;
    switch (first->kind) {
    case PAT_TUPLE: return true;
    case PAT_CTOR: {
        const TypeDecl *decl = first->pattern->ctor->decl;
        if (s->heads.len == decl->nctors)
            return true;
        bool *named = mem_new_n(bool, decl->nctors);
        for (size_t i = 0; i < s->heads.len; i++)
            named[s->heads.data[i].node->pattern->ctor->tag] = true;
        *possible = false;
        for (uint32_t c = 0; c < decl->nctors; c++) {
            if (named[c])
                continue;
            bool inhabited = m->impossible || cover_ctor_is_inhabited(place->type, decl->ctors[c]);
            place->several |= *possible && inhabited;
            if (!*possible)
                place->absent_ctor = decl->ctors[c];
            *possible |= inhabited;
        }
        return false;
    }
    case PAT_LIT: {
        DType t;
        if (!type_get_dtype(first->pattern->lit->type, &t))
            break;
        if (t == DT_BOOL && s->heads.len == 2)
            return true;
        if (t == DT_BOOL) {
            Pattern *other = mem_new(Pattern);
            other->kind = PAT_LIT;
            other->lit = expr_bool(!first->pattern->lit->i, span_none());
            place->head = other;
            return false;
        }
        if (dtype_is_int(t) && dtype_info[t].bits <= 16 &&
            s->heads.len == (1u << dtype_info[t].bits))
            return true;
        break;
    }
    case PAT_STRING: break;
    case PAT_WILDCARD:
    case PAT_VAR: return false;
    }
    place->others = &s->heads.data[0];
    place->nothers = (uint32_t)s->heads.len;
    return false;
}

/* Sets the place to the head, and puts places for its parts in front. False where no such value exists. */
static bool enter_head(Matrix *y, Place *place, const Node *head) {
    bool possible = true;
    place->head = head->pattern;
    place->absent_ctor = NULL;
    place->several = false;
    place->others = NULL;
    place->kids = mem_new_n(Place *, head->nargs + 1);
    Type *t = place->type ? type_resolve(place->type) : NULL;
    for (uint32_t i = 0; i < head->nargs; i++) {
        Place *kid = mem_new(Place);
        if (head->kind == PAT_CTOR) {
            kid->type = cover_field_type(t, head->pattern->ctor, i);
        } else if (t && t->tag == TY_TUPLE && t->nargs == head->nargs) {
            kid->type = t->args[i];
        }
        possible = possible && cover_is_inhabited(kid->type);
        place->kids[i] = y->cols[i] = kid;
    }
    return possible;
}

/* Constructors in the order of their declaration, False before True; literals as they stand. */
static int compare_heads(const void *a, const void *b) {
    uint32_t i = ((const Head *)a)->node->pattern->ctor->tag;
    uint32_t k = ((const Head *)b)->node->pattern->ctor->tag;
    return (i > k) - (i < k);
}

static void explore(Checker *m, Matrix x) {
    uint32_t impossible = m->impossible, silent = m->silent;
    m->splits++;
    for (;;) {
        m->fuel -= (long)x.nrows * x.ncols + 1;
        if (m->fuel < 0 || m->splits > MAX_SPLITS) {
            m->gave_up = true;
            break;
        }
        reduce(m, &x);
        if (x.nrows == 0) {
            note_missing(m);
            break;
        }
        if (is_open(&x.rows[0], x.ncols))
            break;
        if (was_seen(m, &x)) {
            m->more |=
                m->found &&
                !m->silent; /* this matrix was skipped, and may have had further missing values */
            break;
        }
        uint32_t col = choose_column(&x);
        Place *place = x.cols[col];
        clear_places(&x);
        Split s = {0};
        split_rows(&x, col, &s);
        bool possible;
        if (!heads_are_all(m, &s, place, &possible)) {
            bool any =
                place->several ||
                place
                    ->others; /* several constructors or literals are missing, so an arm for them has `_` there */
            uint32_t narms = m->narms;
            m->impossible += !possible;
            explore(m, branch(&x, col, &s.none, NULL));
            m->impossible -= !possible;
            m->silent += any && (m->narms > narms || m->more);
        }
        size_t n = s.heads.len;
        if (s.heads.data[0].node->kind == PAT_CTOR)
            qsort(s.heads.data, n, sizeof *s.heads.data, compare_heads);
        for (size_t i = 0; i + 1 < n && !m->gave_up; i++) {
            clear_places(&x);
            Matrix y = branch(&x, col, &s.heads.data[i].rows, s.heads.data[i].node);
            possible = enter_head(&y, place, s.heads.data[i].node);
            m->impossible += !possible;
            explore(m, y);
            m->impossible -= !possible;
        }
        if (m->gave_up)
            break;
        /* The last branch replaces this matrix in the loop, so that long lists need no recursion. */
        clear_places(&x);
        Matrix y = branch(&x, col, &s.heads.data[n - 1].rows, s.heads.data[n - 1].node);
        if (!enter_head(&y, place, s.heads.data[n - 1].node))
            m->impossible++;
        x = y;
    }
    m->impossible = impossible;
    m->silent = silent;
    m->splits--;
}

static Matrix first_matrix(Checker *m, const Arm *arms, const uint32_t *which, uint32_t n,
                           Type *type) {
    Matrix x = {.nrows = n, .ncols = 1};
    x.rows = mem_new_n(Row, n + 1);
    x.cols = mem_new_n(Place *, 1);
    m->root = mem_new(Place);
    m->root->type = type;
    x.cols[0] = m->root;
    for (uint32_t i = 0; i < n; i++) {
        const Arm *arm = &arms[which ? which[i] : i];
        x.rows[i].arm = i;
        x.rows[i].cells = mem_new_n(Node *, 1);
        x.rows[i].cells[0] = make_node(m, arm->pattern);
        m->guarded[i] = arm->guard || node_has_float(arm->pattern);
    }
    return x;
}

static void checker_init(Checker *m, uint32_t n, long fuel) {
    *m = (Checker){.fuel = fuel};
    m->guarded = mem_new_n(bool, n + 1);
    m->useful = mem_new_n(bool, n + 1);
}

Cover cover_arms(const Arm *arms, uint32_t n, Type *type, bool partial) {
    Checker m;
    checker_init(&m, n, FUEL);
    Matrix x = first_matrix(&m, arms, NULL, n, type);
    bool whole = false; /* some arm takes every value */
    for (uint32_t i = 0; i < n; i++)
        whole |= !x.rows[i].cells[0] && !m.guarded[i];
    m.wants_missing = !partial && !whole;
    m.impossible = !cover_is_inhabited(type);
    if (n == 0 && type_resolve(type)->tag == TY_DATA) {
        const TypeDecl *decl = type_resolve(type)->decl;
        for (uint32_t c = 0; c < decl->nctors && !m.root->absent_ctor; c++) {
            if (cover_ctor_is_inhabited(type, decl->ctors[c]))
                m.root->absent_ctor = decl->ctors[c];
        }
    }
    explore(&m, x);
    for (uint32_t i = 0; i < n && m.gave_up; i++)
        m.useful[i] = true;
    return (Cover){
        .complete = whole || (!m.found && !m.gave_up),
        .missing = m.missing,
        .gave_up = m.gave_up && !m.found && m.wants_missing,
        .useful = m.useful,
        .arms = {m.arms[0], m.arms[1], m.arms[2]},
        .narms = m.more || m.gave_up ? 0 : m.narms,
    };
}

/* ---- which arms cover another ---------------------------------------------------------------- */

struct Covering {
    Checker m;
    const Arm *arms;
    Type *type;
    Node **nodes;   /* the patterns of the arms so far */
    Map first;      /* Node -> the first arm with exactly that pattern, + 1 */
    uint32_t len;   /* how many arms were read */
    uint32_t whole; /* the first arm that takes every value, + 1 */
    long fuel;
};

Covering *covering_new(const Arm *arms, uint32_t n, Type *type) {
    Covering *c = mem_new(Covering);
    checker_init(&c->m, 0, 0);
    c->arms = arms;
    c->type = type;
    c->nodes = mem_new_n(Node *, n + 1);
    c->fuel = FUEL_OF_COVERS;
    return c;
}

/* Whether pattern a takes every value that b takes, as far as their forms show. */
static bool subsumes(const Node *a, const Node *b) {
    while (a && b && a->key == b->key && a != b && a->nargs) {
        for (uint32_t i = 0; i + 1 < a->nargs; i++) {
            if (!subsumes(a->args[i], b->args[i]))
                return false;
        }
        b = b->args[a->nargs - 1];
        a = a->args[a->nargs - 1];
    }
    return !a || (b && a->key == b->key);
}

/* Whether the arms of the set take every value that `arm` could. */
static bool set_covers(Covering *c, uint32_t *set, uint32_t n, uint32_t arm) {
    Checker m;
    checker_init(&m, n + 1, FUEL_OF_A_SET);
    memset(m.useful, true, n * sizeof *m.useful); /* only the last row is asked about */
    set[n] = arm;
    explore(&m, first_matrix(&m, c->arms, set, n + 1, c->type));
    c->fuel -= FUEL_OF_A_SET - m.fuel;
    return !m.gave_up && !m.useful[n];
}

uint32_t covering_find(Covering *c, uint32_t arm, uint32_t *out, uint32_t max) {
    for (; c->len <= arm; c->len++) {
        const Arm *a = &c->arms[c->len];
        Node *node = c->nodes[c->len] = make_node(&c->m, a->pattern);
        if (c->len == arm)
            break;
        if (a->guard || node_has_float(a->pattern))
            continue;
        if (!node && !c->whole)
            c->whole = c->len + 1;
        if (node && !map_has(&c->first, node))
            map_set(&c->first, node, (void *)(uintptr_t)(c->len + 1));
    }
    Node *node = c->nodes[arm];
    uint32_t same = node ? (uint32_t)(uintptr_t)map_find(&c->first, node) : 0;
    if (c->whole && (!same || c->whole < same))
        same = c->whole;
    if (same) {
        out[0] = same - 1;
        return 1;
    }
    uint32_t n = 0, *set = mem_new_n(uint32_t, MAX_SET + 2);
    for (uint32_t i = 0; i < arm; i++) {
        if (c->arms[i].guard || node_has_float(c->arms[i].pattern))
            continue;
        if (--c->fuel < 0)
            return 0;
        if (subsumes(c->nodes[i], node)) {
            out[0] = i;
            return 1;
        }
        if (n <= MAX_SET)
            set[n++] = i;
    }
    if (n > MAX_SET)
        return 0;
    /* Take out each arm without which the others still cover, beginning with the last. */
    for (uint32_t i = n; i-- > 0;) {
        uint32_t *rest = mem_new_n(uint32_t, n + 2);
        memcpy(rest, set, i * sizeof *rest);
        memcpy(rest + i, set + i + 1, (n - i - 1) * sizeof *rest);
        if (!set_covers(c, rest, n - 1, arm))
            continue;
        set = rest;
        n--;
    }
    if (n > max || c->fuel < 0)
        return 0;
    memcpy(out, set, n * sizeof *out);
    return n;
}
