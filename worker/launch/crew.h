/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads which processes train a job together (its crew) and which of them this process is. The trainer calls
 * crew_read at its start. The crew is read from the field `crew` of the job document; if that is absent, from
 * TF_CONFIG; if both are absent, the crew is this process alone.
 *
 * Each process has a seat: a role and an index, which stay the same when its pod is replaced. The seats of
 * the processes that train are numbered by rank: rank 0 is the chief (the pod of role `chief`, or worker 0 if
 * there is none), which leads the crew, and the workers follow. Parameter servers and evaluators have lists of
 * their own; the rank of such a process is its place in its list.
 */
#ifndef COXSWAIN_LAUNCH_CREW_H
#define COXSWAIN_LAUNCH_CREW_H

#include <stdbool.h>

#include "common/error.h"
#include "common/job/job_document.h"
#include "worker/coordination/member.h"
#include "worker/launch/identity.h"

/* The task of a process. */
enum crew_part { CREW_TRAINS, CREW_SERVES, CREW_EVALUATES };

struct crew {
    struct crew_seat *seats; /* members that train; strings are owned, here and below */
    unsigned size;
    enum crew_part part;       /* this process's */
    unsigned rank;             /* among those of its part */
    struct crew_seat *servers; /* role ps, of strategy ParameterServer */
    unsigned server_count;
    struct crew_seat *evaluators;
    unsigned evaluator_count;
    unsigned least, expected; /* fewest needed; expected at start; both equal `size` unless the crew is elastic */
};

/* Reads the crew. ERROR_INVALID: this process's role and index are not part of it, or it is larger
 * than CREW_SIZE_MAX. */
int crew_read(const struct job_document *job, const struct identity *identity, struct crew *ret_crew,
              struct error *error);
/* Returns whether seats may stay empty and members may come and go during training. */
static inline bool crew_is_elastic(const struct crew *crew)
{
    return crew->least < crew->size;
}

void crew_release(struct crew *crew);

/* Returns this process's seat. */
const struct crew_seat *crew_own_seat(const struct crew *crew);
/* Returns whether the first seat is a pod of role `chief` rather than worker 0. */
bool crew_has_own_chief(const struct crew *crew);
/* Returns role and index of a seat, also of one beyond the last, which an earlier, larger crew may
 * have had and which has no host. The strings belong to the crew or are static. */
struct crew_seat crew_name_seat(const struct crew *crew, unsigned seat);

/* Returns how many members share this machine's processors and memory: all if this process's
 * address is on the loopback network, which no other machine can reach; else only this one. */
unsigned crew_members_here(const struct crew *crew, const struct identity *identity);

#endif
