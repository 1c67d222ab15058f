/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the Secret with the key by which the pods of a crew (all pods that train one job)
 * authenticate each other, and by which a pod checks compiled code that an earlier pod kept. The
 * Secret is mounted into every pod as a file; the key is never passed in the environment. The
 * operator creates the Secret before the first pod and need not read it: its name belongs to one
 * job only, so a Secret of that name is the job's.
 *
 * If a user removes the Secret, the operator creates another one with a new key. The whole crew
 * then starts over from its checkpoint, so that all pods have the same key (crew_key_plan.c).
 */
#ifndef COXSWAIN_CONTROLLER_CREW_KEY_H
#define COXSWAIN_CONTROLLER_CREW_KEY_H

#include "common/job/training_job.h"

#define CREW_KEY_VOLUME "coxswain-crew-key"

/* Returns whether the crew needs a key: it runs our worker, and has (or can grow to) several pods, or keeps code that XLA has compiled
 * (worker/train/compilation.h). */
bool crew_key_is_needed(const struct training_job *job);
/* Builds the Secret with a new random key. ERROR_SYSTEM if the system provides no random
 * numbers. */
int crew_key_secret_build(const struct training_job *job, struct json **ret_secret, struct error *error);

/* Add the Secret's volume to a pod's volumes, and its mount to a container's mounts. */
void crew_key_add_volume(struct json *volumes, const struct training_job *job);
void crew_key_add_mount(struct json *mounts);

#endif
