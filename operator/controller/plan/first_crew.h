/* SPDX-License-Identifier: Apache-2.0
 *
 * The first crew of a job, whose pods need not wait for the status that promises
 * them. A promise is written first so that whoever comes later knows what was
 * decided, and so that an old cache is found out by the write's resourceVersion.
 * A job that this operator saw come into being while it held the lease (there must
 * be one: --leader-elect) has no history that a cache could lack: nobody else has
 * acted on it, and what is decided is always the same, attempt 1, incarnation 1, every
 * pod. So its pods are created as soon as its Service is there, and the status says so
 * with what comes of them.
 *
 * An operator that is killed in between leaves pods of attempt 1 and incarnation 1
 * under a status that knows of none. Its successor, for which the job is not new,
 * first writes a status in which those that it sees hold their places, and the
 * others are promised under incarnation 2: a pod of incarnation 1 that it does not see may be
 * on its way still, or have been removed by force from a node that is cut off and
 * where its process lives on; a fence tells neither from a second one of its name
 * and incarnation. Where it sees none of them at all, all of them may be such: so
 * whoever promises a first crew by a status while it holds a lease does it under
 * incarnation 2. Incarnation 1 is the untold crew's alone, and that of jobs which can have none.
 *
 * The same where a living operator's cache of pods was made anew meanwhile.
 *
 * What is given up is the word of the API server, by the write of a status, that
 * the job is still as the plan has it. The plan goes by the newest that the watch
 * has brought, but a job that is suspended, put into a queue or deleted just after
 * its creation may get its pods all the same, until the change arrives: for as long
 * as the watch lags and the creates wait for their turn, and perhaps outside its
 * quota for that time. They are sent away as those of any job to which this happens;
 * the owner reference takes them along with a job that is gone. Jobs that are
 * created suspended or with a queue's label have no such moment. A job has it once:
 * one whose status was written, by whomever, is not new any more, even if somebody
 * empties it.
 *
 * Not so for jobs whose first pods wait for something, or whose size may change
 * before anything is written.
 */
#ifndef COXSWAIN_CONTROLLER_FIRST_CREW_H
#define COXSWAIN_CONTROLLER_FIRST_CREW_H

#include "operator/controller/plan/planning.h"

#define FIRST_ATTEMPT 1
#define FIRST_INCARNATION 1

/* Of the first crew that a status promises. */
int64_t first_crew_told_incarnation(const struct planning *planning);

/* An operator may have made it: the status has counted its incarnation and attempt, or it is of a first crew untold. */
bool first_crew_or_told(const struct pod_view *pod, int64_t told_incarnation, int64_t told_attempt);

/* The status is as if nobody had ever written it. */
bool first_crew_may_lie_ahead(const struct job_status *status);

/* The plan goes on as if the status had promised the first crew already. */
bool first_crew_may_begin(const struct planning *planning);
/* `ret_job` is the job with that status, and stands for it from here on. */
void first_crew_begin(struct planning *planning, struct training_job *ret_job);

/* No pod of the job was ever made, as far as the status and the cache know. */
bool first_crew_is_unmade(const struct planning *planning);

/* There are pods of the first crew, and the status knows of no crew at all. */
bool first_crew_is_untold(const struct planning *planning);
/* The next status knows of them and since when they have been there, and promises those that are not there under the
 * next incarnation. */
void first_crew_take_over(struct planning *planning);

/* The status tells no more than that the first crew is on its way. */
bool first_crew_starts(const struct job_status *status);
/* Nothing has befallen it. */
bool first_crew_is_whole(const struct job_status *status);

#endif
