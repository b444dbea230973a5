/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/line/place.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"

static const char *place_of(const char *variable, const char *below_home, const char *name) {
    const char *folder = getenv(variable), *home = getenv("HOME");
    if (folder && folder[0] == '/')
        return fmt_text("%s/relay/%s", folder, name);
    return home && home[0] == '/' ? fmt_text("%s/%s/relay/%s", home, below_home, name) : NULL;
}

const char *place_of_state(const char *name) {
    return place_of("XDG_STATE_HOME", ".local/state", name);
}

const char *place_of_settings(const char *name) {
    return place_of("XDG_CONFIG_HOME", ".config", name);
}

bool place_make_parents(const char *path) {
    char *copy = mem_strdup(path);
    for (char *p = copy + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            if (mkdir(copy, 0700) != 0 && errno != EEXIST)
                return false;
            *p = '/';
        }
    return true;
}
