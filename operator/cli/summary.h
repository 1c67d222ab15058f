/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the summary at the end of a run: the job's results, its duration and where its files are.
 */
#ifndef COXSWAIN_CLI_SUMMARY_H
#define COXSWAIN_CLI_SUMMARY_H

#include "operator/cli/job_view.h"

/* Where a storage of the job lies on this machine; release with free(), NULL in a cluster or for
 * other volumes. */
struct storage_place {
    const char *state; /* of the embedded control plane; NULL: a cluster */
    const char *const *volumes;
    unsigned volume_count;
};
char *storage_directory(const struct storage_place *place, const struct json *job, const char *name_space,
                        const char *storage);
/* The job's checkpoints; release with free(), NULL when it makes none. */
char *checkpoint_directory(const struct storage_place *place, const struct json *job, const char *name_space);
/* The exported file; release with free(), NULL when there is none. */
char *export_file(const struct storage_place *place, const struct json *job, const char *name_space);

/* `curve`: with that of the loss, where it does not stand already. */
void summary_write(const struct job_view *view, const struct json *job, const struct storage_place *place, bool curve,
                   struct buffer *out);

#endif
