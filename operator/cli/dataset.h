/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds or downloads the data that `cox demo` trains on (handwritten digits). If the environment variable
 * COXSWAIN_DATA is set, the files must be in that directory. Otherwise they come from the cache
 * ${XDG_CACHE_HOME:-~/.cache}/coxswain/data, which downloads fill. If COXSWAIN_MIRROR is set, it is the only
 * URL to download from, for networks without internet access and for tests. Every file must have the SHA-256
 * listed in the table of data sets; the digest is taken of the unpacked bytes.
 */
#ifndef COXSWAIN_CLI_DATASET_H
#define COXSWAIN_CLI_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/event_loop.h"

#define DATASET_FILES_MAX 4
#define DATASET_MIRRORS_MAX 4

struct dataset_file {
    const char *path;   /* relative to the data directory */
    const char *name;   /* relative to a mirror's URL */
    const char *sha256; /* of the unpacked bytes */
    size_t packed_max;  /* a larger download is refused */
    size_t unpacked_size;
};

struct dataset {
    const char *name;
    const char *title;
    const char *mirrors[DATASET_MIRRORS_MAX + 1];     /* tried in this order; NULL ends */
    struct dataset_file files[DATASET_FILES_MAX + 1]; /* path NULL ends */
};

/* Returns a dataset, NULL if the name is unknown. "digits" is the MNIST test set. */
const struct dataset *dataset_find(const char *name);

/* Called at least once a second during a download; `total` is 0 while unknown. Returns false to cancel the download. */
typedef bool dataset_progress(void *context, const char *file, int64_t received, int64_t total);

/* Finds or downloads all files of the dataset, verifies them, and returns their directory; release it with free(). Runs `loop` during a
 * download. Files in $COXSWAIN_DATA: ERROR_NOT_FOUND if one is missing, ERROR_CORRUPT or ERROR_TOO_LARGE if one is not the right one.
 * Downloads: ERROR_UNAVAILABLE, with each mirror's reason, if none gives the right file; ERROR_CANCELLED if `progress` returned false. A
 * file gets its name in the cache only once it is verified. */
int dataset_obtain(const struct dataset *dataset, struct event_loop *loop, dataset_progress *progress, void *context,
                   char **ret_directory, struct error *error);

#endif
