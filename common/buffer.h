/* SPDX-License-Identifier: Apache-2.0
 *
 * Provides a byte buffer that grows up to a maximum size. Input from outside (a watch line, the end of a log, a manifest, a message) is
 * collected in such a buffer, so that no peer can make a program allocate memory without bound: appending beyond the maximum fails with
 * ERROR_TOO_LARGE and changes nothing.
 *
 * `data` is NUL-terminated whenever it is not NULL, so a text buffer can be passed to functions that take a string. `data` is NULL only
 * while `capacity` is 0. Life cycle: init -> append … clear … -> release (which leaves the buffer as after init).
 */
#ifndef COXSWAIN_COMMON_BUFFER_H
#define COXSWAIN_COMMON_BUFFER_H

#include <stddef.h>

#include "common/error.h"
#include "common/scope.h"

struct buffer {
    char *data;
    size_t length;   /* bytes in use, the final NUL not counted */
    size_t capacity; /* bytes allocated */
    size_t ceiling;  /* `length` never passes this */
};

/* Allocates nothing. `ceiling` is in bytes. */
void buffer_init(struct buffer *buffer, size_t ceiling);
void buffer_release(struct buffer *buffer);

/* Empties it and keeps the memory. */
void buffer_clear(struct buffer *buffer);

/* Appends bytes; ERROR_TOO_LARGE when that would pass the ceiling (nothing is appended then). */
int buffer_append(struct buffer *buffer, const void *bytes, size_t length, struct error *error);
int buffer_append_string(struct buffer *buffer, const char *text, struct error *error);
int buffer_append_byte(struct buffer *buffer, char byte, struct error *error);
int buffer_format(struct buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Removes the first `length` bytes (at most all of them). */
void buffer_consume(struct buffer *buffer, size_t length);

/* Reads a whole file; ERROR_TOO_LARGE when it is larger than the ceiling leaves room for. */
int buffer_read_file(struct buffer *buffer, const char *path, struct error *error);

/* Writes the text to a file, which is created or replaced. */
int buffer_write_file(const struct buffer *buffer, const char *path, struct error *error);

/* Does the same as buffer_read_file from a descriptor, from where it stands; `path` is named in errors. */
int buffer_read_descriptor(struct buffer *buffer, int descriptor, const char *path, struct error *error);

/* The text, "" when empty; valid until the next change. */
const char *buffer_text(const struct buffer *buffer);

/* Hands the memory to the caller (release with free(); never NULL); the buffer is empty
 * afterwards. */
char *buffer_take(struct buffer *buffer);

#define SCOPED_BUFFER SCOPED(buffer_release) struct buffer

#endif
