/* SPDX-License-Identifier: Apache-2.0 */
/* `relay watch FILE`: runs a file again whenever it, or a module it imports, is saved, and shows the values of its shown
 * items beside their lines, of which only those that changed. Each run has a session of its own. */
#ifndef REPL_LIVE_H
#define REPL_LIVE_H

#include <signal.h>

#include "repl/session.h"

/* How the face makes and ends sessions; interrupted: Ctrl-C came. */
typedef struct LiveFace {
    Session *(*start)(void *ctx); /* NULL: it cannot */
    void (*finish)(void *ctx, Session *s);
    void *ctx;
    volatile sig_atomic_t *interrupted, *broken; /* broken: nobody reads what is said */
} LiveFace;

/* Until Ctrl-C while nothing runs. False where no session can be made. */
bool live_run(const LiveFace *face, const char *path);

#endif
