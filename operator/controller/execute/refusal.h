/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides what follows when the API server refuses to create an object of a job:
 * whether it is tried again, and what a person has to change.
 *
 * Only where the API server's own validation finds the object wrong is it the job's
 * fault: it then names the fields in details.causes, or cannot decode the object.
 * What a webhook, a policy, a quota or a role forbids may be allowed later, so it is
 * tried again. Whether a wrong object ends the job is the plan's to say
 * (create_ends_job).
 */
#ifndef COXSWAIN_CONTROLLER_REFUSAL_H
#define COXSWAIN_CONTROLLER_REFUSAL_H

#include "common/error.h"
#include "operator/controller/plan/plan.h"

/* Where what a pod is made of was written. */
struct pod_source {
    enum role role;
    const char *const *storages; /* the names of spec.storage: the pod's first volumes, in their order */
    unsigned storage_count;
};

/* The part of the spec that the server's words about a pod are about: "spec.parameterServers.template", "spec.storage[runs]". Free with
 * free(). */
char *refusal_place(const struct pod_source *source, const char *words);

/* `status`: the Status of the answer, NULL when no answer came. `source` of a pod, NULL: it is no pod. `has_run`: as in the
 * plan. `ret_message` is the server's words with the remedy; free with free(). */
enum obstacle_kind refusal_of_create(const struct error *error, const struct json *status,
                                     const struct pod_source *source, bool has_run, char **ret_message);

/* Why nobody can tell whether pod `name` was made. Never final: nothing is said of the pod. */
enum obstacle_kind refusal_of_look(const struct error *error, const char *name, char **ret_message);

/* Why the PriorityClass of a Workload cannot be read. */
enum obstacle_kind refusal_of_priority(const struct error *error, char **ret_message);

/* The fields that pods do not have and for which one was refused, in the server's words, which lie in the error; NULL: it
 * was refused for something else. */
const char *refusal_unknown_fields(const struct error *error);

#endif
