/* SPDX-License-Identifier: Apache-2.0
 *
 * manifest.json: what one checkpoint holds and how to tell whether it is whole.
 * It is written last, inside the directory that is then renamed into place, and
 * ends in its own digest over every byte before it:
 *
 *   {"format":"coxswain-checkpoint","version":1,"step":1200,…,
 *    "files":[{"name":"rank-00000.safetensors","bytes":177312,"crc32c":"9ae3f00d"}],"digest":"0badf00d"}
 */
#ifndef COXSWAIN_CHECKPOINT_MANIFEST_H
#define COXSWAIN_CHECKPOINT_MANIFEST_H

#include <stdint.h>

#include "common/error.h"
#include "common/json.h"

#define MANIFEST_BYTES_MAX ((size_t)4 << 20)
#define MANIFEST_FILES_MAX 4096 /* also the largest crew that is believed */
#define MANIFEST_SHARDS_MAX 4096
#define MANIFEST_JOB_UID_SIZE 64

struct manifest_file {
    char name[64]; /* a plain name, no slash */
    int64_t bytes;
    uint32_t crc32c;
};

/* Strings and lists are owned by the manifest. */
struct manifest {
    int64_t step;           /* applied optimizer steps */
    int64_t attempt, epoch; /* of the chief that wrote it */
    int64_t generation;     /* the crew's counter at that step */
    int64_t workers;        /* crew size at that step */
    int64_t logical_shards; /* the reduction tree's leaves: kept, so that a resume gives the same bits */
    int64_t seed;
    int64_t data_epoch;        /* sampler position: epoch … */
    int64_t examples_consumed; /* … and examples taken from it */
    int64_t loss_scale; /* of float16 (optimizer/loss_scaling.h); 0 of others, and before there was such a thing */
    int64_t good_steps, skipped_steps;
    char *job_uid;
    struct json *model;     /* description for people and for the check on a resume */
    struct json *optimizer; /* likewise */
    struct json *tickets;   /* of asynchronous strategies: what had been applied when; NULL: all up to `step` */
    struct manifest_file *files;
    unsigned file_count;
};

void manifest_release(struct manifest *manifest);

/* The whole text of the file, digest included. */
int manifest_print(const struct manifest *manifest, struct buffer *out, struct error *error);
/* ERROR_CORRUPT when the digest is wrong; ERROR_INVALID, with the field, when one is missing, of another type or too large. */
int manifest_parse(const char *text, size_t length, struct manifest *ret_manifest, struct error *error);

#endif
