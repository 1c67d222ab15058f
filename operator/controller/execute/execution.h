/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares what the files that execute a job's plan share: execute.c (start and end of a plan,
 * creates, pods), execute_secrets.c (the Service and the crew's Secrets) and execute_workload.c
 * (Kueue's Workload). Together they send the requests of the plan's actions, write the job's status
 * and emit the plan's events. No other file includes this header.
 *
 * Each request counts as open until its answer has been handled. When the last one ends, the status
 * is written, if the plan asks for that. After the answer to that write, the plan is done and the
 * struct execution is freed.
 */
#ifndef COXSWAIN_CONTROLLER_EXECUTION_H
#define COXSWAIN_CONTROLLER_EXECUTION_H

#include "operator/controller/execute/execute.h"
#include "operator/controller/objects/pod_build.h"

/* One plan that is being executed. Strings lie in the plan's arena. */
struct execution {
    struct executor executor;
    struct job_entry *entry;
    struct plan plan;
    const char *namespace, *name, *uid;
    const char **storages; /* the names of spec.storage (refusal.h) */
    unsigned storage_count;
    const char *class;         /* training_class_words */
    struct json *status_patch; /* NULL: no status write */
    bool status_sent, status_failed;
    enum kube_priority status_priority, pods_priority;
    struct json *certificate;   /* Secret to create once the older one of the same name is deleted */
    struct adoption *adoptions; /* sent once a read has shown that the job still exists */
    bool *deleted;              /* per action: the API server has accepted the deletion of its pod */
    size_t open;                /* requests that are not answered yet */
    bool created, refused;      /* a create succeeded; a create was refused */
    bool refused_as_wrong;      /* a create was refused because the object itself is invalid */
    struct error failed;
};

/* One create request, whose object may exist already. */
struct creation {
    struct execution *execution;
    struct kube_resource resource;
    enum kube_priority priority;
    char *name;
    const struct action *action; /* the plan's action, if the object is a pod; else NULL */
    struct error unsure;         /* why the create got no clear answer, though it may have succeeded; else ERROR_NONE */
    bool dry_run, strict;
    struct json *pod; /* a strict create's pod, to be sent again without strict validation; NULL: do not retry */
    struct json
        *secret; /* of the crew's key or of progress.push, created after the job's PodDisruptionBudget; NULL: none */
    struct json *service; /* created last: if the Service exists, so do the others */
};

/* Returns the options of most requests: high priority, and answers that contain only metadata,
 * because after a write only the object's resourceVersion matters and after a read only its owner.
 * Objects of which a job has one, such as its Service, are created before the pods of large crews,
 * which wait for them. Deletes have high priority too, because other requests wait until the
 * objects are gone. */
struct kube_call_options execution_call_options(struct execution *execution, kube_answered *answered, void *context);
/* Keeps the first error for the log. Another error replaces a conflict, which only means that the
 * cache is outdated. */
void execution_note_failure(struct execution *execution, const struct error *error, const char *what);
/* Stops creating pods for this plan, and notes why in the job's entry, for its next status. */
void execution_refuse(struct execution *execution, enum obstacle_kind kind, const char *message);
/* Ends one open request. The last one writes the status or, if that has been written, ends the
 * plan. */
void execution_request_end(struct execution *execution);
/* Emits a warning about the job. */
void execution_warn(const struct execution *execution, const char *reason, const char *action, const char *note);
/* Returns whether the API server, or a webhook, has refused the write of an object that is there. */
bool execution_is_refused(const struct kube_answer *answer);
/* Handles the answer to a write and ends its request. `write` is the entry's own_write_note of the
 * collection; NULL: plans do not wait until the cache shows the write. */
void execution_write_answered(struct execution *execution, const struct kube_answer *answer, uint64_t *write,
                              const char *what);

/* Creates `object`. If an object of that name exists, its owner decides: if it is the job's, the
 * create counts as done, else the obstacle is OBSTACLE_NAME_TAKEN. */
void execution_create(struct execution *execution, struct kube_resource resource, const struct json *object);
/* Sends a create request. Copies `creation`, takes over what it owns, and passes the copy to
 * `answered`, which must call creation_end. */
void creation_send(struct creation creation, const struct json *object, kube_answered *answered);
/* Notes in the entry that the create failed. `status`: the Status object of the answer, NULL: there
 * is none. */
void creation_note_refusal(const struct creation *creation, const struct error *error, const struct json *status);
/* Frees the creation and ends its request. */
void creation_end(struct creation *creation);

/* Returns whether pods may be created from the job's templates. A field that a PodTemplateSpec does
 * not have is refused before the job's first pod (OBSTACLE_TEMPLATE). Later it only causes a
 * warning event, because a newer operator must not end a running job. */
bool execution_accepts_fields(struct execution *execution, const struct training_job *job);
/* Makes a builder for the job's pods. Fails as pod_builder_init does. */
int execution_builder_init(struct execution *execution, const struct training_job *job, struct pod_builder *ret_builder,
                           struct error *error);

/* ---- execute_secrets.c */

/* Creates the job's Service; before it the job's PodDisruptionBudget and the Secret with the crew's key, if it needs them. */
void execute_create_service(struct execution *execution, const struct training_job *job);
/* Creates the Secret of a job with progress.push before its next pods, once in the life of this operator: a job whose Service an earlier
 * operator made, which took no reports, has none. */
void execute_send_push_secret(struct execution *execution, const struct training_job *job);
/* Creates the key's Secret. `dry_run`: only finds out whether it exists, because the operator may
 * not read Secrets. The answer is noted in the entry's key_look. */
void execute_send_key(struct execution *execution, const struct training_job *job, bool dry_run);
/* Creates the Secret of the plan's certificate; from the third certificate on, first deletes the
 * Secret of that name. */
void execute_create_certificate(struct execution *execution, const struct training_job *job);

/* ---- execute_workload.c: the Workload by which Kueue admits the job */

/* Creates the Workload; reads the PriorityClass of the job first, if it names one. If MultiKueue has created the Workload already, makes
 * the job its owner. */
void execute_create_workload(struct execution *execution, const struct training_job *job, const struct action *action);
/* Writes the Workload's status: whether the crew's pods are ready, or that the job has ended. */
void execute_report_workload(struct execution *execution, const struct training_job *job,
                             const struct workload_view *workload);
/* Sets for how many workers the action's Workload asks. A refusal to change quota that is reserved is reported by an event, and noted in
 * the job's entry. */
void execute_resize_workload(struct execution *execution, const struct training_job *job, const struct action *action);
/* Writes that an evicted Workload has no pods left, so that Kueue frees its quota. */
void execute_release_workload(struct execution *execution, const struct training_job *job,
                              const struct workload_view *workload);
/* Removes status.admission with a merge patch: server-side apply cannot remove a field of another
 * manager. */
void execute_clear_admission(struct execution *execution, const struct workload_view *workload);

#endif
