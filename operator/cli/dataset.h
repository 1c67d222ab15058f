/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the examples' data comes from: a directory that the user names
 * ($COXSWAIN_DATA), else a download, kept in ${XDG_CACHE_HOME:-~/.cache}/coxswain/data.
 * $COXSWAIN_MIRROR is a URL that stands in for the known ones: for a network without
 * a way out, and for tests.
 * Whatever is used must have the pinned SHA-256 (of what the gzipped files hold).
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
    const char *path;   /* below the data directory */
    const char *name;   /* below a mirror */
    const char *sha256; /* of the unpacked bytes */
    size_t packed_max;  /* a download larger than this is refused */
    size_t unpacked_size;
};

struct dataset {
    const char *name;
    const char *title;
    const char *mirrors[DATASET_MIRRORS_MAX + 1];     /* tried in this order; NULL ends */
    struct dataset_file files[DATASET_FILES_MAX + 1]; /* path NULL ends */
};

/* NULL when unknown. "digits" is the MNIST test set. */
const struct dataset *dataset_find(const char *name);

/* Told on the way, at least once a second; `total` is 0 while unknown. False ends the download. */
typedef bool dataset_progress(void *context, const char *file, int64_t received, int64_t total);

/* The directory that holds every file of the dataset, checked; release with free(). ERROR_CORRUPT when a file that
 * is there has another digest, ERROR_UNAVAILABLE when it is nowhere and no mirror has it (with the reasons),
 * ERROR_CANCELLED when `progress` said so. Runs `loop` while it downloads; nothing half stays behind. */
int dataset_obtain(const struct dataset *dataset, struct event_loop *loop, dataset_progress *progress, void *context,
                   char **ret_directory, struct error *error);

#endif
