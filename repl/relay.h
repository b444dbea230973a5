/* SPDX-License-Identifier: Apache-2.0 */
/* Relay from C: sessions, values, and tensors that are handed over without copying (DLPack).
 *
 *     RelaySession *s = relay_open(NULL);
 *     relay_release(relay_evaluate(s, "def loss(w, x, y) { mean((x @@ w - y) ** 2) }"));
 *     RelayValue *arguments[] = {w, x, y};                        // of relay_from_dlpack
 *     RelayValue *result = relay_call(s, "grad(loss)", arguments, 3);
 *     if (!result)
 *         fputs(relay_error(s), stderr);
 *     RelayValue *gradient = relay_item(relay_item(result, 1), 0); // (loss, (dw, dx, dy))
 *
 * What fails returns NULL or false, and relay_error tells why, as the prompt would: nothing ends the process
 * and nothing is printed. A text is checked before it runs, and so is a call: its arguments have types, sizes included.
 *
 * Threads. Any thread may call any function. The library does all work on one thread of its own, which begins with
 * the first session, one call after the other; so a process that forks begins its sessions in the child. What
 * relay_set_output gets is called on that thread, and may not call back. relay_interrupt alone does not wait.
 *
 * Link with `pkg-config --cflags --libs relay`. */
#ifndef RELAY_H
#define RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RELAY_API __attribute__((visibility("default")))
#else
#define RELAY_API
#endif

typedef struct RelaySession RelaySession; /* definitions, as of one prompt */
typedef struct RelayValue
    RelayValue;         /* a value of one session and its type; relay_release gives it back */
struct DLManagedTensor; /* dlpack.h of DLPack 0.x or of 1.x, unversioned */

/* ---- sessions -------------------------------------------------------------------------------- */

/* All zero is what the prompt begins with. */
typedef struct RelayOptions {
    int threads; /* at most so many for a kernel; 0: as many as cores */
    size_t
        memory_bytes; /* most memory for values and calls; 0: seven tenths of the machine's. It bounds the process */
    size_t stack_bytes;   /* of it, for calls; 0: 1 GB */
    uint64_t seed;        /* of random numbers */
    bool without_kernels; /* operators by their reference evaluation: slow, the same bits */
} RelayOptions;

/* NULL: the library could not begin, for want of memory. options: may be NULL. */
RELAY_API RelaySession *relay_open(const RelayOptions *options);
/* Its values must have been released. NULL is nothing. */
RELAY_API void relay_close(RelaySession *session);

/* What the last call on this session that failed has to say, diagnostics with the lines they are about; "" after
 * one that did not. It stands until the next call on the session. */
RELAY_API const char *relay_error(const RelaySession *session);
/* What programs print goes here; without it, to standard output. */
RELAY_API void relay_set_output(RelaySession *session,
                                void (*write)(void *context, const char *text, size_t length),
                                void *context);
/* From any thread or a signal handler: what is running ends soon, and fails. */
RELAY_API void relay_interrupt(RelaySession *session);

/* ---- running --------------------------------------------------------------------------------- */

/* Reads, checks and runs a text: definitions, `let`s, expressions, as at the prompt. The value of its last
 * expression, or () where it has none. */
RELAY_API RelayValue *relay_evaluate(RelaySession *session, const char *text);
/* function(arguments…): the name of a function, or an expression whose value is one. */
RELAY_API RelayValue *relay_call(RelaySession *session, const char *function,
                                 RelayValue *const *arguments, size_t count);
/* As `let name = value` would. */
RELAY_API bool relay_define(RelaySession *session, const char *name, const RelayValue *value);
/* As `:load path` would. */
RELAY_API bool relay_load(RelaySession *session, const char *path);

/* ---- values ---------------------------------------------------------------------------------- */

typedef enum RelayKind {
    RELAY_TENSOR, /* of any rank: a number is a tensor of rank 0 */
    RELAY_TUPLE,
    RELAY_DATA, /* of a declared type, a record or a List */
    RELAY_STRING,
    RELAY_FUNCTION,
    RELAY_REFERENCE,
} RelayKind;

RELAY_API RelayKind relay_kind(const RelayValue *value);
/* Parts of a tuple, elements of a List, fields of other data; 0 of everything else. */
RELAY_API size_t relay_count(const RelayValue *value);
/* The part at `index`, counted from 0; NULL beyond the last. A value of its own. */
RELAY_API RelayValue *relay_item(const RelayValue *value, size_t index);
/* The constructor of data ("Cons", "Leaf"), NULL of everything else. It stands as long as the value. */
RELAY_API const char *relay_constructor(const RelayValue *value);
/* The bytes of a String, which a NUL follows, and their number; NULL of everything else. They stand as long as the value. */
RELAY_API const char *relay_text(const RelayValue *value, size_t *length);
/* `value : type`, as the prompt shows it. It stands as long as the value. */
RELAY_API const char *relay_show(RelayValue *value);
/* NULL is nothing. */
RELAY_API void relay_release(RelayValue *value);

/* A tuple of values, of at least two or of none; a String. NULL: see relay_error. */
RELAY_API RelayValue *relay_tuple(RelaySession *session, RelayValue *const *items, size_t count);
RELAY_API RelayValue *relay_string(RelaySession *session, const char *text, size_t length);

/* ---- tensors: DLPack ------------------------------------------------------------------------- */

/* Takes over a tensor in the machine's own memory; its elements are not copied, and may not be changed until its
 * deleter was called, which happens on the library's thread once no value uses them. NULL: a device, an element type
 * or a layout that is not taken (see relay_error), and the tensor still belongs to the caller. */
RELAY_API RelayValue *relay_from_dlpack(RelaySession *session, struct DLManagedTensor *tensor);
/* The elements of a tensor, row by row, for reading; copied only where they do not lie so already. The caller calls its
 * deleter, which any thread may do, also after the session was closed. NULL: the value is no tensor. */
RELAY_API struct DLManagedTensor *relay_to_dlpack(const RelayValue *value);

#ifdef __cplusplus
}
#endif
#endif
