/* SPDX-License-Identifier: Apache-2.0
 *
 * Execution's inside, for the files that make it: execute.c (a plan's begin and
 * end, creates, pods), execute_secrets.c and execute_workload.c. Only they include it.
 *
 * Each request that is sent counts as open until its answer has been dealt with; the
 * last one concludes the plan.
 */
#ifndef COXSWAIN_CONTROLLER_EXECUTION_H
#define COXSWAIN_CONTROLLER_EXECUTION_H

#include "operator/controller/execute/execute.h"
#include "operator/controller/objects/pod_build.h"

/* One plan under way. Strings lie in the plan's arena. */
struct execution {
    struct executor executor;
    struct job_entry *entry;
    struct plan plan;
    const char *namespace, *name, *uid;
    const char **storages; /* their names (refusal.h) */
    unsigned storage_count;
    struct json *status_patch; /* NULL: no status write */
    bool status_sent;
    enum kube_priority status_priority, pods_priority;
    struct json *certificate;   /* a Secret to be created when the one in its place is gone */
    struct adoption *adoptions; /* that wait for word of the job */
    bool *deleted;              /* by action: that pod's end was asked for */
    size_t open;                /* requests without an answer */
    bool created, refused;      /* of the creates: one succeeded, one did not */
    bool refused_as_wrong;      /* because the object itself is wrong */
    struct error failed;
};

/* One create whose object may exist already. */
struct creation {
    struct execution *execution;
    struct kube_resource resource;
    enum kube_priority priority;
    char *name;
    const struct action *action; /* of a pod, else NULL */
    struct error unsure;         /* of a create that may have been done all the same; ERROR_NONE: of none */
    bool dry_run, strict;
    struct json *pod;     /* of one that is strict: what is tried again without */
    struct json *service; /* of a Secret: the Service that is made after it; whoever sees the one has the other */
};

/* After a write only the object's resourceVersion matters, after a read only its owner, so answers may be cut to their metadata.
 * Requests for objects that a job has one of go before the creates of a large crew's pods, which wait for them; so do
 * deletes, because other requests wait until the objects are gone. */
struct kube_call_options execution_call_options(struct execution *execution, kube_answered *answered, void *context);
/* The first that is worth a line in the log; a conflict only means that the cache is behind. */
void execution_note_failure(struct execution *execution, const struct error *error, const char *what);
/* Nothing more is created for this plan, and the job's status says why. */
void execution_refuse(struct execution *execution, enum obstacle_kind kind, const char *message);
void execution_request_end(struct execution *execution);
/* Notes a write's answer and ends its request. `write` NULL: of what no plan waits to see. */
void execution_write_answered(struct execution *execution, const struct kube_answer *answer, uint64_t *write,
                              const char *what);

/* Of an object that is known by its owner when it exists already. */
void execution_create(struct execution *execution, struct kube_resource resource, const struct json *object);
/* Takes `creation` over: it holds what `answered` needs, which ends it. */
void creation_send(struct creation creation, const struct json *object, kube_answered *answered);
void creation_note_refusal(const struct creation *creation, const struct error *error, const struct json *status);
void creation_end(struct creation *creation);

/* Whether the job goes on with the fields of its templates: those that pods do not have end it before its first pod, and no later,
 * for an operator that is new must not end what runs. */
bool execution_accepts_fields(struct execution *execution, const struct training_job *job);
/* A builder of its pods. */
int execution_builder_init(struct execution *execution, const struct training_job *job, struct pod_builder *ret_builder,
                           struct error *error);

/* execute_secrets.c: the crew's key, and the Service that is made after it; its certificate. */
void execute_create_service(struct execution *execution, const struct training_job *job);
void execute_send_key(struct execution *execution, const struct training_job *job, bool dry_run);
void execute_create_certificate(struct execution *execution, const struct training_job *job);

/* execute_workload.c: the job's place in a queue. */
void execute_create_workload(struct execution *execution, const struct training_job *job);
void execute_tell_workload(struct execution *execution, const struct training_job *job);
void execute_release_workload(struct execution *execution, const struct training_job *job);
void execute_clear_admission(struct execution *execution);

#endif
