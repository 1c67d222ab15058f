/* SPDX-License-Identifier: Apache-2.0
 *
 * The pods of each role of a job of Kubeflow, while `cox migrate` translates it: their number and their template. The translation of
 * each kind of job fills an array of ROLE_COUNT replicas, and then puts it into the new job.
 */
#ifndef COXSWAIN_CLI_MIGRATION_REPLICAS_H
#define COXSWAIN_CLI_MIGRATION_REPLICAS_H

#include "operator/cli/migration.h"

struct replicas {
    int64_t count; /* 0: the job does not have this role */
    struct json *template;
};

void replicas_release(struct replicas roles[ROLE_COUNT]);
/* Sets an environment variable in the main container of the chief and of the workers, unless their templates set it. */
void replicas_add_variable(struct replicas roles[ROLE_COUNT], const char *name, const char *value);
/* Sets how many processes torchrun starts in each pod of a PyTorch job: as devices.count if that is a number, otherwise as a variable.
 * `processes` is a number or one of torchrun's words; NULL: the job does not say, and torchrun starts one for each GPU. GPUs of which each
 * has a process become devices of the job instead of a limit in the template. `from` is the field for notes. */
void replicas_put_processes(struct migration *migration, struct replicas roles[ROLE_COUNT], const char *processes,
                            const char *from);
/* Puts the image, and each role's number and template, into the new job. */
void replicas_put(struct migration *migration, const struct replicas roles[ROLE_COUNT]);

#endif
