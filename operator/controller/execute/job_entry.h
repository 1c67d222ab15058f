/* SPDX-License-Identifier: Apache-2.0
 *
 * What the controller remembers of a job between two looks at it, in memory only:
 * its pods as an index into the cache, the writes that the cache has not shown yet,
 * and what the API server refused. Losing all of it costs nothing but time.
 *
 * An entry is keyed "namespace/name"; pods find theirs by the job-name label, so
 * that an earlier job's leftovers are seen as well.
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

/* `write` is the resourceVersion of the newest of our writes to one collection, 0: none; NULL: of one that is not cached. */
void own_write_note(uint64_t *write, const char *version);

struct http_transfer;

struct job_entry {
    char *key;
    const struct pod_record **pods; /* borrowed from the informer's cache, kept current by its events */
    size_t pod_count, pod_capacity;
    struct pod_moves *pod_moves; /* of each; NULL: the clock was not set */
    int64_t *waits_since_ms;     /* of each, since when its container waits in vain (pod_view.h); NULL: none has */

    bool queued, executing;
    bool dirty; /* something changed while it was executing */
    struct job_entry *next_queued;
    void *queue;               /* for the timer */
    struct event_timer *timer; /* the next look without a reason from outside */
    int64_t timer_ms;

    uint64_t job_write, pod_write, service_write, group_write, workload_write; /* own_write_note */
    unsigned failures;                                                         /* in a row */
    int64_t told_since_ms; /* since when a status that only tells waits for its turn; FIELD_UNSET: none does */

    /* What follows is about the job of this UID; NULL: of none. Another may have the same name. */
    char *job_uid;
    int64_t born_ms, counts_since_ms, pods_changed_ms, behind_since_ms; /* see plan.h */
    bool queue_change_told;                                             /* see plan.h */
    size_t strangers_told;                                              /* see plan.h */
    struct refused_pod *refused;                                        /* see plan.h */
    size_t refused_count, refused_capacity;
    uint64_t born_lists;               /* how often pods had been listed when it was born */
    struct status_moves *status_moves; /* NULL: the clock was not set */

    struct gone_pod *gone; /* of the newest incarnation that pods of the job have vanished from */
    size_t gone_count, gone_capacity;
    int64_t gone_incarnation;
    int64_t vanished_ms, vanished_attempt; /* see plan.h */
    int64_t sent_away_attempt;             /* the highest of which we asked a pod to end, evaluators apart */
    struct unsure_pod *unsure;             /* see plan.h */
    size_t unsure_count, unsure_capacity;
    struct finished_pod *finished; /* see plan.h; the oldest first */
    size_t finished_count, finished_capacity;
    int64_t inherited_incarnation;          /* see plan.h */
    uint64_t lists;                         /* how often pods had been listed when it was noted; 0: it was not */
    int64_t told_incarnation, told_attempt; /* the highest that any status of the job had */

    struct certificate_generation certificate; /* the newest that was made */
    struct crew_key_look key_look;
    struct node_look *nodes; /* see plan.h; the names are the entry's */
    size_t node_count, node_capacity;

    bool over; /* as its status has it */
    struct dropped_fields dropped;

    bool fields_ignored; /* its templates have fields that pods do not have, and that was told */

    enum obstacle_kind obstacle;
    const char *obstacle_plural; /* see plan.h; a constant */
    char *obstacle_message;
    int64_t obstacle_retry_ms;
    unsigned obstacle_count; /* in a row */

    struct status_document *document; /* newest from the chief; NULL: none */
    char *document_pod;               /* the UID of that chief's pod */
    bool document_fresh;              /* not yet handed to a plan */
    int64_t poll_ms;                  /* when to ask next */
    struct http_transfer *poll;
    char *asked_pod;             /* the UID of the chief's pod that is asked; NULL: none */
    int64_t unanswered_since_ms; /* by it; FIELD_UNSET: it has told its status, or was not asked */
    enum chief_voice voice;      /* of it; see plan.h */
};

struct job_entry *job_entry_new(const char *key);
void job_entry_free(struct job_entry *entry);

void job_entry_add_pod(struct job_entry *entry, const struct pod_record *pod);
void job_entry_change_pod(struct job_entry *entry, const struct pod_record *old, const struct pod_record *pod);
/* The cache shows this state of the pod from now on. */
void job_entry_note_wait(struct job_entry *entry, const struct pod_record *pod, int64_t now_ms);
void job_entry_remove_pod(struct job_entry *entry, const struct pod_record *pod);

/* Before it is removed, since the cache does not show it any more. */
void job_entry_note_vanished(struct job_entry *entry, const struct pod_record *pod, int64_t now_ms);
/* A pod of the job `uid` is asked to end. */
void job_entry_note_sent_away(struct job_entry *entry, const char *uid, const struct pod_view *pod);

/* A status was written that knows of the first `count` of those that have finished. */
void job_entry_forget_finished(struct job_entry *entry, size_t count);

/* A pod of the job `uid` was made as `action` has it and is gone, although the cache has shown neither. */
void job_entry_note_lost(struct job_entry *entry, const char *uid, const struct action *action, int64_t incarnation);

/* A node was read, for whichever job of the name; earlier looks at it, and at nodes that nobody asks for any more, are forgotten. */
void job_entry_note_node(struct job_entry *entry, const char *name, enum node_state state, int64_t now_ms);

/* Whether the pod of `action` was made for the job `uid` is not known; or it is, also once the cache has shown it. */
void job_entry_note_unsure(struct job_entry *entry, const char *uid, const struct action *action);
void job_entry_note_sure(struct job_entry *entry, const char *uid, const struct action *action);

/* The job of this name is now that of `uid`, NULL: there is none. What is known of another one is forgotten, and what
 * is still heard of it is not noted. End a question under way before (progress_forget). */
void job_entry_set_job(struct job_entry *entry, const char *uid);
bool job_entry_is_about(const struct job_entry *entry, const char *uid);

/* Each status that the cache shows. What somebody has written a status of is not new any more, whatever becomes of the
 * status. */
void job_entry_see_status(struct job_entry *entry, const struct job_status *status);

/* Pods were listed so often, each time to the end. Listed anew: which of our creates came and went unseen nobody knows, so the job is not new
 * any more once it may have had some, and the incarnation of its status may be used up. Crews of attempts before that of the status are asked
 * to end, perhaps by an operator before this one. */
void job_entry_see_lists(struct job_entry *entry, uint64_t lists, const struct job_status *status);

/* The wall clock was set: times noted before are moved along, those of the API too. `status` NULL: there is no job. */
void job_entry_clock_set(struct job_entry *entry, int64_t by_ms, const struct job_status *status);

/* Its pods for a plan, their times by the clock as it goes now; the records must outlive them. */
const struct pod_view **job_entry_views(const struct job_entry *entry, struct arena *arena);

/* What was told of once, and is over, is told of again when it comes again. */
void job_entry_forget_told(struct job_entry *entry, const struct plan *plan);
/* The events of the plan were told. */
void job_entry_note_told(struct job_entry *entry, const struct plan *plan);

/* The API server does not let this pod be adopted, in these words. Each time it is asked later again. */
void job_entry_refuse_adoption(struct job_entry *entry, const char *pod_uid, const char *words, int64_t now_ms);

/* Notes a refusal of something of the job `uid`: `plural`, a constant, as in plan.h. The same one again, as it may be,
 * waits longer. */
void job_entry_set_obstacle(struct job_entry *entry, const char *uid, enum obstacle_kind kind, const char *plural,
                            const char *message, int64_t now_ms);
void job_entry_clear_obstacle(struct job_entry *entry);

#endif
