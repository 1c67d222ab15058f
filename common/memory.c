/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_INTERNAL 70

static _Noreturn void end_without_memory(size_t bytes)
{
    fprintf(stderr, "out of memory: %zu more bytes could not be allocated; give this process a larger memory limit\n",
            bytes);
    exit(EXIT_INTERNAL);
}

void *memory_allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (memory == NULL)
        end_without_memory(count * size);
    return memory;
}

void *memory_resize(void *old, size_t count, size_t size)
{
    void *memory = reallocarray(old, count ? count : 1, size ? size : 1);
    if (memory == NULL)
        end_without_memory(count * size);
    return memory;
}

char *memory_copy_bytes(const char *text, size_t length)
{
    char *copy = memory_allocate(length + 1, 1);
    if (length > 0)
        memcpy(copy, text, length);
    return copy;
}

char *memory_copy_string(const char *text)
{
    return text == NULL ? NULL : memory_copy_bytes(text, strlen(text));
}

char *memory_format(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = NULL;
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        end_without_memory(strlen(format));
    return text;
}
