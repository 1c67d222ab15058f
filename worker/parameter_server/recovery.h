/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides what parameter servers start from when the chief begins or a server was lost: from what they hold, or from a
 * checkpoint. The chief (train/ps_chief.h) calls it once all servers have reported their state, reads the
 * checkpoint if one is needed, and passes the plan to dispatcher_begin. The functions are pure: they do no I/O.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_RECOVERY_H
#define COXSWAIN_PARAMETER_SERVER_RECOVERY_H

#include "worker/parameter_server/dispatcher.h"

struct recovery_options {
    enum parameter_server_mode mode;
    unsigned server_count;
    int64_t per_step; /* tickets */
    uint32_t chief_incarnation;
    bool begun;       /* tickets were handed out under this chief */
    uint32_t lineage; /* that of these tickets */
};

enum recovery_kind {
    RECOVERY_GO_ON, /* all servers hold the trained state and continue: a new chief takes over, or a connection was lost */
    RECOVERY_SOME, /* some servers hold it and continue; the others start from the source. Not in mode Synchronous */
    RECOVERY_ALL,  /* all servers start from the source */
};

/* The contents of a checkpoint; path "": a fresh run. */
struct recovery_source {
    char *path;
    int64_t step, data_epoch, consumed;
    unsigned server_count; /* servers with tickets below; 0: the checkpoint has no tickets */
    struct ticket_set tickets[PS_SERVERS_MAX];
    int64_t updates[PS_SERVERS_MAX], empty[PS_SERVERS_MAX];
    int64_t empty_before; /* without tickets: how many before `step` have no update */
};
void recovery_source_release(struct recovery_source *source);

/* Decides how to recover. Clears holds_state of servers whose state has an older lineage (it was superseded by a
 * rollback), since that state must not be used. */
enum recovery_kind recovery_choose(const struct recovery_options *options,
                                   struct server_standing standings[PS_SERVERS_MAX]);

/* Makes the plan. `source` is used for RECOVERY_SOME and RECOVERY_ALL only; like `starts`, it must
 * outlive the plan. */
void recovery_plan(const struct recovery_options *options, enum recovery_kind kind,
                   const struct server_standing *standings, const struct recovery_source *source,
                   struct server_start starts[PS_SERVERS_MAX], struct dispatcher_plan *ret_plan);
void recovery_plan_release(struct dispatcher_plan *plan, struct server_start starts[PS_SERVERS_MAX]);

#endif
