/* SPDX-License-Identifier: Apache-2.0
 *
 * Follows the nesting of JSON text byte by byte without building anything: enough to
 * know where a value starts and ends. It does not judge the text between; the
 * parser, which gets each slice whole, does.
 */
#ifndef COXSWAIN_KUBE_JSON_SLICE_H
#define COXSWAIN_KUBE_JSON_SLICE_H

#include <stdbool.h>

struct json_slice {
    unsigned depth; /* open objects and arrays, strings not counted */
    bool in_string;
    bool after_backslash;
};

#define JSON_SLICE_INIT                                                                                                \
    {                                                                                                                  \
        0                                                                                                              \
    }

/* Takes one byte in; false when it closes what was never opened or nests deeper than JSON_DEPTH_MAX (common/json.h). */
bool json_slice_step(struct json_slice *slice, char byte);

/* Space, tab, line feed or carriage return. */
bool json_slice_is_space(char byte);

#endif
