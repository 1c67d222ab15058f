/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/managed_fields.h"

#include <string.h>

#include "operator/kube/json_slice.h"

/* Inside a string its quotes would be escaped. */
#define MEMBER ",\"managedFields\":["

/* Behind the list that begins at `at`; NULL: it does not end. */
static const char *end_of_list(const char *at, const char *end)
{
    struct json_slice slice = JSON_SLICE_INIT;
    for (; at < end && json_slice_step(&slice, *at); at++)
        if (slice.depth == 0)
            return at + 1;
    return NULL;
}

void managed_fields_cut(struct buffer *text)
{
    char *member = text->length > 0 ? memmem(text->data, text->length, MEMBER, strlen(MEMBER)) : NULL;
    const char *end = text->data + text->length;
    const char *rest = member ? end_of_list(member + strlen(MEMBER) - 1, end) : NULL;
    if (!rest)
        return;
    memmove(member, rest, (size_t)(end - rest) + 1);
    text->length -= (size_t)(rest - member);
}
