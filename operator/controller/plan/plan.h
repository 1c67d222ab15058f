/* SPDX-License-Identifier: Apache-2.0
 *
 * What to do about one job: a pure function of the job, its children as the cache
 * shows them, and the time. No I/O, no clock, no state of its own.
 *
 * The durable protocol. Attempt, incarnation, counters and the promise (which indices
 * get a pod of this incarnation: status.controllerState.roles[].pending) are raised in the
 * status first, under a resourceVersion precondition. Only a later plan, which
 * sees that status in the cache, creates the promised pods, under names that
 * follow from role, index and incarnation. Only a new job's first crew needs no such
 * promise (first_crew.h). So at whatever moment the operator is killed, its
 * successor finds in the API what was decided:
 *   promised, no pod of the incarnation   -> to be created; by a successor, under the next incarnation
 *   promised, the pod is there      -> created; the promise is cleared
 *   promised, was there and is not  -> lost (known until the operator is killed)
 *   completed, no current pod       -> it has finished, and was removed since
 *   neither, no current pod         -> lost: an event to be judged
 *   a pod below what is promised    -> superseded: its end was judged already
 *
 * A pod that a successor finds promised but missing may have existed, and have been removed by force from a node that is
 * cut off, where its process lives on. No fence could tell a second pod of that name and incarnation from it. So the successor
 * first promises the missing pods once more, under an incarnation that nobody has had.
 */
#ifndef COXSWAIN_CONTROLLER_PLAN_H
#define COXSWAIN_CONTROLLER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/training_job.h"
#include "operator/controller/objects/crew_certificate.h"
#include "operator/controller/objects/pod_build.h"
#include "operator/controller/observed/group_view.h"
#include "operator/controller/observed/moved_times.h"
#include "operator/controller/observed/node_view.h"
#include "operator/controller/observed/optional_api.h"
#include "operator/controller/observed/pod_view.h"
#include "operator/controller/observed/service_view.h"
#include "operator/controller/observed/workload_view.h"

/* Why the API server did not do what the last plan asked for. The controller keeps it in memory, for each job. */
#define OBSTACLES(X)                                                                                                   \
    X(OBSTACLE_NONE, "")                                                                                               \
    X(OBSTACLE_QUOTA, "QuotaExceeded")       /* tried again */                                                         \
    X(OBSTACLE_FORBIDDEN, "CreateForbidden") /* tried again: a policy or a role may change */                          \
    X(OBSTACLE_NAME_TAKEN, "NameTaken")      /* tried again: somebody else's object has the name */                    \
    X(OBSTACLE_OUTAGE, "CreateFailed")       /* tried again */                                                         \
    X(OBSTACLE_REJECTED, "PodRejected")      /* an object is wrong: a job that has not run fails, others try again */  \
    X(OBSTACLE_TEMPLATE, "InvalidTemplate")  /* it has fields that do not exist: likewise, and they are named */
#define X(name, text) name,
enum obstacle_kind { OBSTACLES(X) };
#undef X

const char *obstacle_reason(enum obstacle_kind kind);
/* The object itself is wrong: neither a rule of the cluster nor an outage is the cause. */
bool obstacle_is_objects_fault(enum obstacle_kind kind);

struct obstacle {
    enum obstacle_kind kind;
    const char *message;
    int64_t retry_ms;   /* when to try again */
    const char *plural; /* of what the API server was to create; NULL: it was not asked to */
};

struct plan_options {
    struct pod_options pods;
    bool untold_crews;           /* whoever acts holds a lease, and so may begin a first crew untold (first_crew.h) */
    int64_t start_failure_ms;    /* how long a container may fail to start before that is final */
    int64_t settle_ms;           /* how long a crew may take to end by itself after the chief */
    int64_t count_write_ms;      /* how long a status write that only changes counts waits for more: so long … */
    int64_t count_gather_max_ms; /* … after the last change of a pod, up to so long after the first … */
    int64_t count_write_max_ms;  /* … and up to so long where numbers have gone on changing for longer */
    int64_t dead_node_ms;        /* how long a pod of ours that is to end may outlast its grace period on a dead node */
    int64_t unseen_node_ms;      /* the same where the operator may not read its node */
    int64_t certificate_period_ms; /* how long a crew presents one certificate */
    int64_t catch_up_ms;           /* how long a status older than its pods may be the cache's fault */
};
extern const struct plan_options plan_options_default;

/* A pod that the cache showed and shows no longer. */
struct gone_pod {
    enum role role;
    int64_t index;
};

/* One that may have been made: neither its create nor a look for it was answered. */
struct unsure_pod {
    enum role role;
    int64_t index, incarnation;
};

/* One that was seen to finish before that. */
struct finished_pod {
    enum role role;
    int64_t index, attempt;
};

/* An orphan that the API server does not let us adopt: why, and when to try again. */
struct refused_pod {
    char *uid, *words;
    int64_t retry_ms;
    unsigned count; /* how often it was */
};

/* Of jobs with a gang scheduler. */
struct gang_input {
    enum optional_state state;      /* of the scheduler's PodGroups */
    const char *refusal;            /* why they cannot be seen, as the server says; NULL or "": they can */
    const struct group_view *group; /* of the job's name, NULL: none */
    struct kube_resource resource;
};

/* Of jobs that Kueue admits. */
struct queue_input {
    enum optional_state state;            /* of the Workloads and their flavors */
    const char *refusal;                  /* why they cannot be seen, as the server says; NULL or "": they can */
    const struct workload_view *workload; /* of the job's name, NULL: none */
    const char *missing_flavor;           /* one that was assigned and is not known, NULL: none */
    struct kube_resource resource;
};

/* What the chief says of its newest save; nothing until one has ended. */
struct saves_input {
    const char *failure; /* "VolumeFull", …; NULL: it has not failed */
    const char *message;
    bool succeeded;
};

/* What the chief says of connections that did not prove that they belong to the job. */
struct strangers_input {
    bool reported; /* false: it has not been heard */
    bool members_missing;
    int64_t per_minute;
    const char *from, *why; /* the address with the most of them, and why they are refused */
};

/* What the last question for the Secret with the crew's key brought; in memory only. */
struct crew_key_look {
    int64_t incarnation; /* for which it was asked; 0: never */
    int64_t at_ms;
    bool there;
};

/* How a chief that is ready has answered all questions of the last minute. */
enum chief_voice {
    CHIEF_HEARD, /* not so: it has told its status, or is not asked */
    CHIEF_SILENT,
    CHIEF_STRANGE, /* it answers, but not with a status of the job */
};

struct plan_input {
    const struct training_job *job;
    const char *invalid; /* what is wrong with the spec, NULL: nothing */
    /* Every pod that carries the job's name, those of an earlier job of the same name included. */
    const struct pod_view *const *pods;
    size_t pod_count;
    /* Of the newest incarnation that any pod of the job was seen to vanish from: a promise of that incarnation was kept, and its pod is
     * lost. Known in memory only: it is of use until the status says so. */
    const struct gone_pod *gone;
    size_t gone_count;
    int64_t gone_incarnation;
    const struct unsure_pod *unsure; /* known in memory only, until one of them is seen, or is known not to be there */
    size_t unsure_count;
    int64_t vanished_ms, vanished_attempt; /* when the last of the crew went though we had sent nobody of that attempt
                                              away, in memory only; attempt 0: none did */
    const struct finished_pod *finished;   /* known in memory only, until a status was written that knows of them */
    size_t finished_count;
    /* That the status had when this operator first saw the job, or when it last listed all pods anew: pods of it may have
     * come and gone unseen. */
    int64_t inherited_incarnation;
    const struct service_view *service; /* the Service of the job's name, NULL: none */
    struct gang_input gang;
    struct queue_input queue;
    struct obstacle obstacle;
    struct certificate_generation certificate; /* the newest that was made, as far as this process knows */
    struct crew_key_look key;
    const struct progress *progress; /* newest, NULL: none since the last plan */
    const char *crew_message;        /* what the chief says it waits for, NULL: nothing */
    enum chief_voice chief_voice;
    struct saves_input saves;
    struct strangers_input strangers;
    bool progress_due; /* it is the job's turn to have its progress written */
    int64_t born_ms;   /* when this operator, holding the lease, saw the job come into being; FIELD_UNSET: it did not */
    bool queue_change_told;        /* that the queue changed under a job that has quota of another */
    const struct node_look *nodes; /* of pods that do not end, in memory only; each node once */
    size_t node_count;
    const struct refused_pod *refused; /* in memory only */
    size_t refused_count;
    size_t strangers_told;               /* of how many pods that are not the job's, though labelled so, was told */
    int64_t behind_since_ms;             /* since when the status is older than the pods; FIELD_UNSET: it is not */
    int64_t counts_since_ms;             /* since when changed counts wait to be written; FIELD_UNSET: they do not */
    int64_t pods_changed_ms;             /* when the cache last showed another state of a pod; FIELD_UNSET: unknown */
    int64_t moved_ms[STATUS_TIME_COUNT]; /* by how much the clock was set since each of the status was noted */
    int64_t now_ms;
    const struct plan_options *options;
};

enum action_type {
    ACTION_CREATE_SERVICE,
    ACTION_CREATE_CERTIFICATE, /* plan.certificate */
    ACTION_LOOK_FOR_KEY,       /* nothing is made */
    ACTION_CREATE_KEY,
    ACTION_CREATE_GROUP,
    ACTION_DELETE_GROUP,
    ACTION_CREATE_WORKLOAD,
    ACTION_DELETE_WORKLOAD,
    ACTION_RELEASE_WORKLOAD, /* evicted, and its pods are gone: it gives its quota back */
    ACTION_CLEAR_ADMISSION,
    ACTION_TELL_WORKLOAD, /* whether its pods are ready, or that it is over */
    ACTION_CREATE_POD,    /* role, index, incarnation; the attempt is the plan's */
    ACTION_LOOK_FOR_POD,  /* role, index, incarnation: whether an earlier create made it */
    ACTION_ADOPT_POD,     /* unless the job is being deleted by now */
    ACTION_REMOVE_CURRENT,
    ACTION_DELETE_POD,
    ACTION_FORCE_DELETE_POD, /* without waiting for its node */
    ACTION_LOOK_AT_NODE,     /* of the pod */
    ACTION_DELETE_JOB,
};

struct action {
    enum action_type type;
    enum role role;
    int64_t index, incarnation;
    int64_t grace_seconds;      /* DELETE_POD; -1: the pod's own */
    const struct pod_view *pod; /* that the action is about; NULL: about none. Borrowed from the input */
};

struct plan_event {
    bool warning;
    bool of_action;       /* told when the actions are answered, also without a status write */
    size_t action_number; /* of the action, from 1, that must have been done for it; 0: of none */
    const char *reason, *action, *note;
};

#define PLAN_NEVER INT64_MAX

/* Zeroed before plan_job; release with plan_release. Strings and lists live in the arena; what comes from the input
 * must outlive the plan. */
struct plan {
    struct action *actions;
    size_t action_count;
    struct plan_event *events; /* after the status write, when it was done */
    size_t event_count;
    struct gang_input gang; /* the input's, for its actions */
    struct queue_input queue;
    struct certificate_generation certificate; /* to be made by ACTION_CREATE_CERTIFICATE */
    struct json
        *placement; /* where the pods of each role belong (queue_build.h); NULL: anywhere. Freed with the plan */
    int64_t now_ms;
    int64_t attempt, incarnation; /* of the pods to be created */
    struct job_status status;     /* as it should stand */
    bool first_pods;              /* no pod of the job was ever made */
    bool has_run;                 /* training may have begun, and checkpoints may exist */
    bool begun;                   /* the first crew, which the status knows nothing of yet */
    bool write_status;            /* it differs, and it is time to say so */
    bool counts_wait;             /* mere counts differ, and may do so for a moment */
    bool behind;                  /* the status is older than the pods: nothing is done from it */
    bool obstacle_over;           /* what it kept from being created is there, or not wanted any more */
    bool
        queue_change_waits; /* the label names another queue than the one that gave quota; as told, where not looked at */
    size_t finished;        /* of the input's finished pods so many are in the status, as far as they count */
    size_t strangers;       /* pods that are not the job's, though labelled so; as told, where not looked at */
    int64_t requeue_ms;     /* look again at this time; PLAN_NEVER: only when something changes */

    size_t action_capacity, event_capacity;
    struct arena arena;
};

void plan_job(const struct plan_input *input, struct plan *ret_plan);
/* The job is gone, and pods of it are left: `job` has no more than its names and the defaults. */
void plan_without_job(const struct plan_input *input, struct plan *ret_plan);
/* Something is to be done or told. */
bool plan_has_work(const struct plan *plan);
/* All that it does is to tell people that pods of a crew come and go: no action, no promise that pods wait for, nothing
 * that counts against a limit, no end. */
bool plan_only_tells(const struct plan *plan, const struct job_status *old);
void plan_release(struct plan *plan);

#endif
