/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorts the job's pods into slots, at the start of every plan: one slot for each role and index (a
 * seat in the glossary), such as worker 1. All slots together are the crew. A slot is occupied by
 * the one pod that counts there. If the job's status promises a pod for the slot, that is, has
 * recorded that one is to be created, it is a pod of the status's incarnation, a number that is
 * raised before pods are created; otherwise it is a pod with the label `current`. Pods of an
 * earlier attempt, except for evaluators, do not count; the attempt is raised when the whole crew
 * starts over. Of several pods that may occupy a slot, the one with the highest incarnation does.
 * The job's other pods are superseded: they are deleted, except for the newest finished one of each
 * slot, which is kept for its log.
 */
#ifndef COXSWAIN_CONTROLLER_CREW_H
#define COXSWAIN_CONTROLLER_CREW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/job_roles.h"
#include "common/job/training_job.h"
#include "operator/controller/observed/pod_view.h"

struct slot {
    enum role role;
    int64_t index;
    bool promised;                   /* the status records that a pod of its incarnation is to be created */
    bool wanted;                     /* the next status will promise a pod */
    bool fresh;                      /* an elastic job grew: this index has never been promised */
    bool done;                       /* its pod has finished, whether it is still there or not */
    bool restarting;                 /* a pod was lost, and no successor has been ready yet */
    bool backs_off;                  /* its next pod waits, see back_off.h */
    bool failed;                     /* its pod has ended, or it is lost */
    int64_t unsure_incarnation;      /* of a pod that may have been created but was not seen; 0: none */
    bool excludes_usable_node;       /* its pod has no node, and excludes one that is usable (node_avoidance.h) */
    bool blocked;                    /* a superseded pod still carries the label `current` */
    const struct pod_view *occupant; /* the pod that counts; NULL: none */
    const struct pod_view *ending;   /* a superseded one that is still alive; NULL: none */
    const struct pod_view *finished; /* the newest superseded one that has ended, kept for its log; NULL: none */
};

struct crew {
    struct slot *slots; /* by role, then index */
    size_t slot_count;
    size_t first[ROLE_COUNT + 1];       /* where a role's slots begin */
    const struct pod_view **superseded; /* pods of the job that hold no slot */
    size_t superseded_count;
    const struct pod_view **orphans; /* pods without an owner, with the job's UID in their labels */
    size_t orphan_count;
    const struct pod_view *foreign; /* a pod with the job's labels but another owner; NULL: none */
    size_t foreign_count;
    size_t leftover_count; /* pods of an earlier job of the same name */
    size_t earlier_count;  /* alive pods of earlier attempts, without evaluators */
    size_t alive_count;
    int64_t newest_incarnation, newest_attempt; /* the highest of all pods */
    bool ahead; /* a pod is newer than the status: the cached job is outdated, or its status was set back */
};

/* Sorts the pods into a crew, in `arena`; borrows the pods. */
struct crew crew_assemble(const struct training_job *job, const struct pod_view *const *pods, size_t pod_count,
                          struct arena *arena);

/* Returns the chief's slot; NULL: the job has no slots. */
const struct slot *crew_chief(const struct crew *crew, const struct training_job *job);

/* Returns the slot of the pod's role and index, even if another pod occupies it; NULL: the crew has
 * no such slot. */
struct slot *crew_slot(const struct crew *crew, const struct pod_view *pod);

/* Returns the slot of a role and an index that is not negative; NULL: the crew has no such slot. */
struct slot *crew_slot_at(const struct crew *crew, enum role role, int64_t index);

/* Returns whether a promised pod does not exist. */
bool crew_unfilled(const struct crew *crew);

/* Returns whether the crew needs the slot to run: true for all roles but the evaluator. */
bool slot_required(const struct slot *slot);
/* Returns whether the slot's pod exists and is current, its main container runs, it is not being
 * deleted, and it is ready. */
bool slot_ready(const struct slot *slot);
/* Returns whether the pod is ready or has succeeded. */
bool slot_fulfilled(const struct slot *slot);
/* Returns whether a lost pod's successor is not ready yet, or is to be replaced itself. */
bool slot_restarting(const struct slot *slot);
/* Returns whether the slot's pod has vanished: there is neither a pod nor a promise, and the slot
 * is neither done nor fresh. */
bool slot_lost(const struct slot *slot);

#endif
