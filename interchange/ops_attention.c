/* SPDX-License-Identifier: Apache-2.0 */
/* Attention and rotary embeddings. Queries, keys and values are (batch, heads, places, features); those of three axes,
 * (batch, places, heads * features), are taken apart first and put together at the end. */
#include <math.h>
#include <string.h>

#include "interchange/ops_impl.h"

enum { BATCH, HEADS, PLACES, FEATURES };
enum { QUERY, KEY, VALUE, MASK, PAST_KEY, PAST_VALUE, FILLED }; /* inputs */

/* Input i with four axes. heads: what the attribute says, 0 where it is not given. */
static Val *split_heads(Node *n, uint32_t i, const char *hint, int64_t heads) {
    const Val *in = node_in(n, i);
    int rank = node_rank(n, i);
    if (rank == 4)
        return node_in(n, i);
    if (rank != 3 || heads < 1) {
        node_refuse(n, rank == 3 ? "without a number of heads" : "of %d axes", rank);
        return node_in(n, i);
    }
    Num features = in->dims[2].known ? num_int(in->dims[2].n / heads) : num_unknown();
    Num dims[] = {in->dims[0], num_int(heads), in->dims[1], features};
    const char *text = node_let(
        n, hint, "transpose(reshape(%s, newshape=[0, 0, %lld, -1]), axes=[0, 2, 1, 3])", in->text,
        (long long)heads);
    return val_tensor(text, node_dtype(n, i), 4, dims);
}

/* (batch, heads, places, features) as (batch, places, heads * features). */
static Val *join_heads(const Val *v, const char *text) {
    const Num *d = v->dims;
    bool known = d[HEADS].known && d[FEATURES].known;
    Num dims[] = {d[BATCH], d[PLACES],
                  known ? num_times(d[HEADS].n, d[FEATURES].n) : num_unknown()};
    return val_tensor(
        fmt_text("reshape(transpose(%s, axes=[0, 2, 1, 3]), newshape=[0, 0, -1])", text), v->dtype,
        3, dims);
}

/* What was kept of earlier places, and those of now. */
static Val *append_past(Node *n, const Val *now, uint32_t past, const char *hint) {
    if (!node_has(n, past) || n->failed)
        return val_like(now, now->text);
    const Val *before = node_in(n, past);
    if (node_rank(n, past) != 4) {
        node_refuse(n, "with a past of %d axes", before->rank);
        return val_like(now, now->text);
    }
    Val *all = val_like(
        now, node_let(n, hint, "concatenate((%s, %s), axis=2)", before->text, now->text));
    all->dims = mem_new_n(Num, 4);
    memcpy(all->dims, now->dims, 4 * sizeof *all->dims);
    Num a = before->dims[PLACES], b = now->dims[PLACES];
    all->dims[PLACES] = a.known && b.known ? num_plus(a.n, b.n) : num_unknown();
    return all;
}

/* As many heads as the queries have: each of v as often as it takes, one behind the other. */
static const char *repeat_heads(Node *n, const Val *v, const Val *query) {
    Num own = v->dims[HEADS], wanted = query->dims[HEADS];
    if (num_is(own, wanted))
        return v->text;
    if (!own.known || !wanted.known || own.n < 1 || wanted.n % own.n) {
        node_refuse(n, "of numbers of heads that do not go together, or are not known");
        return v->text;
    }
    return fmt_text("repeat(%s, repeats=%lld, axis=1)", v->text, (long long)(wanted.n / own.n));
}

/* ---- what a query sees ------------------------------------------------------------------------ */

typedef struct Sight {
    const char *allowed; /* bools; NULL: all */
    const char *mask;    /* what is added; NULL: nothing */
} Sight;

static void allow(Sight *s, const char *condition) {
    s->allowed = s->allowed ? fmt_text("logical_and(%s, %s)", s->allowed, condition) : condition;
}

static const char *places_of(Node *n, const Val *v, const char *hint) {
    return node_let(n, hint, "cast(arange(%s), dtype=int64)", num_print(val_dim(v, PLACES)));
}

/* The mask, of which the last keys may be missing: these are not seen. */
static void read_mask(Node *n, const Val *key, DType d, Sight *s) {
    const Val *in = node_in(n, MASK);
    int rank = node_rank(n, MASK);
    bool is_bool = in->has_dtype && in->dtype == DT_BOOL;
    if (n->failed || rank < 1 || rank > 4) {
        node_refuse(n, "with a mask of %d axes", rank);
        return;
    }
    Num own = in->dims[rank - 1], keys = key->dims[PLACES];
    if (!num_is(own, keys) && !(own.known && keys.known)) {
        node_refuse(n, "with a mask of as many keys as are not known");
        return;
    }
    const char *mask = in->text;
    if (own.known && keys.known && own.n < keys.n) {
        Str widths = {0};
        for (int i = 0; i < rank - 1; i++)
            str_add(&widths, "[0, 0], ");
        mask = is_bool ? fmt_text("cast(%s, dtype=int8)", mask) : mask;
        mask = fmt_text("nn.pad(%s, %s, pad_width=[%s[0, %lld]])", mask,
                        is_bool ? "0i8" : float_text(-INFINITY, d), str_text(&widths),
                        (long long)(keys.n - own.n));
        mask = is_bool ? fmt_text("cast(%s, dtype=bool)", mask) : mask;
    }
    mask = node_let(n, "mask", "%s", mask);
    if (is_bool)
        allow(s, mask);
    else
        s->mask = mask;
}

/* Query i stands at place i + offset among the keys. */
static void read_order(Node *n, const Val *query, const Val *key, Sight *s) {
    bool causal = attr_int(n, "is_causal", 0) != 0, filled = node_has(n, FILLED);
    int64_t left = attr_int(n, "left_window_size", -1),
            right = attr_int(n, "right_window_size", -1);
    if (!causal && !filled && left < 0 && right < 0)
        return;
    const char *keys = places_of(n, key, "keys");
    const char *count = filled
                            ? fmt_text("reshape(%s, newshape=[-1, 1, 1, 1])", node_text(n, FILLED))
                            : NULL;
    if (causal || left >= 0 || right >= 0) {
        const char *offset = NULL, *queries = places_of(n, query, "queries");
        if (node_has(n, PAST_KEY) && node_rank(n, PAST_KEY) == 4)
            offset = fmt_text("cast(%s, dtype=int64)",
                              num_print(val_dim(node_in(n, PAST_KEY), PLACES)));
        else if (filled)
            offset = fmt_text("(%s - cast(%s, dtype=int64))", count,
                              num_print(val_dim(query, PLACES)));
        queries = fmt_text("expand_dims(%s, axis=1)", queries);
        queries = node_let(n, "at", offset ? "%s + %s" : "%s", queries, offset);
        if (causal)
            allow(s, fmt_text("%s <= %s", keys, queries));
        if (left >= 0)
            allow(s, fmt_text("%s - %s <= %lldi64", queries, keys, (long long)left));
        if (right >= 0)
            allow(s, fmt_text("%s - %s <= %lldi64", keys, queries, (long long)right));
    }
    if (filled)
        allow(s, fmt_text("%s < %s", keys, count));
}

/* What is added to the products: 0 or the mask where a key is seen, else -inf. NULL: nothing. */
static const char *read_sight(Node *n, const Val *query, const Val *key, DType d) {
    Sight s = {NULL, NULL};
    if (node_has(n, MASK))
        read_mask(n, key, d, &s);
    if (!n->failed)
        read_order(n, query, key, &s);
    if (!s.allowed)
        return s.mask;
    return node_let(n, "seen", "where(%s, %s, %s)", s.allowed, s.mask ? s.mask : float_text(0.0, d),
                    float_text(-INFINITY, d));
}

/* ---- Attention -------------------------------------------------------------------------------- */

/* The scale of queries, and of keys; NULL after a refusal. */
static const char *read_scale(Node *n, const Val *query, DType d) {
    Num features = query->dims[FEATURES];
    const OnnxAttr *given = node_attr(n, "scale");
    if (!given && !features.known) {
        node_refuse(n, "of a number of features that is not known");
        return NULL;
    }
    double scale = given ? attr_float(n, "scale", 1.0) : 1.0 / sqrt((double)features.n);
    if (!(scale >= 0)) {
        node_refuse(n, "with a negative scale");
        return NULL;
    }
    return float_text(sqrt(scale), d);
}

/* The weights of keys, 0 for a query that sees none. */
static const char *weights_of(Node *n, const char *logits, const char *seen, DType d) {
    DType in = d;
    const OnnxAttr *precision = node_attr(n, "softmax_precision");
    if (precision && (!onnx_find_dtype(precision->i, &in) || !dtype_is_float(in)))
        node_refuse(n, "whose softmax is of %s", onnx_dtype_name(precision->i));
    if (!seen) {
        const char *x = in == d ? logits
                                : fmt_text("cast(%s, dtype=%s)", logits, dtype_info[in].name);
        const char *y = fmt_text("nn.softmax(%s)", x);
        return in == d ? y : fmt_text("cast(%s, dtype=%s)", y, dtype_info[d].name);
    }
    const char *blind = node_let(n, "blind", "max(%s, axis=[-1], keepdims=True) == %s", seen,
                                 float_text(-INFINITY, d));
    const char *zero = float_text(0.0, d);
    const char *x = fmt_text("where(%s, %s, %s)", blind, zero, logits);
    if (in != d)
        x = fmt_text("cast(%s, dtype=%s)", x, dtype_info[in].name);
    const char *y = fmt_text("nn.softmax(%s)", x);
    if (in != d)
        y = fmt_text("cast(%s, dtype=%s)", y, dtype_info[d].name);
    return fmt_text("where(%s, %s, %s)", blind, zero, y);
}

void onnx_attention(Node *n) {
    DType d = node_dtype(n, QUERY);
    bool joined = node_rank(n, QUERY) == 3;
    int64_t heads = attr_int(n, "q_num_heads", 0), kv_heads = attr_int(n, "kv_num_heads", 0);
    int64_t mode = attr_int(n, "qk_matmul_output_mode", 0);
    double cap = attr_float(n, "softcap", 0.0);
    const Val *query = split_heads(n, QUERY, "query", heads);
    const Val *own_key = split_heads(n, KEY, "key", kv_heads),
              *own_value = split_heads(n, VALUE, "value", kv_heads);
    if (node_has(n, PAST_KEY) != node_has(n, PAST_VALUE) || mode < 0 || mode > 3)
        node_refuse(n, mode < 0 || mode > 3 ? "of this output mode" : "with half a past");
    if (n->failed)
        return;
    Val *key = append_past(n, own_key, PAST_KEY, "present_key");
    Val *value = append_past(n, own_value, PAST_VALUE, "present_value");
    const char *scale = n->failed ? NULL : read_scale(n, query, d);
    const char *keys = repeat_heads(n, key, query), *values = repeat_heads(n, value, query);
    const char *seen = n->failed ? NULL : read_sight(n, query, key, d);
    if (n->failed)
        return;
    Num dims[] = {query->dims[BATCH], query->dims[HEADS], query->dims[PLACES], key->dims[PLACES]};
    const char *products = node_let(n, "products",
                                    "(%s * %s) @@ transpose(%s * %s, axes=[0, 1, 3, 2])",
                                    query->text, scale, keys, scale);
    const char *capped = products;
    if (cap > 0)
        capped = node_let(n, "capped", "%s * tanh(%s / %s)", float_text(cap, d), products,
                          float_text(cap, d));
    const char *logits = seen ? node_let(n, "logits", "%s + %s", capped, seen) : capped;
    const char *weights = node_let(n, "weights", "%s", weights_of(n, logits, seen, d));
    if (n->failed)
        return;
    Val *out = val_like(query, fmt_text("%s @@ %s", weights, values));
    out->dims = mem_new_n(Num, 4);
    memcpy(out->dims, query->dims, 4 * sizeof *out->dims);
    out->dims[FEATURES] = value->dims[FEATURES];
    node_bind(n, 0, joined ? join_heads(out, fmt_text("(%s)", out->text)) : out);
    if (node_wants(n, 1))
        node_bind(n, 1, val_like(key, fmt_text("copy(%s)", key->text)));
    if (node_wants(n, 2))
        node_bind(n, 2, val_like(value, fmt_text("copy(%s)", value->text)));
    const char *const outputs[] = {products, capped, logits, weights};
    if (node_wants(n, 3))
        node_bind(n, 3, val_tensor(fmt_text("copy(%s)", outputs[mode]), d, 4, dims));
}

/* ---- RotaryEmbedding -------------------------------------------------------------------------- */

/* (batch, places, half), or (places, half) that all texts share, beside (batch, heads, places, half). */
static const char *read_cache(Node *n, uint32_t i, const char *hint) {
    const char *cache = node_text(n, i);
    if (node_has(n, 3))
        cache = fmt_text("take(%s, %s, axis=0)", cache, node_text(n, 3));
    return node_let(n, hint, "expand_dims(%s, axis=1)", cache);
}

void onnx_rotary_embedding(Node *n) {
    int64_t heads = attr_int(n, "num_heads", 0), part = attr_int(n, "rotary_embedding_dim", 0);
    bool interleaved = attr_int(n, "interleaved", 0) != 0, joined = node_rank(n, 0) == 3;
    const Val *x = split_heads(n, 0, "rows", heads);
    if (n->failed)
        return;
    if (node_rank(n, 1) != (node_has(n, 3) ? 2 : 3) || !x->dims[FEATURES].known ||
        part > x->dims[FEATURES].n || part < 0 || part % 2) {
        node_refuse(n, "of a number of features that is not known, or with such a cache");
        return;
    }
    int64_t all = x->dims[FEATURES].n, turned = part ? part : all;
    const char *cosines = read_cache(n, 1, "cosines"), *sines = read_cache(n, 2, "sines");
    const char *whole = x->text, *a, *b;
    if (turned < all)
        whole = node_let(n, "turned", "%s[:, :, :, 0:%lld]", x->text, (long long)turned);
    if (interleaved) {
        a = node_let(n, "real", "%s[:, :, :, ::2]", whole);
        b = node_let(n, "imaginary", "%s[:, :, :, 1::2]", whole);
    } else {
        a = node_let(n, "real", "%s[:, :, :, 0:%lld]", whole, (long long)(turned / 2));
        b = node_let(n, "imaginary", "%s[:, :, :, %lld:]", whole, (long long)(turned / 2));
    }
    const char *real = fmt_text("%s * %s - %s * %s", cosines, a, sines, b);
    const char *imaginary = fmt_text("%s * %s + %s * %s", sines, a, cosines, b);
    const char *text = interleaved
                           ? fmt_text("reshape(stack((%s, %s), axis=-1), newshape=[0, 0, 0, %lld])",
                                      real, imaginary, (long long)turned)
                           : fmt_text("concatenate((%s, %s), axis=3)", real, imaginary);
    if (turned < all)
        text = fmt_text("concatenate((%s, %s[:, :, :, %lld:]), axis=3)", text, x->text,
                        (long long)turned);
    node_bind(n, 0, joined ? join_heads(x, text) : val_like(x, text));
}
