/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies what a job reads from object storage into a folder, before the job's program starts. An object whose key is the prefix, a slash and
 * a path becomes the file of that path in the folder, which belongs to the fetch alone: what an earlier one has left half is removed.
 */
#ifndef COXSWAIN_STORAGE_FETCH_H
#define COXSWAIN_STORAGE_FETCH_H

#include "common/s3_client.h"

#define FETCH_OBJECTS_MAX ((size_t)1000000)
#define FETCH_PATHS_MAX 64

struct fetch_request {
    const char *prefix; /* without a slash at its end; "": the whole bucket */
    /* Below the prefix: a file, or a folder with all that is in it. A "*" in the last part stands for any characters. None: everything. */
    const char *paths[FETCH_PATHS_MAX];
    unsigned path_count;
    const char *folder;   /* exists */
    int64_t ceiling;      /* bytes of disk that the files may take, in blocks of 4 KiB; 0: no ceiling */
    unsigned connections; /* at most S3_CONNECTIONS_MAX */
};

struct fetch_result {
    size_t files, kept; /* kept: were there already, of this version */
    int64_t bytes;      /* transferred */
};

/* ERROR_NOT_FOUND if a path leads to no object, ERROR_TOO_LARGE if the objects are larger than the ceiling: nothing is copied then.
 * ERROR_INVALID if a key cannot be a file's name: a part that is empty, ".", ".." or that begins with S3_PARTIAL_PREFIX. Keys that end in a slash stand for folders in other
 * programs and are left out. */
int fetch(struct s3_client *client, const struct fetch_request *request, struct fetch_result *ret_result,
          struct error *error);

/* Whether `path`, which came from a key, names a file below a folder and nothing else. */
bool fetch_path_is_safe(const char *path);

#endif
