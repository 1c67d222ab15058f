/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes status.conditions, the list of metav1.Condition, of TrainingJobs and TrainingSweeps. The operator changes only
 * conditions of its own types. Conditions of other types belong to other controllers: they are kept as JSON text and written back after
 * the operator's own, as far as the list has room.
 */
#ifndef COXSWAIN_JOB_CONDITION_LIST_H
#define COXSWAIN_JOB_CONDITION_LIST_H

#include "common/job/training_job.h"

/* Reads the condition of type words[i] into conditions[i]; `words` ends with NULL. Returns conditions of other types as the text of a JSON
 * list in the arena; NULL: there are none. */
const char *condition_list_read(const struct json *list, const char *const *words, struct condition *conditions,
                                struct arena *arena);

/* Sets object.conditions: the operator's own in the order of `words`, then `others` until the list has JOB_CONDITIONS_MAX elements. */
void condition_list_write(const struct condition *conditions, const char *const *words, const char *others,
                          struct json *object);

#endif
