/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates the first pods of a new job, its first crew, without waiting for a status that promises
 * them. Normally a status write promises each pod before it is created (plan.h), so that a
 * successor of this operator knows what was decided, and so that the write's resourceVersion
 * detects an outdated cache. A job is new if this operator saw its creation while it held the lease
 * (--leader-elect is required). No other operator has acted on such a job, so the cache cannot lack
 * any history, and the decision is always the same: attempt 1, incarnation 1, every pod. So
 * plan_job has the pods created as soon as the job's Service exists, and the status is written
 * afterwards. A crew whose pods may exist before the status mentions them is called unrecorded.
 *
 * If the operator is killed in between, it leaves pods of attempt 1 and incarnation 1 and a status
 * that includes none of them. The job is not new for its successor, which first writes a status in
 * which the pods that it sees keep their seats (role and index) and the others are promised under
 * incarnation 2. The successor must not use incarnation 1 for the others: a pod of incarnation 1
 * that it does not see may still be about to be created, or may have been deleted by force from a
 * node that is cut off, where its process still runs. Fencing could not distinguish a second pod of
 * that name and incarnation from that one. Even if the successor sees no pod at all, all of them
 * may be in that state. So an operator that holds a lease always promises a first crew under
 * incarnation 2. Only unrecorded crews, and jobs that cannot have an unrecorded crew, use incarnation 1.
 *
 * A job is no longer new either if this operator has created pods of it and then had to list all
 * pods again, because pods may have been created and deleted unseen in between.
 *
 * The price is that no status write confirms that the job is still as the plan assumes. The plan
 * uses the newest state that the watch has delivered. A job that is suspended, queued or deleted
 * just after its creation may still get its pods until that change arrives, perhaps exceeding its
 * quota for that time. These pods are then deleted like those of any other such job; if the job
 * itself is gone, its owner reference removes them. Jobs that are created suspended or with a
 * queue's label are not affected. Once anybody has written a job's status, the job is no longer
 * new, even if the status is emptied later.
 *
 * Jobs whose first pods must wait for something, and jobs whose size may change before the first
 * status write (elastic jobs), always have their first crew promised.
 */
#ifndef COXSWAIN_CONTROLLER_FIRST_CREW_H
#define COXSWAIN_CONTROLLER_FIRST_CREW_H

#include "operator/controller/plan/planning.h"

#define FIRST_ATTEMPT 1
#define FIRST_INCARNATION 1

/* Returns the incarnation of a first crew that a status promises: 1 if the job cannot have an
 * unrecorded crew, else 2. */
int64_t first_crew_promised_incarnation(const struct planning *planning);

/* Returns whether an operator may have created the pod: it is of the first attempt and incarnation,
 * or the job's status has reached its attempt and incarnation (`recorded_…`). */
bool first_crew_or_recorded(const struct pod_view *pod, int64_t recorded_incarnation, int64_t recorded_attempt);

/* Returns whether the status is empty, as if nobody had ever written it: the first crew was not created yet, or is unrecorded. */
bool first_crew_may_lie_ahead(const struct job_status *status);

/* Returns whether the first crew may be created now, as if the status had promised it already. */
bool first_crew_may_begin(const struct planning *planning);
/* Continues the plan as if the status had promised the first crew. `ret_job`, the job with that
 * status, replaces the job in `planning` and must live as long. */
void first_crew_begin(struct planning *planning, struct training_job *ret_job);

/* Returns whether no pod of the job was ever created, as far as the status and the cache show. */
bool first_crew_is_unmade(const struct planning *planning);

/* Returns whether pods of the first crew exist though the status includes no crew. */
bool first_crew_is_unrecorded(const struct planning *planning);
/* Writes the unrecorded crew into the next status: its pods, the time since which they have existed,
 * and a promise of the missing pods under the next incarnation. */
void first_crew_take_over(struct planning *planning);

/* Returns whether the first crew is still starting: it is whole (see below) and not running yet. */
bool first_crew_starts(const struct job_status *status);
/* Returns whether the status includes the first crew, which was never restarted or suspended and has
 * not ended. */
bool first_crew_is_whole(const struct job_status *status);

#endif
