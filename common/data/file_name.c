/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/file_name.h"

#include <string.h>

const char *file_name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t end_length = strlen(end);
    return length >= end_length && memcmp(text + length - end_length, end, end_length) == 0;
}

bool file_name_ends(const char *path, const char *end)
{
    size_t length = strlen(path);
    if (ends_with(path, length, ".gz"))
        length -= strlen(".gz");
    return ends_with(path, length, end);
}
