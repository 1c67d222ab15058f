/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses and validates the TrainingJob resource as a C value: metadata, spec, status. The operator parses one from each object of a watch,
 * the embedded control plane validates with the same code at admission, and `cox` validates the manifests that it writes. If the spec is
 * invalid, parsing fails but still reads metadata and status, so that the operator can report the errors; nothing is created from such a
 * spec.
 */
#ifndef COXSWAIN_TRAINING_JOB_H
#define COXSWAIN_TRAINING_JOB_H

#include "common/job/job_document.h"

#define CLEAN_POD_POLICIES(X) X(CLEAN_NONE, "None") X(CLEAN_RUNNING, "Running") X(CLEAN_ALL, "All")
#define RESTART_SCOPES(X) X(RESTART_SCOPE_AUTO, "Auto") X(RESTART_SCOPE_POD, "Pod") X(RESTART_SCOPE_JOB, "Job")
#define FAILURE_ACTIONS(X) X(FAILURE_IGNORE, "Ignore") X(FAILURE_COUNT, "Count") X(FAILURE_FAIL, "Fail")
#define EXIT_CODE_OPERATORS(X) X(EXIT_CODES_IN, "In") X(EXIT_CODES_NOT_IN, "NotIn")
#define POD_CONDITION_STATUSES(X)                                                                                      \
    X(POD_CONDITION_TRUE, "True") X(POD_CONDITION_FALSE, "False") X(POD_CONDITION_UNKNOWN, "Unknown")
#define GANG_SCHEDULERS(X)                                                                                             \
    X(GANG_NONE, "None")                                                                                               \
    X(GANG_VOLCANO, "Volcano") X(GANG_COSCHEDULING, "Coscheduling") X(GANG_NATIVE, "Native")
#define X(name, text) name,
enum gang_scheduler { GANG_SCHEDULERS(X) GANG_SCHEDULER_COUNT };
enum clean_pod_policy { CLEAN_POD_POLICIES(X) };
enum restart_scope { RESTART_SCOPES(X) };
enum failure_action { FAILURE_ACTIONS(X) };
enum exit_code_operator { EXIT_CODE_OPERATORS(X) };
enum pod_condition_status { POD_CONDITION_STATUSES(X) };
#undef X

/* Roles in the order in which pods are created and shown. */
#define ROLES(X) X(ROLE_CHIEF, "chief") X(ROLE_WORKER, "worker") X(ROLE_PS, "ps") X(ROLE_EVALUATOR, "evaluator")
#define X(name, text) name,
enum role { ROLES(X) ROLE_COUNT };
#undef X

/* The kinds of classes that spec.trainingClass may name. */
#define TRAINING_CLASS_KINDS(X)                                                                                        \
    X(TRAINING_CLASS_CLUSTER, "ClusterTrainingClass")                                                                  \
    X(TRAINING_CLASS_NAMESPACED, "TrainingClass") /* of the job's namespace */
#define X(name, text) name,
enum training_class_kind { TRAINING_CLASS_KINDS(X) TRAINING_CLASS_KIND_COUNT };
#undef X
const char *role_name(enum role role);
bool role_parse(const char *name, enum role *ret_role);
/* The member of the spec that describes the role: "parameterServers". */
const char *role_section(enum role role);

struct role_spec {
    bool given;                  /* the section is there; workers need none */
    int64_t count;               /* pods; 0: the role has none */
    const struct json *template; /* PodTemplateSpec merged over the default one; belongs to the job; NULL: none */
};

/* Workers may come and go between these bounds: minReplicas and maxReplicas of workers are given. */
struct elastic_spec {
    bool enabled;
    int64_t min_workers, max_workers;
    int64_t wanted_workers; /* workers.replicas; document.workers is lower if the job's queue has admitted fewer */
};

#define FAILURE_RULES_MAX 20
#define FAILURE_EXIT_CODES_MAX 255
#define FAILURE_CONDITIONS_MAX 20

struct exit_code_match {
    enum exit_code_operator operator;
    int64_t values[FAILURE_EXIT_CODES_MAX];
    unsigned value_count;
};

struct pod_condition_match {
    const char *type;
    enum pod_condition_status status;
};

/* Overrides how the operator counts a pod's end, if the pod's exit code or conditions match. */
struct failure_rule {
    enum failure_action action;
    bool has_exit_codes;
    struct exit_code_match exit_codes;
    struct pod_condition_match *conditions; /* any of them */
    unsigned condition_count;
};

struct failure_policy {
    struct failure_rule *rules; /* the first that matches counts */
    unsigned rule_count;
};

/* Gang scheduling: all pods or none. */
struct gang_spec {
    enum gang_scheduler scheduler;
    int64_t min_available;            /* FIELD_UNSET: all required pods */
    int64_t schedule_timeout_seconds; /* FIELD_UNSET: the scheduler's own */
    const char *queue;                /* NULL: the scheduler's default */
    const char *topology_key;         /* NULL: any nodes */
};

/* Limits how many pods of the job are evicted at once, as by a drain of their nodes. */
struct disruption_budget_spec {
    int64_t min_available; /* FIELD_UNSET: all required pods */
};

/* When new pods of the job avoid a node on which its pods have failed. FIELD_UNSET: the operator's default. */
struct node_avoidance_spec {
    int64_t failures; /* 0: never */
    int64_t window_seconds;
    int64_t unschedulable_seconds;
};

/* Whether workers that are slower than the rest are replaced. FIELD_UNSET: after_seconds, never; max_per_hour, the default. */
struct straggler_replacement_spec {
    int64_t after_seconds;
    int64_t max_per_hour;
};

#define STRAGGLER_REPLACEMENTS_MAX 16
#define AVOIDED_CONDITIONS_MAX 8

struct run_policy {
    int64_t backoff_limit;
    int64_t active_deadline_seconds;    /* FIELD_UNSET: none */
    int64_t progress_deadline_seconds;  /* FIELD_UNSET: none */
    int64_t ttl_seconds_after_finished; /* FIELD_UNSET: kept */
    enum clean_pod_policy clean_pod_policy;
    enum restart_scope restart_scope;
    int64_t force_delete_after_seconds; /* FIELD_UNSET: the framework's default */
    struct failure_policy failure_policy;
    struct node_avoidance_spec node_avoidance;
    struct straggler_replacement_spec straggler_replacement;
    const char *avoided_conditions[AVOIDED_CONDITIONS_MAX]; /* types of conditions of nodes */
    unsigned avoided_condition_count;
    struct gang_spec gang;
    bool has_disruption_budget;
    struct disruption_budget_spec disruption_budget;
    const char *priority_class_name;
};

/* The status lists conditions in this order, which is part of the contract: the first one that is True is the job's state, as
 * the column STATE of kubectl and cox show it. From Succeeded to Created, at least one is True once the job has been started. */
#define CONDITION_TYPES(X)                                                                                             \
    X(CONDITION_SUCCEEDED, "Succeeded")                                                                                \
    X(CONDITION_FAILED, "Failed")                                                                                      \
    X(CONDITION_SUSPENDED, "Suspended")                                                                                \
    X(CONDITION_RUNNING, "Running")                                                                                    \
    X(CONDITION_RESTARTING, "Restarting") /* a pod is being replaced or backs off */                                   \
    X(CONDITION_SCHEDULED, "Scheduled")                                                                                \
    X(CONDITION_CREATED, "Created")                        /* True as soon as the operator has started the job */      \
    X(CONDITION_CHECKPOINTS_FAILING, "CheckpointsFailing") /* only of jobs whose saves have failed */                  \
    X(CONDITION_JOIN_BLOCKED, "JoinBlocked")               /* only of jobs that refused many foreign connections */    \
    X(CONDITION_AVOIDING_NODES, "AvoidingNodes")           /* only of jobs whose pods failed repeatedly on a node */   \
    X(CONDITION_STRAGGLING, "Straggling")                  /* only of jobs with a member slower than the rest */
#define X(name, text) name,
enum condition_type { CONDITION_TYPES(X) CONDITION_TYPE_COUNT };
#undef X
const char *condition_type_name(enum condition_type type);
/* The most conditions of a status, including those that other programs have added. */
#define JOB_CONDITIONS_MAX 16

enum condition_status { CONDITION_ABSENT, CONDITION_FALSE, CONDITION_TRUE, CONDITION_UNKNOWN };

#define CONDITION_MESSAGE_MAX 1024
struct condition {
    enum condition_status status; /* CONDITION_ABSENT: not in the list */
    const char *reason;           /* CamelCase, in the job's arena or static */
    const char *message;
    int64_t observed_generation;
    int64_t last_transition_ms;
};

/* The pods of one role. */
struct replica_status {
    int64_t active, ready, succeeded, failed; /* how many pods */

    /* In status.controllerState: the indices of pods as ranges, such as "0-3,7"; NULL: none. A pod that does not exist and is in
     * neither `pending` nor `completed` was lost. */
    const char *pending;      /* to be created in this incarnation; written before they are created (plan.h) */
    const char *completed;    /* have finished, even if they were deleted since */
    const char *restarting;   /* were lost and have no ready successor yet */
    const char *backing_off;  /* those in `pending` that are not created before backoff_until_ms */
    int64_t backoff_until_ms; /* 0: none waits */
};

struct progress_metric {
    const char *name;
    const char *value; /* a decimal string */
    int64_t step;      /* after which it was measured; FIELD_UNSET: unknown */
};

struct progress {
    int64_t step, total_steps, percent, data_epoch; /* FIELD_UNSET: unknown */
    struct progress_metric metrics[16];
    unsigned metric_count;
    const char *examples_per_second; /* decimal string */
    int64_t seconds_remaining;
    int64_t last_checkpoint_step;
    const char *goodput; /* decimal string */
    int64_t updated_at_ms;
};

/* A job's class, as spec.trainingClass names it. */
struct training_class_reference {
    enum training_class_kind kind;
    const char *name; /* NULL: the job has no class */
};

/* The class that the job was created with, copied into its status (training_class.h). */
struct pinned_class {
    enum training_class_kind kind;
    const char *name, *uid; /* NULL: none is pinned */
    int64_t generation;
    const struct json *defaults; /* the class's spec; NULL: none is pinned, or not the one that the spec names */
};

/* A failure of a pod for which its node is blamed. */
struct node_failure {
    const char *node;
    int64_t at_ms;
    const char *reason; /* "a device failed (pod digits-worker-1-3)" */
    bool sure;          /* this failure alone suffices to avoid the node */
};

/* A pod that is deleted because it was a straggler. */
struct straggler_replacement {
    const char *pod;
    int64_t at_ms; /* when that was decided */
};

struct job_status {
    /* The contract: what users and other programs read. */
    int64_t observed_generation;
    const char *ready_summary; /* "3/4" */
    int64_t workers;           /* the scale subresource's observed number */
    const char *selector;
    int64_t restart_count; /* events that led to a replacement, all classes */
    struct {
        int64_t failures, disruptions, out_of_memory, ignored;
    } restarts;
    int64_t start_ms, completion_ms; /* FIELD_UNSET: not yet */
    struct condition conditions[CONDITION_TYPE_COUNT];
    const char *other_conditions; /* of types that are not ours, as a JSON list; NULL: none */
    struct replica_status replicas[ROLE_COUNT];
    struct progress progress;
    struct pinned_class training_class;

    /* status.controllerState: the operator's own memory, which other clients ignore. */
    int64_t attempt, incarnation;
    int64_t
        charged_ms; /* when the last failure was counted that a disruption may still explain (take_back.h); FIELD_UNSET: none */
    int64_t charged_attempt; /* attempt of that failure; FIELD_UNSET: none */
    /* When the last new step was seen, from which progress_deadline_seconds counts; FIELD_UNSET: the crew does not run, or has no such
     * deadline. */
    int64_t progressed_ms;
    int64_t chief_finish_ms; /* when an elastic crew's chief finished, by its node's clock; FIELD_UNSET: unknown */
    int64_t suspended_ms;    /* total time spent suspended or in absence (policies.h), which deadlines do not count */
    int64_t recovered_restarts;     /* restart_count when a crew had last run long enough to reset the back-off */
    int64_t recovered_failures;     /* restarts.failures + restarts.out_of_memory then; FIELD_UNSET: never */
    int64_t backoff_until_ms;       /* the latest backoff_until_ms in `replicas`; FIELD_UNSET: none */
    int64_t certificate_generation; /* the newest of the crew's certificates, FIELD_UNSET: none */
    int64_t certificate_from_ms;    /* when the crew begins to use it */
    int64_t notice_since_ms; /* since when a notification of the job's end waits to be delivered; FIELD_UNSET: none */
    struct node_failure *node_failures; /* the newest ones, sorted by time; they decide which nodes new pods avoid */
    unsigned node_failure_count;
    struct straggler_replacement *straggler_replacements; /* of the last hour, sorted by time */
    unsigned straggler_replacement_count;
    int64_t admitted_workers; /* how many workers of an elastic job its queue has admitted; FIELD_UNSET: all */
};

struct training_job {
    const char *name, *namespace, *uid, *resource_version;
    int64_t generation;
    int64_t created_ms;
    int64_t deleted_ms;         /* FIELD_UNSET: not being deleted */
    const char *queue_name;     /* the label by which Kueue admits it; NULL: none */
    const char *queue_priority; /* the label with its WorkloadPriorityClass; NULL: none */
    const char *sweep_uid;      /* of the sweep that controls the job; NULL: none */
    int64_t pause_step;         /* from ANNOTATION_PAUSE_STEP; FIELD_UNSET: absent, or no sweep owns the job */
    const char *queue_workload; /* the label with the Workload that MultiKueue has created for it; NULL: none */

    bool suspend;
    bool queue_elastic;     /* from ANNOTATION_QUEUE_ELASTIC */
    const char *managed_by; /* NULL: this operator */
    struct training_class_reference training_class;
    bool sections[FRAMEWORK_COUNT]; /* which frameworks' sections the spec has; a valid spec has one */
    enum framework framework;       /* the framework of that section */
    const char *image;              /* NULL: the operator's default */
    struct role_spec roles[ROLE_COUNT];
    struct elastic_spec elastic;
    struct run_policy run_policy;
    struct job_document document; /* strategy, workers, model, … ; its arena holds the job's strings too */

    struct job_status status;
};

/* Parses an object as the API server gives it. The spec is merged with the defaults of the class that the status pins (training_class.h),
 * fields that are still absent get the API's defaults, and the result is validated. On ERROR_INVALID, metadata and status are
 * filled as far as they could be read, so that the operator can write the error to the status. Then `ret_job` must still be
 * released, and nothing may be created from its spec; `roles` is filled only if the job has been started, to recognise its pods. */
int training_job_parse(const struct json *object, struct training_job *ret_job, struct error *error);
void training_job_release(struct training_job *job);

/* Returns whether the job names a class whose defaults are not in its status yet: nothing may be created from its spec. */
bool training_job_awaits_class(const struct training_job *job);

/* Finds all violations of a spec, not just the first, with the C versions of the CEL rules. `old` is the stored object on an update (for
 * immutability), else NULL. Returns a JSON array [{"field":"spec.workers.replicas","message":"…"}], empty if the spec is valid; free with
 * json_free. */
struct json *training_job_violations(const struct json *object, const struct json *old);

/* Returns the number in the object's annotation ANNOTATION_PAUSE_STEP; FIELD_UNSET: there is none, or it is no step's number. */
int64_t training_job_pause_step(const struct json *object);

/* Fails with ERROR_INVALID if the object has another version of the API; the message says what to do. */
int training_job_check_version(const struct json *object, struct error *error);

/* Returns the name of a framework's section in a spec. */
const char *framework_section(enum framework framework);
/* Returns the framework whose section a spec has; FRAMEWORK_COXSWAIN if it has none. */
enum framework spec_framework(const struct json *spec);
/* Returns how many pods of a role a spec asks for; the spec need not be valid. */
int64_t spec_role_count(const struct json *spec, enum role role);

/* Adds the defaults of the CRD's schema to the object. */
void training_job_default(struct json *object);

/* Returns the status as JSON, in the form that the resource has. */
struct json *job_status_to_json(const struct job_status *status);

/* Returns whether Succeeded or Failed is True. */
bool status_terminal(const struct job_status *status);
/* Returns whether a condition has this status. */
bool condition_is(const struct job_status *status, enum condition_type type, enum condition_status wanted);

/* Returns the job's state: its first condition that is True, or CONDITION_TYPE_COUNT ("Pending") if none is. */
enum condition_type job_status_state(const struct job_status *status);
const char *job_state_name(enum condition_type state);

#endif
