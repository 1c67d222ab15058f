/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints and parses manifest.json, which says what a checkpoint holds and gives the size and digest
 * of each of its files. A save writes the manifest after all other files, before it renames the
 * directory into place; a restore reads it first. The manifest ends in its own digest, which covers every byte before it:
 *
 *   {"format":"coxswain-checkpoint","version":2,"step":1200,…,
 *    "files":[{"name":"rank-00000.safetensors","bytes":177312,"crc32c":"9ae3f00d"}],"digest":"0badf00d"}
 */
#ifndef COXSWAIN_CHECKPOINT_MANIFEST_H
#define COXSWAIN_CHECKPOINT_MANIFEST_H

#include <stdint.h>

#include "common/error.h"
#include "common/json.h"

#define MANIFEST_BYTES_MAX ((size_t)4 << 20)
#define MANIFEST_FILES_MAX 4096 /* also the largest crew that is accepted */
#define MANIFEST_SHARDS_MAX 4096
#define MANIFEST_JOB_UID_SIZE 64

struct manifest_file {
    char name[64]; /* a plain name, no slash */
    int64_t bytes;
    uint32_t crc32c;
};

/* Strings and lists are owned by the manifest. */
struct manifest {
    int64_t step;                 /* applied optimizer steps */
    int64_t attempt, incarnation; /* of the chief that wrote it */
    int64_t generation;           /* the crew's counter at that step */
    int64_t workers;              /* crew size at that step */
    int64_t logical_shards;       /* leaves of the reduction tree; a resumed run needs them to compute the same bits */
    int64_t seed;
    int64_t data_epoch;        /* the sampler's position: the epoch */
    int64_t examples_consumed; /* the sampler's position: how many examples were taken from the epoch */
    int64_t loss_scale;        /* for float16 (optimizer/loss_scaling.h); else 0, also in older checkpoints */
    int64_t good_steps, skipped_steps;
    char *job_uid;
    struct json *model;     /* description of the model, compared on a resume */
    struct json *optimizer; /* description of the optimizer, compared on a resume */
    struct json *tickets;   /* in asynchronous strategies: which updates are applied; NULL: all up to `step` */
    struct manifest_file *files;
    unsigned file_count;
};

void manifest_release(struct manifest *manifest);

/* Appends the whole text of the file, digest included. */
int manifest_print(const struct manifest *manifest, struct buffer *out, struct error *error);
/* Parses the file. ERROR_CORRUPT if the digest is wrong; ERROR_INVALID, naming the field, if one is
 * missing, too large or of the wrong type; ERROR_UNSUPPORTED if a newer release wrote it. */
int manifest_parse(const char *text, size_t length, struct manifest *ret_manifest, struct error *error);

#endif
