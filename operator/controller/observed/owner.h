/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose an object is: that of its controller, the one owner reference which says
 * so. Labels tell where to look for an object, never whose it is: anybody may copy
 * them. Of what there is one of by the job's name, and which has lost its controller,
 * the label of the job's UID tells enough.
 */
#ifndef COXSWAIN_CONTROLLER_OWNER_H
#define COXSWAIN_CONTROLLER_OWNER_H

#include <stdbool.h>

#include "common/json.h"

/* The texts lie in the object; all "" where nothing controls it. */
struct owner {
    const char *uid, *kind, *name;
    bool is_job; /* a TrainingJob, of whatever UID */
};
struct owner owner_of(const struct json *object);

/* The label of the job for which it was made; "" without. */
const char *owner_label(const struct json *object);

/* An object of the job's name is that job's: `owner_uid` of its controller, `label_uid` from its label. */
bool owner_is_job(const char *owner_uid, const char *label_uid, const char *job_uid);

/* It has owner references, of whatever kind. */
bool owner_is_any(const struct json *object);

/* "services digits exists and belongs to ReplicaSet web: remove it, or give the job another name"; free with free(). */
char *owner_name_taken(const char *plural, const char *name, const struct owner *owner);

/* "services digits is this job's, but lacks the label …": such an object has the name and is not found by what the operator
 * watches for. NULL: it has it. Free with free(). */
char *owner_label_lost(const struct json *object, const char *plural, const char *job_uid);

#endif
