/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a relocatable ELF object of one kernel into executable memory: sections laid out one after
 * the other, the few relocations that LLVM makes for such code applied, calls of the C library led
 * over stubs (it may be further away than a near call reaches). Pages are written first and made
 * executable after. Objects come from LLVM or, checked, from the cache: still, nothing outside the
 * object is read. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "jit/internal.h"

#include <elf.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void (*AnyFn)(void);
typedef struct Known {
    const char *name;
    AnyFn fn;
} Known;

/* What compiled code may call. */
static AnyFn known_find(const char *name) {
#define FN(f) {#f, (AnyFn)(f)},
#define MATH(x) FN(x) FN(x##f)
#define X(e, name, n) MATH(name)
    static const Known known[] = {MATH_FNS(X) MATH(fma) MATH(fmod) MATH(floor) MATH(ceil) MATH(
        trunc) MATH(roundeven) MATH(sqrt) MATH(rint) FN(memcpy) FN(memset) FN(memmove)};
#undef X
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].fn;
    return NULL;
}

enum { MAX_SECTIONS = 64, SLOT = 16, MAX_SLOTS = 64 };

typedef struct Loader {
    const unsigned char *file;
    size_t n;
    const Elf64_Shdr *sections;
    int nsections;
    size_t at[MAX_SECTIONS]; /* offset in memory; SIZE_MAX: not loaded */
    unsigned char *memory;
    size_t slots; /* offset of the stubs */
    int nslots;
    uint64_t targets[MAX_SLOTS];
    const char *why;
} Loader;

static const void *bytes_at(Loader *l, uint64_t offset, uint64_t size) {
    return offset <= l->n && size <= l->n - offset ? l->file + offset : NULL;
}

static bool fail(Loader *l, const char *why) {
    l->why = why;
    return false;
}

/* A slot is a pointer, which a GOT relocation wants, and room for a jump through it. */
static uint64_t slot_of(Loader *l, uint64_t target, bool jump) {
    int i = 0;
    while (i < l->nslots && l->targets[i] != target)
        i++;
    if (i == MAX_SLOTS)
        return 0;
    unsigned char *p = l->memory + l->slots + (size_t)i * 2 * SLOT;
    if (i == l->nslots) {
        l->nslots++;
        l->targets[i] = target;
        memcpy(p, &target, 8);
#if defined(__x86_64__)
        /* jmp *[rip - 22] */
        static const unsigned char code[6] = {0xff, 0x25, 0xea, 0xff, 0xff, 0xff};
        memcpy(p + SLOT, code, sizeof code);
#elif defined(__aarch64__)
        /* ldr x16, . - 16; br x16 */
        static const uint32_t code[2] = {0x58ffff90, 0xd61f0200};
        memcpy(p + SLOT, code, sizeof code);
#endif
    }
    return (uint64_t)(uintptr_t)(jump ? p + SLOT : p);
}

static bool put32(unsigned char *p, int64_t v, bool is_signed) {
    int32_t narrow = (int32_t)v;
    memcpy(p, &narrow, 4);
    return is_signed ? narrow == v : (uint32_t)narrow == (uint64_t)v;
}

#if defined(__aarch64__)
static void patch(unsigned char *p, uint32_t clear, uint32_t set) {
    uint32_t word;
    memcpy(&word, p, 4);
    word = (word & ~clear) | set;
    memcpy(p, &word, 4);
}
static void page(unsigned char *p, uint64_t target, uint64_t here) {
    int64_t d = (int64_t)((target >> 12) - (here >> 12));
    patch(p, 0x60ffffe0u, (uint32_t)((d & 3) << 29 | (d >> 2 & 0x7ffff) << 5));
}
#endif

/* S: the symbol's address, external: it is a C library function. */
static bool relocate(Loader *l, unsigned char *p, uint32_t type, uint64_t s, int64_t addend,
                     bool external) {
    uint64_t here = (uint64_t)(uintptr_t)p;
#if defined(__x86_64__)
    switch (type) {
    case R_X86_64_NONE: return true;
    case R_X86_64_64: {
        uint64_t v = s + (uint64_t)addend;
        memcpy(p, &v, 8);
        return true;
    }
    case R_X86_64_PLT32:
    case R_X86_64_PC32:
        if (external && !(s = slot_of(l, s, true)))
            return fail(l, "too many external functions");
        return put32(p, (int64_t)(s + (uint64_t)addend - here), true) || fail(l, "out of reach");
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
        if (!(s = slot_of(l, s, false)))
            return fail(l, "too many external functions");
        return put32(p, (int64_t)(s + (uint64_t)addend - here), true) || fail(l, "out of reach");
    }
#elif defined(__aarch64__)
    uint64_t v = s + (uint64_t)addend;
    switch (type) {
    case R_AARCH64_NONE: return true;
    case R_AARCH64_ABS64: memcpy(p, &v, 8); return true;
    case R_AARCH64_PREL32: return put32(p, (int64_t)(v - here), true) || fail(l, "out of reach");
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26:
        if (external && !(v = slot_of(l, s, true)))
            return fail(l, "too many external functions");
        patch(p, 0x03ffffffu, (uint32_t)((v - here) >> 2 & 0x03ffffffu));
        return true;
    case R_AARCH64_ADR_GOT_PAGE:
        if (!(v = slot_of(l, s, false)))
            return fail(l, "too many external functions");
        page(p, v, here);
        return true;
    case R_AARCH64_LD64_GOT_LO12_NC:
        if (!(v = slot_of(l, s, false)))
            return fail(l, "too many external functions");
        patch(p, 0xfffu << 10, (uint32_t)((v & 0xfff) >> 3 << 10));
        return true;
    case R_AARCH64_ADR_PREL_PG_HI21: page(p, v, here); return true;
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC:
        patch(p, 0xfffu << 10, (uint32_t)((v & 0xfff) << 10));
        return true;
    case R_AARCH64_LDST16_ABS_LO12_NC:
        patch(p, 0xfffu << 10, (uint32_t)((v & 0xfff) >> 1 << 10));
        return true;
    case R_AARCH64_LDST32_ABS_LO12_NC:
        patch(p, 0xfffu << 10, (uint32_t)((v & 0xfff) >> 2 << 10));
        return true;
    case R_AARCH64_LDST64_ABS_LO12_NC:
        patch(p, 0xfffu << 10, (uint32_t)((v & 0xfff) >> 3 << 10));
        return true;
    case R_AARCH64_LDST128_ABS_LO12_NC:
        patch(p, 0xfffu << 10, (uint32_t)((v & 0xfff) >> 4 << 10));
        return true;
    }
#else
    (void)p, (void)type, (void)s, (void)addend, (void)external, (void)here;
#endif
    return fail(l, "a relocation that is not known");
}

static bool relocate_section(Loader *l, const Elf64_Shdr *rel, const Elf64_Shdr *symtab) {
    int to = (int)rel->sh_info;
    if (to <= 0 || to >= l->nsections || l->at[to] == SIZE_MAX)
        return true;
    const Elf64_Rela *r = bytes_at(l, rel->sh_offset, rel->sh_size);
    const Elf64_Sym *symbols = bytes_at(l, symtab->sh_offset, symtab->sh_size);
    if (symtab->sh_link >= (uint32_t)l->nsections)
        return fail(l, "damaged");
    const Elf64_Shdr *strtab = &l->sections[symtab->sh_link];
    const char *names = bytes_at(l, strtab->sh_offset, strtab->sh_size);
    if (!r || !symbols || !names || !strtab->sh_size || names[strtab->sh_size - 1])
        return fail(l, "damaged");
    size_t nsymbols = symtab->sh_size / sizeof *symbols;
    for (size_t i = 0; i < rel->sh_size / sizeof *r; i++) {
        size_t id = ELF64_R_SYM(r[i].r_info);
        uint64_t size = l->sections[to].sh_size;
        if (id >= nsymbols || size < 8 || r[i].r_offset > size - 4)
            return fail(l, "damaged");
        const Elf64_Sym *s = &symbols[id];
        bool external = s->st_shndx == SHN_UNDEF;
        uint64_t address;
        if (external) {
            if (s->st_name >= strtab->sh_size)
                return fail(l, "damaged");
            AnyFn fn = known_find(names + s->st_name);
            if (!fn)
                return fail(l, "calls a function that is not known");
            memcpy(&address, &fn, sizeof address);
        } else {
            if (s->st_shndx >= l->nsections || l->at[s->st_shndx] == SIZE_MAX)
                return fail(l, "damaged");
            address = (uint64_t)(uintptr_t)(l->memory + l->at[s->st_shndx]) + s->st_value;
        }
        if (!relocate(l, l->memory + l->at[to] + r[i].r_offset, ELF64_R_TYPE(r[i].r_info), address,
                      r[i].r_addend, external))
            return false;
    }
    return true;
}

static bool find_entry(Loader *l, const Elf64_Shdr *symtab, KernelCode *entry) {
    const Elf64_Sym *symbols = bytes_at(l, symtab->sh_offset, symtab->sh_size);
    const Elf64_Shdr *strtab = &l->sections[symtab->sh_link];
    const char *names = bytes_at(l, strtab->sh_offset, strtab->sh_size);
    for (size_t i = 0; i < symtab->sh_size / sizeof *symbols; i++) {
        const Elf64_Sym *s = &symbols[i];
        if (s->st_name >= strtab->sh_size || strcmp(names + s->st_name, "kernel") != 0 ||
            s->st_shndx >= l->nsections || l->at[s->st_shndx] == SIZE_MAX)
            continue;
        unsigned char *p = l->memory + l->at[s->st_shndx] + s->st_value;
        memcpy(entry, &p, sizeof p);
        return true;
    }
    return fail(l, "no entry");
}

static bool load(Loader *l, JitCode *code) {
    const Elf64_Ehdr *h = bytes_at(l, 0, sizeof *h);
    if (!h || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_type != ET_REL ||
        h->e_shnum > MAX_SECTIONS || h->e_shentsize != sizeof(Elf64_Shdr))
        return fail(l, "not an object file");
    l->nsections = h->e_shnum;
    l->sections = bytes_at(l, h->e_shoff, sizeof(Elf64_Shdr) * h->e_shnum);
    if (!l->sections)
        return fail(l, "damaged");
    size_t total = 0;
    const Elf64_Shdr *symtab = NULL;
    for (int i = 0; i < l->nsections; i++) {
        const Elf64_Shdr *s = &l->sections[i];
        l->at[i] = SIZE_MAX;
        if (s->sh_type == SHT_SYMTAB)
            symtab = s;
        if (!(s->sh_flags & SHF_ALLOC) || s->sh_size == 0)
            continue;
        size_t align = s->sh_addralign ? s->sh_addralign : 1;
        if (align > 4096 || s->sh_size > 1u << 28)
            return fail(l, "damaged");
        total = (total + align - 1) & -align;
        l->at[i] = total;
        total += s->sh_size;
    }
    if (!symtab)
        return fail(l, "damaged");
    l->slots = (total + 63) & ~(size_t)63;
    long page_size = sysconf(_SC_PAGESIZE);
    total = l->slots + (size_t)MAX_SLOTS * 2 * SLOT;
    total = (total + (size_t)page_size - 1) & -(size_t)page_size;
    void *memory = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return fail(l, "no memory for code");
    l->memory = memory;
    code->memory = memory;
    code->bytes = total;
    for (int i = 0; i < l->nsections; i++) {
        const Elf64_Shdr *s = &l->sections[i];
        if (l->at[i] == SIZE_MAX || s->sh_type == SHT_NOBITS)
            continue;
        const void *from = bytes_at(l, s->sh_offset, s->sh_size);
        if (!from)
            return fail(l, "damaged");
        memcpy(l->memory + l->at[i], from, s->sh_size);
    }
    for (int i = 0; i < l->nsections; i++)
        if (l->sections[i].sh_type == SHT_RELA && !relocate_section(l, &l->sections[i], symtab))
            return false;
    if (!find_entry(l, symtab, &code->entry))
        return false;
    if (mprotect(memory, total, PROT_READ | PROT_EXEC) != 0)
        return fail(l, "memory cannot be made executable");
    __builtin___clear_cache(memory, (char *)memory + total);
    return true;
}

bool jit_code_load(JitCode *code, const void *object, size_t n, const char **why) {
    Loader l = {.file = object, .n = n};
    *code = (JitCode){0};
    if (load(&l, code))
        return true;
    *why = l.why;
    jit_code_fini(code);
    return false;
}

void jit_code_fini(JitCode *code) {
    if (code->memory)
        munmap(code->memory, code->bytes);
    *code = (JitCode){0};
}
