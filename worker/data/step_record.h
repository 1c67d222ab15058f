/* SPDX-License-Identifier: Apache-2.0
 *
 * Logs which examples the processes of a job compute and which steps they apply, so that a test
 * (tests/chaos) can verify afterwards that each step took the right examples, whichever workers were
 * lost meanwhile. Does nothing unless COXSWAIN_RECORD names a file; all processes of the job append
 * lines to it. The lines are:
 *
 *   share GENERATION NAME STEP EPOCH POSITION EXAMPLE…
 *       NAME is about to compute these examples (by number) for STEP. They stand at POSITION and
 *       after it in the order of that epoch of the data.
 *   applied GENERATION NAME FIRST LAST NANOSECONDS
 *       NAME has applied the steps FIRST to LAST, at that time of CLOCK_MONOTONIC.
 *   ticket GENERATION NAME FATE WORKER TICKET
 *       Strategy ParameterServer, written by the chief (the process that leads the job), which hands
 *       out the parts of each batch as numbered tickets. WORKER joins or leaves, takes TICKET, has done
 *       it ("late": WORKER no longer held the ticket; "again": another worker had done it), still holds
 *       it when WORKER comes back, or has finished TICKET tickets in all ("clock": more than was known).
 *       "void": all tickets are taken back; those below TICKET, and those that are kept, are finished.
 *       A "back" before it: the processes have returned to an earlier state.
 *   lost GENERATION NAME UPDATES NANOSECONDS
 *       The same chief: UPDATES acknowledged updates are lost in all, at that time.
 *   server GENERATION NAME FATE LINEAGE NUMBER WHOSE
 *       A parameter server: what happens to its values, or to those that it keeps for another server
 *       (SERVER_FATES). Written before the server tells any other process.
 *   checkpoint GENERATION NAME STEP DIRECTORY
 *       The chief is about to commit what the servers have saved there as the checkpoint of STEP.
 *   peer GENERATION NAME FATE SEAT EXAMPLES
 *       PeerToPeer. "begins": the worker of SEAT starts with EXAMPLES finished; "finished": it has
 *       finished so many; "has": NAME's replica includes its first EXAMPLES; "restored": NAME has
 *       them from a checkpoint, and earlier lines are void.
 *
 * GENERATION, "attempt.incarnation.counter", rises whenever a process joins or leaves the job. NAME is the
 * process, "role-index-incarnation". A line is written whole or not at all. A step counts in the highest
 * generation that has applied it. If a line cannot be written, the log ends with a warning.
 */
#ifndef COXSWAIN_DATA_STEP_RECORD_H
#define COXSWAIN_DATA_STEP_RECORD_H

#include <stdint.h>

#include "common/error.h"
#include "worker/data/sampler.h"

/* Opens the file, once in a process. Without it, or with `path` NULL, the other functions do
 * nothing. */
int step_record_open(const char *path, const char *role, int64_t index, uint32_t attempt, uint32_t incarnation,
                     struct error *error);
void step_record_close(void);

/* Sets the generation of the lines that follow; until then, it is the process's own attempt and
 * incarnation. */
void step_record_world(uint32_t attempt, uint32_t incarnation, uint32_t counter);

/* Log the events above. step_record_share: the `count` examples at `position` of that epoch of the
 * data go into `step`. May be called from any thread. */
void step_record_share(const struct sampler *sampler, int64_t step, int64_t data_epoch, int64_t position,
                       int64_t count);
void step_record_ticket(const char *fate, unsigned worker, int64_t ticket);
void step_record_server(const char *fate, uint32_t lineage, int64_t number, const char *whose);
void step_record_peer(const char *fate, unsigned seat, int64_t examples);
void step_record_checkpoint(int64_t step, const char *directory);
void step_record_applied(int64_t first, int64_t last);
void step_record_lost(int64_t updates);

#endif
