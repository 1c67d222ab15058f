/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/sync_names.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"

void sync_names_add(struct sync_names *names, const char *name, size_t length)
{
    if ((names->count & (names->count - 1)) == 0)
        names->names = memory_resize(names->names, names->count ? 2 * names->count : 1, sizeof *names->names);
    names->names[names->count++] = memory_copy_bytes(name, length);
}

void sync_names_parse(struct sync_names *names, const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t line = end ? (size_t)(end - text) - at : length - at;
        sync_names_add(names, text + at, line);
        at += line + 1;
    }
}

static int by_name(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

void sync_names_sort(struct sync_names *names)
{
    if (names->count > 0)
        qsort(names->names, names->count, sizeof *names->names, by_name);
}

bool sync_names_has(const struct sync_names *names, const char *name)
{
    return names->count > 0 && bsearch(&name, names->names, names->count, sizeof *names->names, by_name);
}

bool sync_names_has_folder_of(const struct sync_names *names, const char *path)
{
    const char *slash = strrchr(path, '/');
    SCOPED_FREE char *folder = memory_copy_bytes(path, slash ? (size_t)(slash - path) : 0);
    return sync_names_has(names, folder);
}

void sync_names_release(struct sync_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    *names = (struct sync_names){.names = NULL};
}
