/* SPDX-License-Identifier: Apache-2.0
 *
 * The key by which the pods of one crew know each other: a Secret of the job,
 * mounted into every pod as a file, never in its environment. The operator makes
 * it and need not read it: its name is the job's own, so one that exists is the
 * job's. One that was removed is made anew (crew_key_plan.c).
 */
#ifndef COXSWAIN_CONTROLLER_CREW_KEY_H
#define COXSWAIN_CONTROLLER_CREW_KEY_H

#include "common/job/training_job.h"

#define CREW_KEY_VOLUME "coxswain-crew-key"

/* Only our worker asks for a key, and only in a crew of several. */
bool crew_key_is_needed(const struct training_job *job);
/* The Secret with a new random key. ERROR_SYSTEM when the machine has no random numbers. */
int crew_key_secret_build(const struct training_job *job, struct json **ret_secret, struct error *error);

/* The volume of a pod's spec, the mount of a container. */
void crew_key_add_volume(struct json *volumes, const struct training_job *job);
void crew_key_add_mount(struct json *mounts);

#endif
