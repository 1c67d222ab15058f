/* SPDX-License-Identifier: Apache-2.0
 *
 * Classifies the API server's refusal to create an object of a job or a trial of a sweep: whether
 * the create is tried again, and what a person has to change. The executor notes the result in the
 * job's or sweep's entry as an obstacle (plan.h), from which the next plan takes the reason and the
 * message for the status.
 *
 * The job is at fault only if the API server's own validation refuses the object: the answer then
 * names the fields in details.causes, or says that the object cannot be decoded. After a refusal by
 * a webhook, a policy, a quota or RBAC, the create is tried again, because it may be allowed later.
 * Whether an invalid object ends the job is decided by the plan (create_ends_job).
 */
#ifndef COXSWAIN_CONTROLLER_REFUSAL_H
#define COXSWAIN_CONTROLLER_REFUSAL_H

#include "common/error.h"
#include "operator/controller/plan/plan.h"

/* The parts of the job's spec from which a pod was made, for messages. */
struct pod_source {
    enum role role;
    const char *const *storages; /* the names of spec.storage: the pod's first volumes, in their order */
    unsigned storage_count;
    const char *class; /* training_class_words; NULL: none */
};

/* Returns the part of the job's spec to which the server's message about a pod refers:
 * "spec.parameterServers.template", "spec.storage[runs]", with the source's class behind it. Free with free(). */
char *refusal_place(const struct pod_source *source, const char *words);

/* Classifies the refusal of a create. `status`: the Status object of the answer, NULL: no answer
 * came. `source`: NULL if the object is not a pod. `has_run`: as in the plan. Sets `ret_message` to
 * the server's message and the remedy; free with free(). */
enum obstacle_kind refusal_of_create(const struct error *error, const struct json *status,
                                     const struct pod_source *source, bool has_run, char **ret_message);

/* Returns a sentence about what is wrong with the template or the parameters of a sweep, made from the refusal of a trial's job that is at
 * fault. Names the fields without the job's type and version. Free with free(). */
char *refusal_of_trial(const struct error *error);

/* Classifies the failure of a read that was to find out whether pod `name` was created. Never an
 * obstacle that ends the job, because the failure says nothing about the pod. */
enum obstacle_kind refusal_of_look(const struct error *error, const char *name, char **ret_message);

/* Classifies the failure to read the class from which a Workload gets its priority: a WorkloadPriorityClass if `of_kueue`, else a
 * PriorityClass. */
enum obstacle_kind refusal_of_priority(const struct error *error, bool of_kueue, char **ret_message);

/* Returns the part of the error's message that names the unknown fields for which a strict create
 * was refused; borrowed from the error. NULL: it was refused for another reason. */
const char *refusal_unknown_fields(const struct error *error);

#endif
