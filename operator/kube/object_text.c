/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/object_text.h"

#include <stddef.h>
#include <string.h>

#include "operator/kube/json_slice.h"

/* Does not occur inside a string, where its quotes would be escaped. */
#define MANAGED_FIELDS ",\"managedFields\":["
#define NUL_ESCAPE "\\u0000"

static void cut_managed_fields(struct buffer *text)
{
    char *member = memmem(text->data, text->length, MANAGED_FIELDS, strlen(MANAGED_FIELDS));
    if (!member)
        return;
    const char *end = text->data + text->length;
    struct json_slice slice = JSON_SLICE_INIT;
    for (const char *at = member + strlen(MANAGED_FIELDS) - 1; at < end && json_slice_step(&slice, *at); at++) {
        if (slice.depth > 0)
            continue;
        const char *rest = at + 1;
        memmove(member, rest, (size_t)(end - rest) + 1);
        text->length -= (size_t)(rest - member);
        return;
    }
}

/* A backslash is itself escaped if an odd number of backslashes stands before it. */
static bool is_escaped(const char *begin, const char *at)
{
    size_t before = 0;
    while (at - before > begin && at[-(ptrdiff_t)before - 1] == '\\')
        before++;
    return before % 2 == 1;
}

static void replace_nul_characters(struct buffer *text)
{
    static const char replacement[] = {'\\', 'u', 'f', 'f', 'f', 'd'}; /* not NUL-terminated */
    char *at = text->data, *end = text->data + text->length;
    while (at < end && (at = memmem(at, (size_t)(end - at), NUL_ESCAPE, strlen(NUL_ESCAPE))) != NULL) {
        if (!is_escaped(text->data, at))
            memcpy(at, replacement, sizeof replacement);
        at += strlen(NUL_ESCAPE);
    }
}

void object_text_prepare(struct buffer *text)
{
    if (text->length == 0)
        return;
    cut_managed_fields(text);
    replace_nul_characters(text);
}
