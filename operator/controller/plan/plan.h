/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the input and the result of plan_job (plan_job.h), which decides what to do about one job: a
 * pure function of the job, the job's pods and other objects as the caches show them, what the
 * controller remembers about the job, and the time. The controller calls plan_job at every reconcile
 * and executes the result (execute.h). plan_job does no I/O, reads no clock and keeps no state.
 *
 * The durable protocol: the status is written first, with a resourceVersion precondition. It
 * contains the attempt (how often all pods of the job have started together), the incarnation (a
 * number that is raised before pods are created), the counters and the promise, which says which
 * indices of each role get a pod of this incarnation (status.controllerState.roles[].pending). Only
 * a later plan that sees this status in the cache creates the promised pods, under names derived
 * from role, index and incarnation. Only the first pods of a new job need no promise
 * (first_crew.h). So whenever the operator is killed, its successor finds in the API what was
 * decided:
 *   promised, no pod of the incarnation -> create it; a successor uses the next incarnation
 *   promised, the pod exists            -> it was created; the promise is cleared
 *   promised, the pod existed           -> it is lost (known only until the operator is killed)
 *   completed, no current pod           -> it has finished and was removed since
 *   neither, no current pod             -> it is lost: an event to be judged
 *   a pod older than the promise        -> superseded: its end was judged already
 *
 * A promised pod that a successor does not find may have existed and been deleted by force from a
 * node that is cut off, where its process still runs. Processes of a lower incarnation are kept
 * from joining and saving (fencing), but fencing could not distinguish a second pod of that name
 * and incarnation from the first. So the successor first promises the missing pods again, under an
 * incarnation that no pod has had.
 */
#ifndef COXSWAIN_CONTROLLER_PLAN_H
#define COXSWAIN_CONTROLLER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/training_job.h"
#include "operator/controller/objects/crew_certificate.h"
#include "operator/controller/objects/pod_build.h"
#include "operator/controller/observed/class_view.h"
#include "operator/controller/observed/group_view.h"
#include "operator/controller/observed/moved_times.h"
#include "operator/controller/observed/node_view.h"
#include "operator/controller/observed/optional_api.h"
#include "operator/controller/observed/pod_view.h"
#include "operator/controller/observed/service_view.h"
#include "operator/controller/observed/workload_view.h"

/* Why the API server did not create what the last plan asked for. Kept in memory for each job. */
#define OBSTACLES(X)                                                                                                   \
    X(OBSTACLE_NONE, "")                                                                                               \
    X(OBSTACLE_QUOTA, "QuotaExceeded")       /* tried again */                                                         \
    X(OBSTACLE_FORBIDDEN, "CreateForbidden") /* tried again: a policy or a role may change */                          \
    X(OBSTACLE_NAME_TAKEN, "NameTaken")      /* tried again: somebody else's object has the name */                    \
    X(OBSTACLE_OUTAGE, "CreateFailed")       /* tried again */                                                         \
    X(OBSTACLE_REJECTED, "PodRejected")      /* an object is wrong: a job that has not run fails, others try again */  \
    X(OBSTACLE_TEMPLATE, "InvalidTemplate")  /* unknown fields: as PodRejected, and they are named */
#define X(name, text) name,
enum obstacle_kind { OBSTACLES(X) };
#undef X

const char *obstacle_reason(enum obstacle_kind kind);
/* Returns whether the object itself is invalid; otherwise a rule of the cluster or an outage is the
 * cause. */
bool obstacle_is_objects_fault(enum obstacle_kind kind);

struct obstacle {
    enum obstacle_kind kind;
    const char *message;
    int64_t retry_ms;   /* when to try again */
    const char *plural; /* resource that was to be created; NULL: no request was sent */
};

struct plan_options {
    struct pod_options pods;
    const char *controller_name; /* spec.managedBy of the operator's jobs; jobs without it are MANAGED_BY_OPERATOR's */
    int64_t watching_since_ms;   /* when the operator began; 0: unknown, so that no absence is counted (policies.h) */
    bool unrecorded_crews;       /* the operator holds a lease, so a first crew needs no promise (first_crew.h) */
    int64_t start_failure_ms;    /* how long a container may fail to start before that is final */
    int64_t settle_ms;           /* how long a crew may take to end by itself after the chief */
    int64_t
        count_write_ms; /* a status write that only changes counts waits until pods have not changed for this long */
    int64_t count_gather_max_ms;   /* but at most this long after their first change */
    int64_t count_write_max_ms;    /* or at most this long if counts go on changing */
    int64_t dead_node_ms;          /* how long a deleted pod of ours may outlast its grace period on a dead node */
    int64_t unseen_node_ms;        /* the same if the operator may not read the node */
    int64_t certificate_period_ms; /* how long a crew presents one certificate */
    bool notifies;                 /* the operator has a sink for notifications (notice.h) */
    int64_t catch_up_ms;           /* how long a status older than its pods may be the cache's fault */
};
extern const struct plan_options plan_options_default;

/* Returns whether jobs with this spec.managedBy (NULL: without it) belong to the operator of that name. Those that Kueue sends to another
 * cluster belong to MANAGED_BY_OPERATOR, which creates their Workloads. */
bool plan_is_managed_by(const char *managed_by, const char *controller_name);

/* A pod that has vanished from the cache. */
struct gone_pod {
    enum role role;
    int64_t index;
};

/* A pod that may have been created: neither its create nor a read of it was answered clearly. */
struct unsure_pod {
    enum role role;
    int64_t index, incarnation;
};

/* A pod that had finished before it vanished from the cache. */
struct finished_pod {
    enum role role;
    int64_t index, attempt;
};

/* A pod without an owner that the API server does not let us adopt: why, and when to try again. */
struct refused_pod {
    char *uid, *words;
    int64_t retry_ms;
    unsigned count; /* number of refusals */
};

/* The PodGroup of a job with a gang scheduler. */
struct gang_input {
    enum optional_state state;      /* of the scheduler's PodGroups */
    const char *refusal;            /* why they cannot be seen, as the server says; NULL or "": they can */
    const struct group_view *group; /* the PodGroup of the job's name; NULL: none */
    struct kube_resource resource;
};

/* The Workload of a job that Kueue admits. */
struct queue_input {
    enum optional_state state;            /* of the Workloads and their flavors */
    const char *refusal;                  /* why they cannot be seen, as the server says; NULL or "": they can */
    const struct workload_view *workload; /* the Workload of the job's name; NULL: none */
    const struct workload_view *slice;    /* the Workload of its other name (queue_build.h); NULL: none */
    /* Since when the job's quota is that of neither Workload (queue_plan.h); FIELD_UNSET: it is that of one of them. */
    int64_t replaced_since_ms;
    const char *missing_flavor; /* a flavor that was assigned but is not in the cache; NULL: none */
    /* When Kueue may be asked again, after it has refused to change the quota of an elastic job that runs; 0: it has not refused. */
    int64_t change_retry_ms;
    struct kube_resource resource;
};

/* The class of a job whose defaults are not in its status yet. */
struct class_input {
    enum optional_state state;     /* of the classes */
    const char *refusal;           /* why they cannot be seen, as the server says; NULL or "": they can */
    const struct class_view *view; /* the class that the job names; NULL: none */
};

/* The chief's report on its newest save. Zeroed until a save has ended. */
struct saves_input {
    const char *failure; /* "VolumeFull", …; NULL: it has not failed */
    const char *message;
    bool succeeded;
};

/* The chief's report on connections that failed to authenticate as members of the job. */
struct strangers_input {
    bool reported; /* false: the chief has not reported */
    bool members_missing;
    int64_t per_minute;
    const char *from, *why; /* the address with the most such connections, and why they are refused */
};

/* The chief's report on the member that is slower than the rest. */
struct straggler_input {
    bool reported;    /* false: the chief has not reported */
    const char *role; /* NULL: no member is */
    int64_t index;
    double own_ms, due_ms; /* how long its part of a step takes, and should take */
    int64_t seconds;       /* for how long it has been the straggler */
};

/* The result of the last check whether the Secret with the crew's key exists. In memory only. */
struct crew_key_look {
    int64_t incarnation; /* for which it was checked; 0: never */
    int64_t at_ms;
    bool there;
};

/* Whether a chief that is ready has reported its status within the last minute. */
enum chief_voice {
    CHIEF_HEARD,   /* the chief has reported its status, or is not polled */
    CHIEF_SILENT,  /* the chief does not answer */
    CHIEF_STRANGE, /* the chief answers, but not with a status document of the job */
};

/* The state of reading progress from the log of another framework's script (log_reader.h). */
struct log_input {
    /* When the operator saw that the chief had succeeded, if the log must be read once more after that and has not been read yet;
     * FIELD_UNSET: it need not be read. */
    int64_t unread_since_ms;
    const char *flaw;   /* why the log gives no report, or not all of it; NULL: it does */
    bool flaw_reported; /* an event has said so */
};

/* The chief's answers to this operator's queries for progress, including answers without any progress. In memory only. */
struct answers_input {
    int64_t asked_ms; /* when the newest was asked for; FIELD_UNSET: there was none */
    int64_t since_ms; /* when the first was asked for */
    bool found;       /* the newest has a step, an epoch or a metric */
};

/* A pod of a crew that hung (hang_report.h), which has vanished. */
struct hung_pod {
    const char *pod, *message; /* its name, and its termination message */
};
#define HUNG_PODS_MAX 64 /* termination messages of more pods of a crew are not kept */

/* Whether the notification about the job's end has been delivered. In memory only. */
enum notice_state { NOTICE_OPEN, NOTICE_DELIVERED, NOTICE_FAILED };

/* A notification to be sent (notice.h). */
struct notice {
    const char *id;   /* NULL: there is none */
    const char *body; /* a CloudEvent as JSON */
    int64_t until_ms; /* no attempt to deliver it begins after this time */
};

/* What the operator remembers about a job from one plan to the next, in memory only. The owner of this struct owns the lists and their
 * strings. */
struct job_memory {
    /* Pods that have vanished, of the newest incarnation of which any has. If such a pod is still
     * promised under that incarnation, it was created and is lost. Needed until the status says so. */
    struct gone_pod *gone;
    size_t gone_count;
    int64_t gone_incarnation;
    struct unsure_pod *unsure; /* each until it is known whether the pod exists */
    size_t unsure_count;
    /* When a pod of the crew last vanished, and its attempt; 0: never. Pods that had ended by
     * themselves, and those of attempts of which we have deleted pods, count only if they were
     * disrupted. */
    int64_t vanished_ms, vanished_attempt;
    struct finished_pod *finished; /* the oldest first; each until a status that includes it was written */
    size_t finished_count;
    /* The status' incarnation when this operator first saw the job, or last listed all pods again:
     * pods of that incarnation may have been created and deleted unseen. */
    int64_t inherited_incarnation;
    struct obstacle obstacle;
    struct certificate_generation certificate; /* the newest that was created, as far as this process knows */
    struct crew_key_look key_look;
    enum notice_state notice;
    struct hung_pod *hung;
    size_t hung_count;
    int64_t hang_reported_attempt; /* the newest attempt whose hang was reported (hang_report.h) */
    int64_t born_ms; /* when this operator, holding the lease, saw the job being created; FIELD_UNSET: it did not */
    /* An event has said that the queue's label was changed though another queue gave quota. */
    bool queue_change_reported;
    struct node_look *nodes; /* nodes of pods that do not end, each node once */
    size_t node_count;
    struct refused_pod *refused;
    size_t refused_count;
    size_t foreign_reported; /* how many pods with the job's labels but another owner events have reported */
    int64_t behind_since_ms; /* since when the status is older than the pods; FIELD_UNSET: it is not */
    int64_t counts_since_ms; /* since when changed counts wait to be written; FIELD_UNSET: none wait */
    int64_t pods_changed_ms; /* when the cache last showed another state of a pod; FIELD_UNSET: unknown */
};

struct plan_input {
    const struct training_job *job;
    const char *invalid; /* what is wrong with the spec, NULL: nothing */
    /* Every pod labelled with the job's name, including those of an earlier job of the same name.
     */
    const struct pod_view *const *pods;
    size_t pod_count;
    struct job_memory memory;
    const struct service_view *service; /* the Service of the job's name, NULL: none */
    struct gang_input gang;
    struct queue_input queue;
    struct class_input class;
    const struct progress *progress; /* the newest, NULL: none since the last plan */
    bool progress_is_evaluators;     /* only metrics of an evaluator are new in it */
    const char *crew_message;        /* what the chief reports that it waits for, NULL: nothing */
    enum chief_voice chief_voice;
    struct log_input log;
    struct answers_input answers;
    struct saves_input saves;
    struct strangers_input strangers;
    struct straggler_input straggler;
    bool progress_due; /* it is the job's turn to have its progress written */
    /* Nodes that are about to be removed, or that have conditions other than Ready. */
    const struct node_trouble *const *troubles;
    size_t trouble_count;
    bool troubles_unknown;               /* the nodes have not been listed yet */
    int64_t moved_ms[STATUS_TIME_COUNT]; /* by how much the clock was set since each time in the status was noted */
    int64_t now_ms;
    const struct plan_options *options;
};

enum action_type {
    ACTION_CREATE_SERVICE,
    ACTION_CREATE_CERTIFICATE, /* plan.certificate */
    ACTION_LOOK_FOR_KEY,       /* finds out by a create with dryRun whether the Secret of the crew's key exists */
    ACTION_CREATE_KEY,
    ACTION_CREATE_GROUP,
    ACTION_DELETE_GROUP,
    ACTION_CREATE_WORKLOAD, /* or takes the one that MultiKueue has created for the job */
    ACTION_DELETE_WORKLOAD,
    ACTION_CREATE_SLICE,     /* a Workload that is to replace the action's */
    ACTION_RESIZE_WORKLOAD,  /* sets for how many workers it asks */
    ACTION_RELEASE_WORKLOAD, /* it was evicted and its pods are gone: its quota is released */
    ACTION_CLEAR_ADMISSION,
    ACTION_REPORT_WORKLOAD, /* writes the Workload's status: whether its pods are ready, or that the job has ended */
    ACTION_CREATE_POD,      /* role, index, incarnation; the attempt is the plan's */
    ACTION_LOOK_FOR_POD,    /* role, index, incarnation: reads whether an earlier create succeeded */
    ACTION_ADOPT_POD,       /* unless the job is being deleted by now */
    ACTION_REMOVE_CURRENT,
    ACTION_DELETE_POD,
    ACTION_FORCE_DELETE_POD, /* without waiting for its node */
    ACTION_LOOK_AT_NODE,     /* reads the pod's node */
    ACTION_DELETE_JOB,
};

struct action {
    enum action_type type;
    enum role role;
    int64_t index, incarnation;
    int64_t grace_seconds;                /* DELETE_POD; -1: the pod's own */
    const struct pod_view *pod;           /* the action's pod; NULL: none. Borrowed from the input */
    const struct workload_view *workload; /* of actions on one; borrowed from the input */
    int64_t workers, least_workers;       /* CREATE_SLICE, RESIZE_WORKLOAD; least_workers 0: all are needed */
};

struct plan_event {
    bool warning;
    bool of_action;       /* emitted once the actions are answered, even without a status write */
    size_t action_number; /* number, from 1, of the action that must have succeeded; 0: none */
    const char *reason, *action, *note;
    const char *node; /* the event is about this node; NULL: about the job */
};

#define PLAN_NEVER INT64_MAX

/* What the operator must do about a job. Zero it before plan_job; release it with plan_release. Strings and lists are in the arena; what
 * is borrowed from the input must outlive the plan. */
struct plan {
    struct action *actions;
    size_t action_count;
    struct plan_event *events; /* emitted after the status write; not if it fails */
    size_t event_count;
    struct gang_input gang; /* the input's, for its actions */
    struct queue_input queue;
    struct certificate_generation certificate; /* to be made by ACTION_CREATE_CERTIFICATE */
    struct json
        *placement; /* where the pods of each role belong (queue_build.h); NULL: anywhere. Freed with the plan */
    struct notice end_notice; /* about the end that the status records; to be given to the notifier again and again */
    struct notice restart_notice; /* to be sent once the status is written */
    const char **avoided_nodes;   /* names of nodes that new pods exclude (node_avoidance.h) */
    size_t avoided_node_count;
    struct json *class_defaults; /* what the status pins of the job's class; NULL: nothing new. Freed with the plan */
    int64_t now_ms;
    int64_t attempt, incarnation; /* of the pods to be created */
    struct job_status status;     /* the wanted status */
    bool first_pods;              /* no pod of the job was ever created */
    bool has_run;                 /* training may have begun, and checkpoints may exist */
    bool begun;                   /* the first crew is created although the status does not promise it (first_crew.h) */
    bool write_status;            /* the status differs and is to be written now */
    bool counts_wait;             /* only counts differ, and their write waits for a moment */
    bool behind;                  /* the status is older than the pods: no decision is based on it */
    bool obstacle_over;           /* the object that could not be created exists by now, or is no longer wanted */
    /* The label names another queue than the one that gave quota. The input's queue_change_reported if
     * not checked. */
    bool queue_change_waits;
    bool queue_replaces;   /* see replaced_since_ms of struct queue_input */
    size_t finished;       /* how many of the input's finished pods the status includes */
    bool took_progress;    /* the status has the input's progress; false also if there is none */
    bool reports_log_flaw; /* an event says what is wrong with the log */
    int64_t hung_attempt;  /* keep the termination messages of pods of this attempt when they vanish; 0: of none */
    bool reports_hang;     /* the hang of that attempt is reported, or there is nothing to report */
    size_t foreign;     /* pods with the job's labels but another owner; the input's foreign_reported if not checked */
    int64_t requeue_ms; /* look again at this time; PLAN_NEVER: only when something changes */

    size_t action_capacity, event_capacity;
    struct arena arena;
};

/* Returns whether the plan has an action, a status write, or an event that needs no status
 * write. */
bool plan_has_work(const struct plan *plan);
void plan_release(struct plan *plan);

#endif
