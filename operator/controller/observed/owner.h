/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which job an object belongs to: the one named by its controller owner reference. Labels
 * are used only to find objects, because anybody can copy them. The exception is an object named
 * after the job, such as its Service, that has lost its controller reference: it belongs to the job
 * whose UID is in its label.
 */
#ifndef COXSWAIN_CONTROLLER_OWNER_H
#define COXSWAIN_CONTROLLER_OWNER_H

#include <stdbool.h>

#include "common/json.h"

/* An object's controller. Strings are borrowed from the object; all are "" if it has no
 * controller. */
struct owner {
    const char *uid, *kind, *name;
    bool is_job; /* it is a TrainingJob, of any UID */
};
struct owner owner_of(const struct json *object);

/* Returns the label with the UID of the job for which the object was created; "": no label. */
const char *owner_label(const struct json *object);

/* Returns whether an object named after the job belongs to it. `owner_uid`: of its controller;
 * `label_uid`: from its label, used if it has no controller. */
bool owner_is_job(const char *owner_uid, const char *label_uid, const char *job_uid);

/* Returns whether the object has any owner reference. */
bool owner_is_any(const struct json *object);

/* Returns the message that an object's name is taken: "services digits exists and belongs to
 * ReplicaSet web: remove it, or give the job another name". Free with free(). */
char *owner_name_taken(const char *plural, const char *name, const struct owner *owner);

/* Returns the message that an object of the job has lost its label, without which the operator's
 * watch does not include it. NULL: it has the label. Free with free(). */
char *owner_label_lost(const struct json *object, const char *plural, const char *job_uid);

#endif
