/* SPDX-License-Identifier: Apache-2.0
 *
 * Downloads the objects that a job reads from object storage into a folder, before the job's program starts. The object with key
 * <prefix>/<path> becomes the file <path> in the folder. No other program may write to the folder: partial files that an earlier fetch has
 * left are removed.
 */
#ifndef COXSWAIN_STORAGE_FETCH_H
#define COXSWAIN_STORAGE_FETCH_H

#include "common/s3_client.h"

#define FETCH_OBJECTS_MAX ((size_t)1000000)
#define FETCH_PATHS_MAX 64

struct fetch_request {
    const char *prefix; /* without a slash at its end; "": the whole bucket */
    /* Files, or folders with all files in them, below the prefix. A "*" in the last part of a path stands for any characters. Without
     * paths everything below the prefix is downloaded. */
    const char *paths[FETCH_PATHS_MAX];
    unsigned path_count;
    const char *folder;   /* exists */
    int64_t ceiling;      /* bytes of disk that the files may take, in blocks of 4 KiB; 0: no ceiling */
    unsigned connections; /* at most S3_CONNECTIONS_MAX */
    /* Whether an object is left out; NULL: none is, and there has to be one. */
    bool (*is_left_out)(void *context, const struct s3_object *object, const char *path);
    /* Is called when all objects are listed; after -1, with `error` filled, nothing is downloaded. NULL: not wanted. */
    int (*check)(void *context, struct error *error);
    void *context;
};

struct fetch_result {
    size_t files, kept; /* files that were downloaded, and files that were up to date */
    int64_t bytes;      /* downloaded */
};

/* ERROR_NOT_FOUND if a path leads to no object, ERROR_TOO_LARGE if the objects are larger than the ceiling, ERROR_INVALID if a part of a
 * key cannot be a file's name: one that is empty, ".", ".." or begins with S3_PARTIAL_PREFIX. Nothing is downloaded then. Keys that end in
 * a slash, which other programs write for folders, are ignored. */
int fetch(struct s3_client *client, const struct fetch_request *request, struct fetch_result *ret_result,
          struct error *error);

/* Whether `path`, taken from a key, names a file below the folder: no part is one of those that fetch refuses. */
bool fetch_path_is_safe(const char *path);

/* Whether `path` is `wanted` or below it; if `wanted` has a "*", whether `path` matches it. `across_folders`: "*" also stands for
 * slashes. */
bool fetch_path_matches(const char *path, const char *wanted, bool across_folders);

#endif
