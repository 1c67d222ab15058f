/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/json_slice.h"

#include "common/json.h"

bool json_slice_is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static void step_in_string(struct json_slice *slice, char byte)
{
    if (slice->after_backslash)
        slice->after_backslash = false;
    else if (byte == '\\')
        slice->after_backslash = true;
    else if (byte == '"')
        slice->in_string = false;
}

bool json_slice_step(struct json_slice *slice, char byte)
{
    if (slice->in_string) {
        step_in_string(slice, byte);
        return true;
    }
    switch (byte) {
    case '"':
        slice->in_string = true;
        return true;
    case '{':
    case '[':
        return ++slice->depth <= JSON_DEPTH_MAX;
    case '}':
    case ']':
        return slice->depth-- > 0;
    default:
        return true;
    }
}
