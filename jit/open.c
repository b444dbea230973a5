/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and opens librelayjit.so: $RELAY_JIT, beside the executable (or librelay.so, where this is part of that), in the
 * build tree (the same place), in ../lib/relay or relay as installed, then in pkglibdir. Around the executable only a
 * library of this user, of root or of the executable's owner is taken, not writable by everybody: a program that lies
 * in /tmp/x looks into /tmp. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "base/mem.h"
#include "jit/internal.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "librelayjit.so"

#if defined(__SANITIZE_ADDRESS__)
#define OPEN_FLAGS (RTLD_NOW | RTLD_LOCAL)
#else
#define OPEN_FLAGS (RTLD_LAZY | RTLD_LOCAL)
#endif

static char *try_file(const char *path, Str *tried) {
    if (access(path, R_OK) == 0)
        return strdup(path);
    str_printf(tried, "%s%s", tried->len ? ", " : "", path);
    return NULL;
}

static bool is_trusted(const char *path, const char *exe) {
    struct stat st, program;
    if (stat(path, &st) != 0 || stat(exe, &program) != 0)
        return false;
    bool owned = st.st_uid == 0 || st.st_uid == geteuid() || st.st_uid == program.st_uid;
    return owned && S_ISREG(st.st_mode) && !(st.st_mode & S_IWOTH);
}

/* The file of the executable or shared library that this function is part of. */
static bool own_file(char path[PATH_MAX]) {
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1((void *)(uintptr_t)own_file, &info, (void **)&map, RTLD_DL_LINKMAP) && map &&
        map->l_name && *map->l_name)
        return realpath(map->l_name, path) != NULL;
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = '\0';
    return n > 0;
}

char *jit_library_find(const char *given, Str *tried) {
    char path[PATH_MAX + 32], exe[PATH_MAX];
    if (given)
        return try_file(given, tried);
    if ((given = getenv("RELAY_JIT")) && *given)
        return try_file(given, tried);
    if (own_file(exe)) {
        char program[PATH_MAX];
        memcpy(program, exe, strlen(exe) + 1);
        const char *dir = dirname(exe);
        /* Unit tests and benchmarks lie one or two folders below the build's root; what was installed
         * may have been moved as a whole. */
        static const char *const up[] = {"", "/..", "/../..", "/../lib/relay", "/relay"};
        for (size_t i = 0; i < sizeof up / sizeof *up; i++) {
            snprintf(path, sizeof path, "%s%s/" LIBRARY, dir, up[i]);
            char *found = try_file(path, tried);
            if (found && is_trusted(found, program))
                return found;
            free(found);
        }
    }
#ifdef RLY_PKGLIBDIR
    return try_file(RLY_PKGLIBDIR "/" LIBRARY, tried);
#else
    return NULL;
#endif
}

const JitApi *jit_library_open(const char *path, const char **why) {
    static const JitHost host = {.abi = JIT_ABI, .out_of_memory = mem_exit};
    void *library = dlopen(path, OPEN_FLAGS);
    if (!library) {
        *why = dlerror();
        return NULL;
    }
    JitEntry entry;
    void *symbol = dlsym(library, JIT_ENTRY);
    if (!symbol) {
        *why = "it is not Relay's compiler";
        return NULL;
    }
    memcpy(&entry, &symbol, sizeof entry);
    const JitApi *api = entry(&host);
    if (!api || api->abi != JIT_ABI) {
        *why = "it belongs to another version of Relay";
        return NULL;
    }
    return api; /* stays open until the process ends: LLVM does not like to be unloaded */
}
