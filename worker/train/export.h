/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a model's parameters to one safetensors file, for the final export and for the best
 * weights (best.h). The file is written under a temporary name and then renamed, so that under its
 * own name there is either the complete file or none.
 *
 * Before it writes and again before it renames, export_write checks that this chief has not been
 * replaced: by the checkpoint store, or without one by an export claim (export_claim.h). A chief
 * that was replaced gets ERROR_STALE and publishes nothing.
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
    const struct json *metadata;          /* strings for the file's __metadata__, or NULL */
    const struct checkpoint_store *store; /* its chief may write; NULL: use `claim` */
    struct export_claim claim;            /* used without a store */
};

/* Checks that each tensor has a name in the scheme `names`. ERROR_INVALID names the first that has
 * none. */
int export_check(const struct parameter_layout *layout, enum export_names names, struct error *error);

/* Size and checksum of the file that was written. */
struct exported {
    int64_t bytes;
    uint32_t crc32c;
};

/* Writes the file durably: creates missing directories and replaces an older file. ERROR_STALE:
 * another process writes the same file, or a newer chief owns the store. ERROR_CONFLICT: another
 * job owns it. Of two processes that write the same file, the later one succeeds. `ret_exported`
 * may be NULL. */
int export_write(const struct export *export, const char *path, struct exported *ret_exported, struct error *error);

/* Checks, for export_objects_put, that this chief has not been replaced. `context` is a struct export_upload. */
struct export_upload {
    const struct export *export;
    const char *path;
};
int export_check_current(const void *context, struct error *error);

#endif
