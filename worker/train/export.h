/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters as one safetensors file, which appears whole or not at all.
 */
#ifndef COXSWAIN_TRAIN_EXPORT_H
#define COXSWAIN_TRAIN_EXPORT_H

#include "common/error.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/model/parameter_layout.h"
#include "worker/train/export_claim.h"

struct export
{
    const struct parameter_layout *layout;
    const float *parameters; /* host memory */
    enum export_names names;
    const struct json *metadata;          /* an object of strings for __metadata__, or NULL */
    const struct checkpoint_store *store; /* whose chief writes; NULL: that of `claim` */
    struct export_claim claim;            /* where there is no store */
};

/* ERROR_INVALID names the first tensor that `names` has no word for. */
int export_check(const struct parameter_layout *layout, enum export_names names, struct error *error);

/* The file that was written. */
struct exported {
    int64_t bytes;
    uint32_t crc32c;
};

/* Creates missing directories; replaces an older file. Of two that write it the later gets its name; ERROR_STALE: another
 * process does, or a newer chief has the store; ERROR_CONFLICT: another job has. Durable on return. `ret_exported` may be NULL. */
int export_write(const struct export *export, const char *path, struct exported *ret_exported, struct error *error);

#endif
