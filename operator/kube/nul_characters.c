/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/nul_characters.h"

#include <string.h>

#define ESCAPE "\\u0000"
static const char replacement[] = {'\\', 'u', 'f', 'f', 'f', 'd'}; /* no text of C */

/* The backslash is one itself where an odd number of them goes before it. */
static bool is_escaped(const char *begin, const char *at)
{
    size_t before = 0;
    while (at - before > begin && at[-(ptrdiff_t)before - 1] == '\\')
        before++;
    return before % 2 == 1;
}

void nul_characters_replace(struct buffer *text)
{
    char *at = text->data, *end = text->data + text->length;
    while (at < end && (at = memmem(at, (size_t)(end - at), ESCAPE, strlen(ESCAPE))) != NULL) {
        if (!is_escaped(text->data, at))
            memcpy(at, replacement, sizeof replacement);
        at += strlen(ESCAPE);
    }
}
