/* SPDX-License-Identifier: Apache-2.0
 *
 * The job's pods, each in its place: one slot for each role and index, with the one
 * pod that counts there; the others are superseded.
 */
#ifndef COXSWAIN_CONTROLLER_CREW_H
#define COXSWAIN_CONTROLLER_CREW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/training_job.h"
#include "operator/controller/objects/crew_roles.h"
#include "operator/controller/observed/pod_view.h"

struct slot {
    enum role role;
    int64_t index;
    bool promised;                   /* by the status: a pod of the present incarnation is to be created */
    bool wanted;                     /* by the next status */
    bool fresh;                      /* an elastic job grew: this index has never been promised */
    bool done;                       /* its pod has finished, whether it is still there or not */
    bool restarting;                 /* a pod was lost, and no successor has been ready yet */
    bool backs_off;                  /* its successor waits, see back_off.h */
    bool failed;                     /* its pod has ended, or it is lost */
    int64_t unsure_incarnation;      /* of a pod that may have been made, though nobody has seen it; 0: of none */
    bool blocked;                    /* a superseded pod still carries the label `current` */
    const struct pod_view *occupant; /* the pod that counts; NULL: none */
    const struct pod_view *finished; /* the newest superseded one that has ended, kept for its log; NULL: none */
};

struct crew {
    struct slot *slots; /* by role, then index */
    size_t slot_count;
    size_t first[ROLE_COUNT + 1];       /* where a role's slots begin */
    const struct pod_view **superseded; /* pods of the job that hold no slot */
    size_t superseded_count;
    const struct pod_view **orphans; /* nobody's, with the job's UID in their labels */
    size_t orphan_count;
    const struct pod_view *stranger; /* one of somebody else's that has the job's labels; NULL: none */
    size_t stranger_count;
    size_t leftover_count; /* pods of an earlier job of the same name */
    size_t earlier_count;  /* alive pods of an earlier attempt, evaluators apart */
    size_t alive_count;
    int64_t newest_incarnation, newest_attempt; /* of all pods */
    bool ahead; /* a pod is newer than the status: the cached job is old, or its status was set back */
};

/* In `arena`; borrows the pods. */
struct crew crew_assemble(const struct training_job *job, const struct pod_view *const *pods, size_t pod_count,
                          struct arena *arena);

/* NULL when the job has no pods at all. */
const struct slot *crew_chief(const struct crew *crew, const struct training_job *job);

/* Where a pod belongs, whether it holds that slot or not; NULL: there is no such slot (any more). */
struct slot *crew_slot(const struct crew *crew, const struct pod_view *pod);

struct slot *crew_slot_at(const struct crew *crew, enum role role, int64_t index);

/* A promised pod is not there. */
bool crew_unfilled(const struct crew *crew);

/* All roles but the evaluator are needed for the crew to run. */
bool slot_required(const struct slot *slot);
/* Its pod is created and current, its main container runs, nobody has asked it to end, and it says it is ready. */
bool slot_ready(const struct slot *slot);
/* Ready, or it has ended well. */
bool slot_fulfilled(const struct slot *slot);
/* Still: the successor is not ready, or is to be replaced itself. */
bool slot_restarting(const struct slot *slot);
/* Neither a pod nor the promise of one, nor done: what was there has vanished. */
bool slot_lost(const struct slot *slot);

#endif
