/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines how functions report errors (docs/errors.md explains it at length).
 *
 * A function that can fail returns `int`: 0 on success, -1 on failure. Its last parameter is
 * `struct error *error`; on failure it is filled by the function that found the cause, on success
 * it is not touched. Outputs (`ret_…` parameters) are set on success only.
 *
 *     if (manifest_read(path, &manifest, error) < 0)
 *         return error_wrap(error, "restore step %ld", step);
 *
 * `error_set` and `error_wrap` return -1, so that a failure reads as one line.
 * Library code returns errors: it neither prints them nor exits because of them. The top layer of
 * each program reports them: `main`, the commands of cox, the operator's controllers, the worker's
 * training loop.
 * A `struct error` is a plain value; it owns nothing and need not be released. A caller that does
 * not need the cause may pass NULL, except to functions of cox (operator/cli) and of coxswain-storage
 * (storage), many of which decide by the cause themselves.
 */
#ifndef COXSWAIN_COMMON_ERROR_H
#define COXSWAIN_COMMON_ERROR_H

#include <stdbool.h>
#include <stddef.h>

/* The kinds of errors, by which a caller may decide. Everything else is in the message. */
#define ERROR_KINDS(X)                                                                                                 \
    X(NONE, "no error")                                                                                                \
    X(INVALID, "the input is wrong; the message says what to change")                                                  \
    X(CORRUPT, "stored or received bytes fail their check")                                                            \
    X(TOO_LARGE, "a stated ceiling was reached")                                                                       \
    X(NOT_FOUND, "the named object or file does not exist")                                                            \
    X(ALREADY_EXISTS, "the object or file that was to be created exists already")                                      \
    X(CONFLICT, "somebody else changed it first; read again and retry")                                                \
    X(EXPIRED, "a position in a stream is too old (HTTP 410); start again")                                            \
    X(STALE, "the sender's generation or incarnation is lower than the current one")                                   \
    X(FORBIDDEN, "not allowed")                                                                                        \
    X(UNAVAILABLE, "the other side cannot be reached or is busy; retry later")                                         \
    X(TIMEOUT, "a deadline passed")                                                                                    \
    X(CANCELLED, "cancelled on request")                                                                               \
    X(UNSUPPORTED, "this build, machine or version cannot do it")                                                      \
    X(NO_SPACE, "no space is left on the disk, in a quota or in the memory that was planned")                          \
    X(SYSTEM, "a system call failed; `os_error` holds errno")                                                          \
    X(DEVICE, "a device failed; the work may succeed on another one")                                                  \
    X(NOT_FINITE, "a loss or gradient is infinite or not a number; no weight was changed by it")                       \
    X(INTERNAL, "a bug in this program")

enum error_kind {
#define X(name, meaning) ERROR_##name,
    ERROR_KINDS(X)
#undef X
};

/* Bytes of a message, with its NUL. A longer message loses its end, which becomes "…". */
#define ERROR_MESSAGE_MAX 1024

struct error {
    enum error_kind kind;
    int os_error;                    /* errno, if a system call failed (error_set_errno); else 0 */
    int http_status;                 /* of the answer that caused it, else 0 */
    char message[ERROR_MESSAGE_MAX]; /* a sentence, no newline, no final full stop */
};

#define ERROR_INIT                                                                                                     \
    {                                                                                                                  \
        .kind = ERROR_NONE                                                                                             \
    }

/* Fills `error` and returns -1. */
int error_set(struct error *error, enum error_kind kind, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Fills `error` from the current errno, and returns -1. The kind is ERROR_NO_SPACE for ENOSPC and EDQUOT,
 * ERROR_NOT_FOUND for ENOENT, ERROR_ALREADY_EXISTS for EEXIST, otherwise ERROR_SYSTEM. Appends ": " and
 * errno's text to the message. */
int error_set_errno(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "context: " in front of the message, before the error is returned to the caller. Returns -1. */
int error_wrap(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns -1. Compilers and analysers see one file at a time; the macros below show them that the three functions above always return -1,
 * so that they know on which paths outputs are set. */
static inline int error_failed(int always_negative)
{
    (void)always_negative;
    return -1;
}
#define error_set(...) error_failed(error_set(__VA_ARGS__))
#define error_set_errno(...) error_failed(error_set_errno(__VA_ARGS__))
#define error_wrap(...) error_failed(error_wrap(__VA_ARGS__))

/* Returns the name of a kind: "CONFLICT" for ERROR_CONFLICT. */
const char *error_kind_name(enum error_kind kind);

static inline void error_clear(struct error *error)
{
    *error = (struct error)ERROR_INIT;
}

#endif
