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

/* `SCOPED_BUFFER text = BUFFER_INIT(4096);` is an empty buffer of at most 4096 bytes. Allocates nothing. */
#define BUFFER_INIT(maximum)                                                                                           \
    {                                                                                                                  \
        .ceiling = (maximum)                                                                                           \
    }
void buffer_init(struct buffer *buffer, size_t ceiling);
void buffer_release(struct buffer *buffer);

/* Sets the length to 0 and keeps the allocated memory. */
void buffer_clear(struct buffer *buffer);

/* Append bytes, a string, one byte or formatted text. ERROR_TOO_LARGE if the buffer would pass its ceiling; nothing is appended then.
 * buffer_format returns -1 in that case, without an error. */
int buffer_append(struct buffer *buffer, const void *bytes, size_t length, struct error *error);
int buffer_append_string(struct buffer *buffer, const char *text, struct error *error);
int buffer_append_byte(struct buffer *buffer, char byte, struct error *error);
int buffer_format(struct buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Removes the first `length` bytes (at most all of them). */
void buffer_consume(struct buffer *buffer, size_t length);

/* Appends the contents of a file. ERROR_TOO_LARGE if they do not fit below the ceiling. After an error, a part of them may have been
 * appended; the same holds for buffer_read_descriptor. */
int buffer_read_file(struct buffer *buffer, const char *path, struct error *error);

/* Writes the text to a file, which is created (mode 0644) or overwritten in place: after an error its old contents are lost. */
int buffer_write_file(const struct buffer *buffer, const char *path, struct error *error);

/* Appends all bytes from the descriptor's present offset to the end of the file. `path` is used in error messages only. */
int buffer_read_descriptor(struct buffer *buffer, int descriptor, const char *path, struct error *error);

/* Returns the text, "" if the buffer is empty. The pointer is valid until the buffer changes. */
const char *buffer_text(const struct buffer *buffer);

/* Hands the memory to the caller, as a NUL-terminated text (release with free(); never NULL); the buffer is empty afterwards. */
char *buffer_take(struct buffer *buffer);

#define SCOPED_BUFFER SCOPED(buffer_release) struct buffer

#endif
