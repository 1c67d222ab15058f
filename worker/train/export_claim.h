/* SPDX-License-Identifier: Apache-2.0
 *
 * Which chief may write an export where no checkpoint directory tells: in `.NAME.chiefs/`, beside the file, each leaves an
 * epoch record (epoch_record.h) before it begins. A chief that was cut off and replaced finds its successor's there, and
 * does not take the name. They stay after the end, since such a chief may come back long after.
 */
#ifndef COXSWAIN_TRAIN_EXPORT_CLAIM_H
#define COXSWAIN_TRAIN_EXPORT_CLAIM_H

#include <stdint.h>

#include "common/error.h"

struct export_claim {
    const char *job_uid;    /* NULL or "": by hand, where nobody takes over: nothing is written or asked */
    int64_t attempt, epoch; /* of the pod */
};

/* Before the file `path` is begun, whose directory is there; again when it is begun anew. ERROR_STALE: a newer chief of this job was
 * here. Durable on return. */
int export_claim_take(const char *path, const struct export_claim *claim, struct error *error);

/* Before it gets its name. ERROR_STALE as above; ERROR_CONFLICT, with a sentence, when another job has begun since. */
int export_claim_check(const char *path, const struct export_claim *claim, struct error *error);

#endif
