/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign operators by libffi and dlopen. The call is prepared once, when the item runs; sizes that
 * the type leaves open are found from the arguments of each call. */
#include "eval/foreign.h"

#include <dlfcn.h>
#include <elf.h>
#include <ffi.h>
#include <link.h>
#include <string.h>

#include "tensor/dlpack.h"
#include "types/type/dim.h"

enum { MAX_PARAMS = 64 };

typedef struct Bound {
    void (*fn)(void);
    ffi_cif cif;
    uint32_t nparams;
    Type **params; /* resolved */
    Type *result;  /* NULL: () */
    bool result_is_tensor;
} Bound;

static ffi_type *scalar_ffi(DType t) {
    switch (t) {
    case DT_BOOL:
    case DT_U8: return &ffi_type_uint8;
    case DT_I8: return &ffi_type_sint8;
    case DT_I16: return &ffi_type_sint16;
    case DT_I32: return &ffi_type_sint32;
    case DT_I64: return &ffi_type_sint64;
    case DT_U16:
    case DT_F16:
    case DT_BF16: return &ffi_type_uint16;
    case DT_U32: return &ffi_type_uint32;
    case DT_U64: return &ffi_type_uint64;
    case DT_F32: return &ffi_type_float;
    case DT_F64: return &ffi_type_double;
    case DTYPE_COUNT: break;
    }
    BUG("no such dtype: %d", (int)t);
}

/* Takes a tensor type apart; false for any other type. */
static bool tensor_parts(Type *t, DType *dtype, uint32_t *rank, Type ***dims) {
    t = type_resolve(t);
    return t->tag == TY_TENSOR && type_get_dtype(t, dtype) && type_get_rank(t, rank, dims) &&
           *rank <= TENSOR_MAX_RANK;
}

/* ---- a call ---------------------------------------------------------------------------------- */

/* A named or unknown size is that of the first axis that has it. */
static DimKnown size_of(void *sizes, Type *name, int64_t *out) {
    const int64_t *size = map_find(sizes, name);
    if (!size)
        return DIM_NOT_KNOWN;
    *out = *size;
    return DIM_KNOWN;
}

static void note_names(const Tensor *t, Type **dims, Map *sizes) {
    for (int i = 0; i < t->rank; i++) {
        Type *d = type_resolve(dims[i]);
        if (d->tag == TY_DIM || map_has(sizes, d))
            continue;
        int64_t *size = mem_bytes(sizeof *size);
        *size = t->shape[i];
        map_set(sizes, d, size);
    }
}

static bool check_dims(const OpCall *call, uint32_t arg, Type **dims, Map *sizes) {
    const Tensor *t = call->in[arg];
    for (int i = 0; i < t->rank; i++) {
        int64_t expected = -1;
        if (dim_evaluate(dims[i], size_of, sizes, &expected) == DIM_NOT_KNOWN ||
            expected == t->shape[i])
            continue;
        diag_error(call->diags, DIAG_R0314, call->span,
                   "axis %d of argument %u of `%s` is %lld, not %lld", i, arg + 1, call->op->name,
                   (long long)t->shape[i], (long long)expected);
        return false;
    }
    return true;
}

static int foreign_shape(const OpCall *call, OutSpec *out) {
    const Bound *b = call->op->foreign->handle;
    Map sizes = {0};
    DType dtype;
    uint32_t rank;
    Type **dims;
    for (uint32_t i = 0; i < b->nparams; i++) {
        if (!tensor_parts(b->params[i], &dtype, &rank, &dims))
            BUG("a foreign operator of a type that is no tensor");
        if (call->in[i]->dtype != dtype || call->in[i]->rank != (int)rank)
            BUG("argument %u of `%s` has another type", i + 1, call->op->name);
        note_names(call->in[i], dims, &sizes);
    }
    for (uint32_t i = 0; i < b->nparams; i++)
        if (tensor_parts(b->params[i], &dtype, &rank, &dims) && !check_dims(call, i, dims, &sizes))
            return -1;
    if (!b->result)
        return 0;
    if (!tensor_parts(b->result, &out->dtype, &rank, &dims))
        BUG("a foreign operator with a result that is no tensor");
    out->rank = (int)rank;
    for (uint32_t i = 0; i < rank; i++) {
        if (dim_evaluate(dims[i], size_of, &sizes, &out->shape[i]) != DIM_KNOWN ||
            out->shape[i] < 0) {
            diag_error(call->diags, DIAG_R0612, call->span,
                       "axis %u of the result of `%s` has no size that an argument gives", i,
                       call->op->name);
            return -1;
        }
    }
    return 1;
}

static bool foreign_eval(const OpCall *call, Tensor *const *out) {
    const Bound *b = call->op->foreign->handle;
    DLTensor tensors[MAX_PARAMS + 1], *pointers[MAX_PARAMS + 1];
    int64_t shapes[MAX_PARAMS + 1][TENSOR_MAX_RANK]; /* the callee may write to them */
    void *values[MAX_PARAMS + 1];
    Tensor *kept[MAX_PARAMS + 1]; /* alive during the call */
    uint32_t n = 0;
    for (; n < b->nparams; n++) {
        kept[n] = tensor_canonical(call->in[n]);
        if (kept[n]->rank == 0) {
            values[n] = tensor_data(kept[n]);
        } else {
            tensors[n] = dlpack_of(kept[n], shapes[n], NULL);
            pointers[n] = &tensors[n];
            values[n] = &pointers[n];
        }
    }
    if (b->result_is_tensor) {
        tensors[n] = dlpack_of(out[0], shapes[n], NULL);
        pointers[n] = &tensors[n];
        values[n] = &pointers[n];
    }
    union {
        ffi_arg word;
        uint64_t bits;
        double d;
    } result = {.bits = 0};
    ffi_call((ffi_cif *)&b->cif, b->fn, &result, values);
    if (b->result && !b->result_is_tensor) /* small integers come widened; little endian */
        memcpy(tensor_data(out[0]), &result, dtype_size(out[0]->dtype));
    __asm__ volatile("" : : "r"(kept) : "memory");
    return true;
}

/* ---- binding --------------------------------------------------------------------------------- */

static bool refuse(Diags *diags, const Foreign *f, const char *why) {
    Diag *d = diag_error(diags, DIAG_R0612, f->span, "`%s` cannot be used", f->symbol);
    diag_add_fact(d, "%s", why);
    return false;
}

typedef struct CodeSearch {
    uintptr_t address;
    bool found;
} CodeSearch;

static int find_code(struct dl_phdr_info *info, size_t size, void *search) {
    CodeSearch *s = search;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) && s->address >= begin &&
            s->address - begin < part->p_memsz)
            s->found = true;
    }
    return s->found;
}

/* Whether code stands there, as far as the library tells: not a variable such as `environ`. */
static bool is_function(void *symbol) {
    CodeSearch search = {(uintptr_t)symbol, false};
    dl_iterate_phdr(find_code, &search);
    Dl_info info;
    ElfW(Sym) *entry = NULL;
    bool named = dladdr1(symbol, &info, (void **)&entry, RTLD_DL_SYMENT) && entry &&
                 info.dli_saddr == symbol;
    return search.found && !(named && ELF64_ST_TYPE(entry->st_info) == STT_OBJECT);
}

bool foreign_bind(const Op *op, Diags *diags) {
    ffi_type *args[MAX_PARAMS + 1];
    Foreign *f = op->foreign;
    Type *t = type_resolve(f->type);
    if (t->tag != TY_FN)
        return refuse(diags, f, "its type is no function");
    if (t->nargs > MAX_PARAMS)
        return refuse(diags, f, fmt_text("it takes more than %d arguments", MAX_PARAMS));
    Bound *b = mem_new(Bound);
    b->nparams = t->nargs;
    b->params = t->args;
    Type *result = type_resolve(t->fn.result);
    DType dtype;
    uint32_t rank, n = 0;
    Type **dims;
    for (; n < t->nargs; n++) {
        if (!tensor_parts(t->args[n], &dtype, &rank, &dims))
            return refuse(diags, f,
                          fmt_text("argument %u is neither a scalar nor a tensor of "
                                   "known rank: %s",
                                   n + 1, type_text(t->args[n])));
        args[n] = rank == 0 ? scalar_ffi(dtype) : &ffi_type_pointer;
    }
    ffi_type *returned = &ffi_type_void;
    if (!type_is_unit(result)) {
        if (!tensor_parts(result, &dtype, &rank, &dims))
            return refuse(diags, f,
                          fmt_text("its result is neither a scalar nor a tensor of known rank: %s",
                                   type_text(result)));
        b->result = result;
        b->result_is_tensor = rank > 0;
        if (rank > 0)
            args[n++] = &ffi_type_pointer;
        else
            returned = scalar_ffi(dtype);
    }
    void *library = dlopen(f->library, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return refuse(diags, f, fmt_text("%s", dlerror()));
    dlerror();
    void *symbol = dlsym(library, f->symbol);
    if (!symbol) {
        dlclose(library);
        return refuse(diags, f, fmt_text("`%s` has no such symbol", f->library));
    }
    if (!is_function(symbol)) {
        dlclose(library);
        return refuse(diags, f, fmt_text("`%s` of `%s` is no function", f->symbol, f->library));
    }
    memcpy(&b->fn, &symbol, sizeof symbol);
    ffi_type **kept = mem_new_n(ffi_type *, n + 1);
    memcpy(kept, args, n * sizeof *kept);
    if (ffi_prep_cif(&b->cif, FFI_DEFAULT_ABI, n, returned, kept) != FFI_OK)
        return refuse(diags, f, "libffi cannot call a function of this type");
    f->handle = b;
    Op *made = (Op *)(uintptr_t)op;
    made->shape = foreign_shape;
    made->eval = foreign_eval;
    made->lower = NULL;
    made->tuple = !b->result;
    return true;
}
