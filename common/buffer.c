/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/memory.h"

#define FIRST_CAPACITY 256
#define READ_BLOCK 65536

void buffer_init(struct buffer *buffer, size_t ceiling)
{
    *buffer = (struct buffer){.ceiling = ceiling};
}

void buffer_release(struct buffer *buffer)
{
    free(buffer->data);
    buffer_init(buffer, buffer->ceiling);
}

void buffer_clear(struct buffer *buffer)
{
    buffer->length = 0;
    if (buffer->data)
        buffer->data[0] = '\0';
}

static int reserve(struct buffer *buffer, size_t more, struct error *error)
{
    if (more > buffer->ceiling - buffer->length)
        return error_set(error, ERROR_TOO_LARGE, "more than %zu bytes", buffer->ceiling);
    size_t needed = buffer->length + more + 1;
    if (needed <= buffer->capacity)
        return 0;
    size_t capacity = buffer->capacity ? buffer->capacity : FIRST_CAPACITY;
    while (capacity < needed)
        capacity *= 2;
    buffer->data = memory_resize(buffer->data, capacity, 1);
    buffer->capacity = capacity;
    return 0;
}

int buffer_append(struct buffer *buffer, const void *bytes, size_t length, struct error *error)
{
    if (reserve(buffer, length, error) < 0)
        return -1;
    if (length > 0)
        memcpy(buffer->data + buffer->length, bytes, length);
    buffer->length += length;
    buffer->data[buffer->length] = '\0';
    return 0;
}

int buffer_append_string(struct buffer *buffer, const char *text, struct error *error)
{
    return buffer_append(buffer, text, strlen(text), error);
}

int buffer_append_byte(struct buffer *buffer, char byte, struct error *error)
{
    return buffer_append(buffer, &byte, 1, error);
}

static int format_list(struct buffer *buffer, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

static int format_list(struct buffer *buffer, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0 || reserve(buffer, (size_t)length, NULL) < 0)
        return -1;
    vsnprintf(buffer->data + buffer->length, (size_t)length + 1, format, arguments);
    buffer->length += (size_t)length;
    return 0;
}

int buffer_format(struct buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int result = format_list(buffer, format, arguments);
    va_end(arguments);
    return result;
}

void buffer_consume(struct buffer *buffer, size_t length)
{
    if (length >= buffer->length) {
        buffer_clear(buffer);
        return;
    }
    buffer->length -= length;
    memmove(buffer->data, buffer->data + length, buffer->length + 1);
}

int buffer_read_descriptor(struct buffer *buffer, int descriptor, const char *path, struct error *error)
{
    SCOPED_FREE char *block = memory_allocate(READ_BLOCK, 1);
    for (;;) {
        ssize_t got = read(descriptor, block, READ_BLOCK);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(error, "cannot read %s", path);
        if (got == 0)
            return 0;
        if (buffer_append(buffer, block, (size_t)got, error) < 0)
            return error_wrap(error, "%s is too large", path);
    }
}

int buffer_read_file(struct buffer *buffer, const char *path, struct error *error)
{
    SCOPED_CLOSE int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return error_set_errno(error, "cannot open %s", path);
    return buffer_read_descriptor(buffer, file, path, error);
}

int buffer_write_file(const struct buffer *buffer, const char *path, struct error *error)
{
    SCOPED_CLOSE int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0 || write(file, buffer_text(buffer), buffer->length) != (ssize_t)buffer->length)
        return error_set_errno(error, "write %s", path);
    return 0;
}

const char *buffer_text(const struct buffer *buffer)
{
    return buffer->data ? buffer->data : "";
}

char *buffer_take(struct buffer *buffer)
{
    char *data = buffer->data ? buffer->data : memory_allocate(1, 1);
    buffer->data = NULL;
    buffer_init(buffer, buffer->ceiling);
    return data;
}
