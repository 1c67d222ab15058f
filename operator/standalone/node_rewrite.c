/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_rewrite.h"

#include <ctype.h>
#include <stdint.h>

#include "common/buffer.h"

static bool continues_path(char byte)
{
    return isalnum((unsigned char)byte) || strchr("-_.~+@%", byte) != NULL;
}

static const struct mount_point *point_at(const char *text, const struct mount_point *points, size_t count)
{
    const struct mount_point *best = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(points[i].path);
        if (strncmp(text, points[i].path, length) != 0 || (text[length] && continues_path(text[length])))
            continue;
        if (!best || length > strlen(best->path))
            best = &points[i];
    }
    return best;
}

char *paths_rewrite(const char *text, const struct mount_point *points, size_t point_count)
{
    SCOPED_BUFFER out = BUFFER_INIT(SIZE_MAX / 2);
    char before = '\0';
    for (const char *at = text; *at;) {
        bool may_begin = *at == '/' && (before == '\0' || !(continues_path(before) || before == '/'));
        const struct mount_point *point = may_begin ? point_at(at, points, point_count) : NULL;
        size_t length = point ? strlen(point->path) : 1;
        before = at[length - 1];
        if (point)
            buffer_append_string(&out, point->source, NULL);
        else
            buffer_append_byte(&out, *at, NULL);
        at += length;
    }
    return buffer_take(&out);
}
