/* SPDX-License-Identifier: Apache-2.0
 *
 * /api/v1/…, /apis/<group>/<version>/… taken apart:
 * [namespaces/<namespace>/]<plural>[/<name>[/<subresource>]].
 */
#ifndef COXSWAIN_STANDALONE_API_PATH_H
#define COXSWAIN_STANDALONE_API_PATH_H

#include <stdbool.h>

#define API_SEGMENT_MAX 256

struct api_path {
    char group[API_SEGMENT_MAX];     /* "" for the core group */
    char version[API_SEGMENT_MAX];   /* "": the path ends before it */
    char namespace[API_SEGMENT_MAX]; /* "": none in the path */
    char plural[API_SEGMENT_MAX];    /* "": the path names a group or version only */
    char name[API_SEGMENT_MAX];
    char subresource[API_SEGMENT_MAX];
};

/* False when it is not a path of the API, or has a segment that is empty or too long. */
bool api_path_parse(const char *path, struct api_path *ret_path);

#endif
