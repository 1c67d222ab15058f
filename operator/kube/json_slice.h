/* SPDX-License-Identifier: Apache-2.0
 *
 * Follows the nesting of JSON text byte by byte without building anything: enough to
 * know where a value starts and ends. It does not judge the text between; the
 * parser, which gets each slice whole, does. All that is watched goes through here,
 * so it is inline.
 */
#ifndef COXSWAIN_KUBE_JSON_SLICE_H
#define COXSWAIN_KUBE_JSON_SLICE_H

#include <stdbool.h>

#include "common/json.h"

struct json_slice {
    unsigned depth; /* open objects and arrays, strings not counted */
    bool in_string;
    bool after_backslash;
};

#define JSON_SLICE_INIT                                                                                                \
    {                                                                                                                  \
        0                                                                                                              \
    }

/* Space, tab, line feed or carriage return. */
static inline bool json_slice_is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static inline void json_slice_step_in_string(struct json_slice *slice, char byte)
{
    if (slice->after_backslash)
        slice->after_backslash = false;
    else if (byte == '\\')
        slice->after_backslash = true;
    else if (byte == '"')
        slice->in_string = false;
}

/* Takes one byte in; false when it closes what was never opened. */
static inline bool json_slice_step(struct json_slice *slice, char byte)
{
    if (slice->in_string) {
        json_slice_step_in_string(slice, byte);
        return true;
    }
    switch (byte) {
    case '"':
        slice->in_string = true;
        return true;
    case '{':
    case '[':
        slice->depth++;
        return true;
    case '}':
    case ']':
        return slice->depth-- > 0;
    default:
        return true;
    }
}

/* Whether the byte that led from `depth_before` to here lies deeper than the parser goes (JSON_DEPTH_MAX of common/json.h). Without
 * such bytes what nests so deep is empty, and the text is JSON as before. */
static inline bool json_slice_is_too_deep(const struct json_slice *slice, unsigned depth_before)
{
    return depth_before >= JSON_DEPTH_MAX && slice->depth >= JSON_DEPTH_MAX;
}

#endif
