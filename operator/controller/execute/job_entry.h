/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps what the controller remembers about one job between two reconciles, in memory only: an
 * index of the job's pods in the informer's cache, the resourceVersions of the controller's newest
 * writes, which the caches may not show yet, what the API server has refused, and the chief's last
 * report. The chief is the pod that leads the job. When the operator restarts, all entries are
 * lost, which costs only time: the decisions themselves are in the status of each job (plan.h).
 *
 * An entry is keyed "namespace/name". A pod is assigned to the entry with the name of the job that
 * controls the pod or, if no job does, with the name in the pod's job-name label. So an entry
 * includes pods left over from an earlier job of the same name. If another job takes the name,
 * job_entry_set_job forgets what was known about the earlier one.
 */
#ifndef COXSWAIN_CONTROLLER_JOB_ENTRY_H
#define COXSWAIN_CONTROLLER_JOB_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/contract/status_document.h"
#include "common/event_loop.h"
#include "operator/controller/execute/dropped_fields.h"
#include "operator/controller/observed/pod_record.h"
#include "operator/controller/plan/plan.h"
#include "operator/kube/hash_map.h"

/* Raises `write`, the resourceVersion of our newest write to one collection (0: none), to
 * `version`. NULL: the collection is not cached, and nothing is noted. */
void own_write_note(uint64_t *write, const char *version);

struct http_transfer;
struct kube_call;

/* The state of reading progress from the log of another framework's script (log_reader.h). */
struct log_poll {
    struct kube_call *call; /* the request under way; NULL: none */
    int64_t turn_ms;        /* when to read it next */
    char *ended_pod;        /* the UID of the newest chief that succeeded; NULL: none has */
    int64_t ended_ms;       /* when that was first seen */
    bool ended_read;        /* its log has been read since */
    char *flaw;             /* why the log gives no report, or not all of it; NULL: it does */
    bool flaw_reported;     /* an event has said so */
};

/* Reports on progress from one pod (progress_answers.h). */
struct progress_answers {
    char *pod; /* its UID; NULL: there was none */
    struct answers_input newest;
};

struct job_entry {
    char *key;
    const struct pod_record **pods; /* borrowed from the informer's cache, kept current by its events */
    size_t pod_count, pod_capacity;
    struct pod_moves *pod_moves; /* per pod; NULL: the clock was not set */
    int64_t *waits_since_ms; /* per pod: since when its container cannot start (pod_view.h); NULL: none has waited */

    bool queued, executing;
    bool dirty; /* something changed while it was executing */
    struct job_entry *next_queued;
    void *queue;               /* for the timer */
    struct event_timer *timer; /* the next reconcile if nothing changes before */
    int64_t timer_ms;

    uint64_t job_write, pod_write, service_write, group_write, workload_write; /* own_write_note */
    unsigned failures;                                                         /* in a row */
    int64_t
        informing_since_ms; /* since when a status write that only informs (plan_only_informs) waits; FIELD_UNSET: none */

    /* The members below are about the job with this UID; NULL: there is no job. Another job may
     * have the same name. */
    char *job_uid;
    struct job_memory memory; /* node looks are kept even if another job takes the name */
    size_t refused_capacity, gone_capacity, hung_capacity, unsure_capacity, finished_capacity, node_capacity;
    int64_t replaced_since_ms;         /* see plan.h: queue.replaced_since_ms */
    int64_t quota_retry_ms;            /* see plan.h: queue.change_retry_ms */
    uint64_t born_lists;               /* how many lists of pods had been completed when the job was created */
    struct status_moves *status_moves; /* NULL: the clock was not set */

    int64_t deleted_attempt; /* the highest attempt of which this operator has deleted a pod; evaluators do not count */
    int64_t hung_attempt;    /* as the newest plan says; 0: none */
    uint64_t lists;          /* completed lists of pods when memory.inherited_incarnation was noted; 0: not noted */
    int64_t recorded_incarnation, recorded_attempt; /* the highest in any status of the job */

    bool over; /* the status says that the job has ended */
    struct dropped_fields dropped;

    bool fields_ignored; /* its templates have fields that pods do not have, and an event has said so */

    unsigned obstacle_count; /* of obstacles of one kind in a row */

    struct status_document *document; /* newest from the chief, or from a script; NULL: none */
    char *document_pod;               /* the UID of that pod */
    bool document_fresh;              /* not yet handed to a plan, or in vain */
    bool document_is_evaluators;      /* an evaluator alone sent it (push_intake.h) */
    bool document_planned;            /* a status write under way has it */
    int64_t poll_ms;                  /* when to ask next */
    struct http_transfer *poll;
    char *asked_pod;             /* the UID of the chief's pod that is polled; NULL: none */
    int64_t unanswered_since_ms; /* since when that pod has not reported; FIELD_UNSET: it has, or was not polled */
    enum chief_voice voice;      /* how that pod answered last; see plan.h */
    struct log_poll log;
    struct progress_answers answers;
    /* The attempt of the crew whose pod sent `document`, or the last that no evaluator did (push_intake.h); 0: it was not sent. */
    int64_t push_attempt;
    bool push_secret_sent; /* this operator has created the Secret with the job's token, or found that it exists */
    int64_t push_free_ms;  /* until when the job has used its share of reports, by clock_monotonic_ms */
};

struct job_entry *job_entry_new(const char *key);
void job_entry_free(struct job_entry *entry);

/* Add a pod that the cache has got, and replace one that has changed in the cache. */
void job_entry_add_pod(struct job_entry *entry, const struct pod_record *pod);
void job_entry_change_pod(struct job_entry *entry, const struct pod_record *old, const struct pod_record *pod);
/* Notes since when the pod's container cannot start, or that it no longer waits. Called for each
 * state of the pod that the cache shows. */
void job_entry_note_wait(struct job_entry *entry, const struct pod_record *pod, int64_t now_ms);
/* Removes a pod that has vanished from the cache. A pod of the job's crew is noted in memory.gone, and one that had finished by itself in
 * memory.finished. */
void job_entry_remove_pod(struct job_entry *entry, const struct pod_record *pod);

/* Notes that a pod of the crew, evaluators apart, has vanished from the cache. A pod that had ended
 * by itself, or of whose attempt we have deleted pods, counts only if it was disrupted. If its crew
 * hung, its termination message is kept. Call this before job_entry_remove_pod. */
void job_entry_note_vanished(struct job_entry *entry, const struct pod_record *pod, int64_t now_ms);
/* Notes that this operator deletes a pod of the job `uid`. */
void job_entry_note_deleting(struct job_entry *entry, const char *uid, const struct pod_view *pod);

/* Notes of which attempt the termination messages of vanished pods are to be kept (plan.hung_attempt). Forgets those of another. */
void job_entry_note_hang(struct job_entry *entry, int64_t attempt);

/* Forgets the first `count` finished pods, because a status that includes them was written. */
void job_entry_forget_finished(struct job_entry *entry, size_t count);

/* Notes that the pod of `action` was created for the job `uid` and is gone again, though the cache
 * has never shown it. */
void job_entry_note_lost(struct job_entry *entry, const char *uid, const struct action *action, int64_t incarnation);

/* Notes a node's state. Replaces the node's earlier state, and removes those of nodes that were
 * read long ago. Kept even if another job takes the name. */
void job_entry_note_node(struct job_entry *entry, const char *name, enum node_state state, int64_t now_ms);

/* job_entry_note_unsure notes that it is unknown whether the pod of `action` was created for the job `uid`; job_entry_note_sure, that it
 * has become known. job_entry_add_pod calls the latter for pods that the cache shows. */
void job_entry_note_unsure(struct job_entry *entry, const char *uid, const struct action *action);
void job_entry_note_sure(struct job_entry *entry, const char *uid, const struct action *action);

/* Sets the job that has this name to the one with UID `uid`; NULL: there is none. Forgets what is
 * known about another job; later answers about that job are ignored. Cancel a poll before
 * (progress_forget). */
void job_entry_set_job(struct job_entry *entry, const char *uid);
bool job_entry_is_about(const struct job_entry *entry, const char *uid);

/* Finds pod 0 of the role, of the newest incarnation that the job controls. Returns false if there is none. The view borrows from the
 * entry and from `room`. */
bool job_entry_find_pod(const struct job_entry *entry, const struct training_job *job, enum role role,
                        struct pod_room *room, struct pod_view *ret_pod);

/* job_entry_has_sent returns whether a script of the present attempt has sent a progress report; job_entry_sent_before, whether the newest
 * report comes from an earlier attempt. */
bool job_entry_has_sent(const struct job_entry *entry, const struct training_job *job);
bool job_entry_sent_before(const struct job_entry *entry, const struct training_job *job);

/* Notes what the cache shows of the status; called for each version of it. Once anybody has written
 * a status, the job no longer counts as new, even if the status is emptied later. */
void job_entry_see_status(struct job_entry *entry, const struct job_status *status);

/* Notes that `lists` lists of pods have been completed. If that is more than before, pods may have
 * been created and deleted unseen in between. A job of which we may have created pods then no
 * longer counts as new, and pods of its status' incarnation may already have existed
 * (inherited_incarnation). Crews of earlier attempts count as deleted by us, since whoever began
 * the present attempt, perhaps an earlier operator, deletes them. */
void job_entry_see_lists(struct job_entry *entry, uint64_t lists, const struct job_status *status);

/* Shifts all times noted so far, and those read from the API, by `by_ms`, by which the wall clock was set. `status` NULL: there is no
 * job. */
void job_entry_clock_set(struct job_entry *entry, int64_t by_ms, const struct job_status *status);

/* Returns whether one of the entry's pods has this node. */
bool job_entry_has_pod_on(const struct job_entry *entry, const char *node);

/* Returns views of the entry's pods for a plan, in `arena`, with times adjusted to the present
 * clock. The records must outlive the views. */
const struct pod_view **job_entry_views(const struct job_entry *entry, struct arena *arena);

/* Forgets events whose cause is gone according to `plan`, so that they are reported again if the
 * cause returns. */
void job_entry_forget_reported(struct job_entry *entry, const struct plan *plan);
/* Notes whether the plan used the status document that was passed to it. A plan does not if the status is older than the pods; the next
 * plan then gets the document again. */
void job_entry_note_document(struct job_entry *entry, const struct plan *plan);
/* Notes whether the plan's status write `failed`. If it did, the next plan gets the status document again, unless this plan began another
 * attempt. */
void job_entry_end_document(struct job_entry *entry, const struct plan *plan, bool failed);
/* Notes that the plan's events were emitted. */
void job_entry_note_reported(struct job_entry *entry, const struct plan *plan);

/* Notes that the API server refused the adoption of a pod, with the message `words`. The delay
 * before the next try doubles with each refusal, up to a limit. */
void job_entry_refuse_adoption(struct job_entry *entry, const char *pod_uid, const char *words, int64_t now_ms);

/* Notes that an object of the job `uid` could not be created. `plural`, a constant: see plan.h. The
 * delay before the next try doubles with each obstacle of the same kind in a row, up to a limit. */
void job_entry_set_obstacle(struct job_entry *entry, const char *uid, enum obstacle_kind kind, const char *plural,
                            const char *message, int64_t now_ms);
void job_entry_clear_obstacle(struct job_entry *entry);

#endif
