/* SPDX-License-Identifier: Apache-2.0
 *
 * The training crew as a list of seats, by rank: the chief (given, or worker 0)
 * is rank 0, the workers follow. Taken from the job document's `crew`; where it
 * has none, from TF_CONFIG; where that is missing too, a crew of one.
 */
#ifndef COXSWAIN_LAUNCH_CREW_H
#define COXSWAIN_LAUNCH_CREW_H

#include <stdbool.h>

#include "common/error.h"
#include "common/job/job_document.h"
#include "worker/coordination/member.h"
#include "worker/launch/identity.h"

/* What a process is there for. */
enum crew_part { CREW_TRAINS, CREW_SERVES, CREW_EVALUATES };

struct crew {
    struct crew_seat *seats; /* of those that train; strings are owned, here and below */
    unsigned size;
    enum crew_part part;       /* this process's */
    unsigned rank;             /* among those of its part */
    struct crew_seat *servers; /* role ps, of strategy ParameterServer */
    unsigned server_count;
    struct crew_seat *evaluators;
    unsigned evaluator_count;
    unsigned least, expected; /* members that training needs, and that there were to be when this process was made; both
                                 equal `size` unless the crew is elastic: then seats may stay empty */
};

/* ERROR_INVALID when the process's role and index are not part of it, or when it is larger than CREW_SIZE_MAX. */
int crew_read(const struct job_document *job, const struct identity *identity, struct crew *ret_crew,
              struct error *error);
/* Whether seats may stay empty, and members come and go while training runs. */
static inline bool crew_is_elastic(const struct crew *crew)
{
    return crew->least < crew->size;
}

void crew_release(struct crew *crew);

/* This process's seat. */
const struct crew_seat *crew_own_seat(const struct crew *crew);
/* Whether the first seat is a chief of its own, rather than worker 0. */
bool crew_has_own_chief(const struct crew *crew);
/* Role and index of a seat; also of one behind the last, which a larger crew before this one may have had. */
struct crew_seat crew_name_seat(const struct crew *crew, unsigned seat);

/* How many members share this machine's processors: all of them when this one's address is on the loopback network, which
 * nobody elsewhere can reach; else this one alone. */
unsigned crew_members_here(const struct crew *crew, const struct identity *identity);

#endif
