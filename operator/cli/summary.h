/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats the summary that `cox run` prints when a job has ended: the results, the duration and where the
 * job's files are. Also finds the directories of the job's storage if the job ran in the embedded control
 * plane, whose volumes are directories of this machine.
 */
#ifndef COXSWAIN_CLI_SUMMARY_H
#define COXSWAIN_CLI_SUMMARY_H

#include "operator/cli/job_view.h"

/* The directories in which the embedded control plane keeps volumes on this machine. */
struct storage_place {
    const char *state; /* of the embedded control plane; NULL: a cluster */
    const char *const *volumes;
    unsigned volume_count;
};
/* Returns the directory of a job's storage on this machine; free it with free(). NULL for a job in
 * a cluster, or if the storage is not a persistent volume claim. */
char *storage_directory(const struct storage_place *place, const struct json *job, const char *name_space,
                        const char *storage);
/* Returns the directory of the job's checkpoints; free it with free(). NULL if the job writes none
 * or if storage_directory returns NULL. */
char *checkpoint_directory(const struct storage_place *place, const struct json *job, const char *name_space);
/* Returns the path that the job exports to; free it with free(). NULL if the job exports nothing or
 * if storage_directory returns NULL. Does not check that the file exists. */
char *export_file(const struct storage_place *place, const struct json *job, const char *name_space);

/* Appends the summary. `curve`: also the curve of the loss, which a terminal shows already. */
void summary_write(const struct job_view *view, const struct json *job, const struct storage_place *place, bool curve,
                   struct buffer *out);

#endif
