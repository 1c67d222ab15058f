/* SPDX-License-Identifier: Apache-2.0
 *
 * What servers start from, by how their chief finds them: as they are, or from
 * a checkpoint. Pure functions; whoever calls them reads the
 * checkpoint, when one is needed, and begins with the plan.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_RECOVERY_H
#define COXSWAIN_PARAMETER_SERVER_RECOVERY_H

#include "worker/parameter_server/dispatcher.h"

struct recovery_options {
    enum parameter_server_mode mode;
    unsigned server_count;
    int64_t per_step; /* tickets */
    uint32_t chief_epoch;
    bool begun;       /* tickets have flowed under this chief … */
    uint32_t lineage; /* … and this was their lineage */
};

enum recovery_kind {
    RECOVERY_GO_ON, /* all hold what was trained: a new chief takes over, or a connection was lost */
    RECOVERY_SOME,  /* some hold what was trained, and go on; the others start from the source. Asynchronous only */
    RECOVERY_ALL,   /* everybody starts from the source */
};

/* What a checkpoint says, or (path "") a fresh run. */
struct recovery_source {
    char *path;
    int64_t step, data_epoch, consumed;
    unsigned server_count; /* whose tickets follow; 0: it knows nothing of tickets */
    struct ticket_set tickets[PS_SERVERS_MAX];
    int64_t updates[PS_SERVERS_MAX], empty[PS_SERVERS_MAX];
    int64_t empty_before; /* where it knows nothing of them: so many before `step` have no update */
};
void recovery_source_release(struct recovery_source *source);

/* Takes from the standings what the crew has left: a state of an older lineage is worth nothing. */
enum recovery_kind recovery_choose(const struct recovery_options *options,
                                   struct server_standing standings[PS_SERVERS_MAX]);

/* The plan for it. `source`: SOME and ALL only; borrowed as long as the plan is used, as `starts` is. */
void recovery_plan(const struct recovery_options *options, enum recovery_kind kind,
                   const struct server_standing *standings, const struct recovery_source *source,
                   struct server_start starts[PS_SERVERS_MAX], struct dispatcher_plan *ret_plan);
void recovery_plan_release(struct dispatcher_plan *plan, struct server_start starts[PS_SERVERS_MAX]);

#endif
