/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the path of a request to the embedded API server: /api/v1/… or /apis/<group>/<version>/…, followed by
 * [namespaces/<namespace>/]<plural>[/<name>[/<subresource>]].
 */
#ifndef COXSWAIN_STANDALONE_API_PATH_H
#define COXSWAIN_STANDALONE_API_PATH_H

#include <stdbool.h>

#define API_SEGMENT_MAX 256

struct api_path {
    char group[API_SEGMENT_MAX];     /* "" for the core group */
    char version[API_SEGMENT_MAX];   /* "": the path ends before the version */
    char namespace[API_SEGMENT_MAX]; /* "": the path has no namespace */
    char plural[API_SEGMENT_MAX];    /* "": the path names a group or version only */
    char name[API_SEGMENT_MAX];
    char subresource[API_SEGMENT_MAX];
};

/* Returns false when `path` is not an API path, or has an empty or too long segment. */
bool api_path_parse(const char *path, struct api_path *ret_path);

#endif
