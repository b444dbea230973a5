/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels met so far: by recipe, then by signature; behind them the cache on disk, behind that
 * LLVM. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "base/mem.h"
#include "jit/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* p, of n bytes; running out of memory ends the evaluation (base/mem.h). */
static void *must(void *p, size_t n) {
    if (!p)
        mem_out_of_memory(n);
    return p;
}

/* ---- recipes --------------------------------------------------------------------------------- */

static void look(JitRecipe *jr) {
    const Recipe *r = &jr->recipe;
    uint32_t plain = 0, other = 0;
    double cost = 0.05 * r->noutputs;
    for (int pass = 0; pass < 2; pass++) {
        const Scalar *code = pass ? r->epilogue : r->body;
        int n = pass ? r->nepilogue : r->nbody;
        double each = cost; /* an epilogue runs once a result, which is little beside the fold */
        for (int i = 0; i < n; i++) {
            cost += 0.012;
            switch ((int)code[i].op) {
            case SC_IOTA: jr->iota_axes |= (uint16_t)(1u << code[i].a); break;
            case SC_LOAD:
                if (!pass)
                    plain |= 1u << code[i].a;
                break;
            case SC_LOAD_AT:
            case SC_LOAD_IF:
                other |= 1u << code[i].a;
                cost += 1;
                break;
            case SC_CALL1:
            case SC_CALL2:
                jr->has_calls = true;
                cost += 15;
                break;
            }
        }
        if (pass)
            cost = each;
    }
    cost += 0.05 * __builtin_popcount(plain | other);
    jr->plain_loads = plain & ~other;
    jr->loads = plain | other;
    jr->cost = cost;
}

JitRecipe *jit_recipe_get(Jit *jit, const Recipe *r) {
    /* The same code at the same address is nearly always the same recipe: compare, do not hash. */
    uintptr_t address = (uintptr_t)r->body >> 4;
    JitRecipe **recent = &jit->recent[(address ^ address >> 8) % JIT_RECENT];
    if (*recent && recipe_equal(&(*recent)->recipe, r))
        return *recent;
    uint64_t hash = recipe_hash(r);
    JitRecipe **bucket = &jit->buckets[(hash ^ hash >> 32) % JIT_BUCKETS];
    for (JitRecipe *jr = *bucket; jr; jr = jr->next)
        if (jr->hash == hash && recipe_equal(&jr->recipe, r))
            return *recent = jr;
    size_t n = (size_t)r->nbody + r->nepilogue, bytes = (n + 1) * sizeof *r->body;
    JitRecipe *jr = must(calloc(1, sizeof *jr), sizeof *jr);
    jr->hash = hash;
    jr->recipe = *r;
    jr->code = malloc(bytes);
    if (!jr->code) {
        free(jr);
        mem_out_of_memory(bytes);
    }
    memcpy(jr->code, r->body, r->nbody * sizeof *jr->code);
    if (r->nepilogue)
        memcpy(jr->code + r->nbody, r->epilogue, r->nepilogue * sizeof *jr->code);
    jr->recipe.body = jr->code;
    jr->recipe.epilogue = jr->code + r->nbody;
    look(jr);
    jr->next = *bucket;
    *bucket = jr;
    return *recent = jr;
}

/* ---- keys ------------------------------------------------------------------------------------ */

typedef struct Bytes {
    unsigned char *data;
    size_t n, cap;
} Bytes;

static void put(Bytes *b, const void *p, size_t n) {
    if (b->n + n > b->cap) {
        size_t cap = (b->n + n) * 2;
        unsigned char *data = realloc(b->data, cap);
        if (!data) {
            free(b->data);
            mem_out_of_memory(cap);
        }
        b->data = data;
        b->cap = cap;
    }
    memcpy(b->data + b->n, p, n);
    b->n += n;
}
static void put_int(Bytes *b, int64_t v) { put(b, &v, sizeof v); }

static void put_code(Bytes *b, const Scalar *code, int n) {
    put_int(b, n);
    for (int i = 0; i < n; i++) {
        put_int(b, code[i].op | code[i].type << 8 | code[i].from << 16);
        put_int(b, code[i].a);
        put_int(b, code[i].b);
        put_int(b, code[i].c);
        put_int(b, code[i].imm.i);
    }
}

/* Everything a kernel's code depends on. */
static Bytes key_of(const Jit *jit, const Recipe *r, const KernelSig *sig) {
    Bytes b = {0};
    int nptr = r->noperands + r->noutputs;
    put_int(&b, JIT_ABI);
    put(&b, jit->library_id, sizeof jit->library_id);
    put(&b, jit->cpu.id, sizeof jit->cpu.id);
    put_int(&b, r->kind);
    put_int(&b, r->combine);
    put_int(&b, r->last);
    put_int(&b, r->rank | r->nreduce << 8 | r->noperands << 16 | r->noutputs << 24);
    put_int(&b, r->acc_type);
    put(&b, r->in_types, r->noperands);
    put(&b, r->out_types, r->noutputs);
    put(&b, r->results, sizeof r->results[0] * (r->kind == RECIPE_SCATTER ? 2u : r->noutputs));
    put_code(&b, r->body, r->nbody);
    put_code(&b, r->epilogue, r->nepilogue);
    put(&b, r->parts, sizeof r->parts[0] * r->nparts);
    put(&b, sig, offsetof(KernelSig, zero));
    put(&b, sig->zero, sizeof sig->zero[0] * (size_t)nptr);
    put(&b, sig->unit, sizeof sig->unit[0] * (size_t)nptr);
    return b;
}

static bool same_sig(const KernelSig *a, const KernelSig *b, int nptr) {
    return memcmp(a, b, offsetof(KernelSig, zero)) == 0 &&
           memcmp(a->zero, b->zero, sizeof a->zero[0] * (size_t)nptr) == 0 &&
           memcmp(a->unit, b->unit, sizeof a->unit[0] * (size_t)nptr) == 0;
}

/* ---- kernels --------------------------------------------------------------------------------- */

const JitApi *jit_api_get(Jit *jit, const char **why) {
    if (!jit->api && !jit->api_failed) {
        const char *reason = "";
        jit->api = jit_library_open(jit->library, &reason);
        if (!jit->api) {
            jit->api_failed = true;
            jit->api_why = strdup(reason);
        }
    }
    if (!jit->api)
        *why = jit->api_why ? jit->api_why : "out of memory";
    return jit->api;
}

static bool make(Jit *jit, JitRecipe *jr, JitKernel *k) {
    Bytes key = key_of(jit, &jr->recipe, &k->sig);
    size_t n = 0;
    const char *why = "";
    char text[256] = "";
    char *object = jit_cache_find(&jit->cache, key.data, key.n, &n);
    bool ok = object && jit_code_load(&k->code, object, n, &why);
    if (ok) {
        jit->stats.loaded++;
    } else {
        free(object);
        object = NULL;
        const JitApi *api = jit_api_get(jit, &why);
        if (api && !api->compile(&jr->recipe, &k->sig, JIT_OBJECT, &object, &n, text))
            why = text;
        ok = object && jit_code_load(&k->code, object, n, &why);
        if (ok) {
            jit->stats.compiled++;
            jit_cache_put(&jit->cache, key.data, key.n, object, n);
        }
    }
    if (!ok) {
        free((char *)jr->why);
        jr->why = strdup(why);
    }
    free(object);
    free(key.data);
    return ok;
}

KernelCode jit_kernel_get(Jit *jit, JitRecipe *jr, const KernelSig *sig) {
    int nptr = jr->recipe.noperands + jr->recipe.noutputs;
    for (JitKernel *k = jr->kernels; k; k = k->next)
        if (same_sig(&k->sig, sig, nptr))
            return k->code.entry;
    JitKernel *k = must(calloc(1, sizeof *k), sizeof *k);
    k->sig = *sig;
    double begin = now();
    make(jit, jr, k);
    jit->stats.seconds += now() - begin;
    k->next = jr->kernels;
    jr->kernels = k;
    return k->code.entry;
}

void jit_table_fini(Jit *jit) {
    for (int i = 0; i < JIT_BUCKETS; i++)
        for (JitRecipe *jr = jit->buckets[i], *next; jr; jr = next) {
            next = jr->next;
            for (JitKernel *k = jr->kernels, *nextk; k; k = nextk) {
                nextk = k->next;
                jit_code_fini(&k->code);
                free(k);
            }
            free((char *)jr->why);
            free(jr->code);
            free(jr);
        }
}
