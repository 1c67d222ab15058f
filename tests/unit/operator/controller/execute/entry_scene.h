/* SPDX-License-Identifier: Apache-2.0
 *
 * The entry of a job and pods in it, for the tests of what is kept of a job's progress.
 */
#ifndef COXSWAIN_TESTS_ENTRY_SCENE_H
#define COXSWAIN_TESTS_ENTRY_SCENE_H

#include "operator/controller/execute/job_entry.h"

#define SCENE_JOB "job-uid-1"

/* Returns the entry of default/digits, whose UID is SCENE_JOB; end it with entry_scene_end. */
struct job_entry *entry_scene_begin(void);
void entry_scene_end(struct job_entry *entry);

/* A pod that runs. */
struct entry_pod {
    const char *uid;   /* its name, too */
    const char *owner; /* NULL: SCENE_JOB */
    const char *ip;    /* NULL: none */
    enum role role;
    int64_t index, incarnation, attempt;
    bool unready;
};

void entry_scene_add(struct job_entry *entry, const struct entry_pod *pod);

#endif
