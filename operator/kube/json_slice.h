/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds where a JSON value ends by following its nesting byte by byte. It does not validate the
 * text: the parser does that, once it has the whole value. The functions are inline, because they
 * are called for every byte of a watch.
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

/* Advances by one byte; returns false for a closing bracket that was never opened. */
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

/* Returns whether the byte passed last lies deeper than the parser allows (JSON_DEPTH_MAX of common/json.h); `depth_before` is the depth
 * before that byte. A caller that leaves out such bytes empties the deepest values, and the rest stays valid JSON. */
static inline bool json_slice_is_too_deep(const struct json_slice *slice, unsigned depth_before)
{
    return depth_before >= JSON_DEPTH_MAX && slice->depth >= JSON_DEPTH_MAX;
}

#endif
