/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects a process to its crew (the pods that train one job together); each worker of a job with several workers has
 * one member, except with strategy ParameterServer, which has its own connections.
 *
 * A member keeps one stream to the coordinator in the chief's process (coordinator.h). On it the member joins, sends
 * heartbeats, reports which training state it holds, and receives the world: the list of members with their ranks,
 * addresses and generation number. The chief's own member talks to the coordinator directly, and also runs it. All of
 * this happens on a separate thread, so a busy trainer still sends heartbeats.
 *
 * How a trainer uses it:
 *
 *     member_start
 *     again:
 *         member_agree(standing)      waits until the crew is complete; fills a struct world
 *         collective_new, member_guard, collective_connect
 *         copy the training state from the rank that world.source names
 *         steps … until one fails with ERROR_UNAVAILABLE: goto again
 *     member_leave, member_free
 *
 * Each error that must not be retried has an exit code: ERROR_STALE 163 (a newer incarnation has
 * taken this seat, or this generation is superseded), ERROR_TIMEOUT 160 (the crew is lost),
 * ERROR_FORBIDDEN 160 (the crew runs another version), ERROR_INVALID 64 (a crew of another shape),
 * ERROR_DEVICE 162 (this device does not support the crew's arithmetic). A chief of another job at
 * the chief's address counts as no chief, and is dialled again.
 */
#ifndef COXSWAIN_COORDINATION_MEMBER_H
#define COXSWAIN_COORDINATION_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/comm/collective.h"
#include "worker/comm/generation.h"
#include "worker/coordination/arithmetic.h"

#define MEMBER_TEXT_MAX 512

/* A place in the crew. Seat 0 is the chief's. The member copies the strings. */
struct crew_seat {
    const char *role; /* "worker" */
    unsigned index;   /* within the role */
    const char *host; /* resolved anew each time it is dialled */
    uint16_t port;    /* of its member's RPC server */
};

struct member_options {
    const char *job_uid;
    uint32_t attempt, incarnation; /* COXSWAIN_ATTEMPT, COXSWAIN_INCARNATION */
    unsigned rank, size;           /* our seat, and how many there are */
    unsigned least, expected;      /* elastic crews: members of the smallest world, of the first; 0: size */
    int64_t start_ms;              /* how long a chief's first world waits for the expected; 0: 30 s */
    const struct crew_seat *seats; /* `size` of them */
    const char *listen_address;    /* COXSWAIN_POD_IP, or NULL: all interfaces */
    const char *
        announce_address; /* numeric address that peers dial for bulk data; NULL: listen_address, else the seat's host resolved */
    uint16_t data_port; /* of this rank's endpoint */
    bool loose;         /* PeerToPeer: members do not wait for each other once they have started: member_poll_world */
    unsigned logical_shards; /* the chief's value is used; the other members receive it in the world */
    const char *
        arithmetic; /* the best that this device supports (coordination/arithmetic.h); NULL: members need not compute alike */
    int64_t beat_ms;      /* interval between heartbeats; 0: 500 */
    int64_t suspicion_ms; /* a member that is silent for so long is named in the status; 0: 2000 */
    int64_t death_ms;     /* a member that is silent for so long is lost; 0: 5000 */
    int64_t
        lost_ms; /* calls fail with ERROR_TIMEOUT after so long without a chief; 0: 600 s. Waiting for others has no limit */
};

/* Describes the state that this replica holds. */
struct member_standing {
    bool holds_state;     /* parameters and slots are whole: initialised, restored, or trained */
    int64_t applied_step; /* last optimizer step in them */
    /* all members of the current world have agreed to stop at this step boundary, so none of them counts as lost */
    bool planned;
};

enum world_source {
    WORLD_SOURCE_PEER, /* `source_rank` holds the highest applied step; the ranks in `receives` copy its state */
    /* no rank holds the state: rank 0 restores a checkpoint or initialises, all others receive from it */
    WORLD_SOURCE_CHIEF,
};

struct world {
    struct generation generation;
    unsigned rank, size;                  /* ranks are the seats in use, counted from 0 */
    unsigned members[CREW_SIZE_MAX];      /* by rank: the seat */
    uint32_t incarnations[CREW_SIZE_MAX]; /* by rank: of the member in the seat */
    struct collective_peer peers[CREW_SIZE_MAX];
    unsigned logical_shards;
    char arithmetic[ARITHMETIC_MAX]; /* with which all members compute from now on; "": each with its own */
    enum world_source source;
    unsigned source_rank;
    bool receives[CREW_SIZE_MAX]; /* by rank: this rank has no state or an older one, and must copy it */
    int64_t step;                 /* the applied step from which all continue; meaningless for WORLD_SOURCE_CHIEF */
};

struct member;

/* Starts to listen, and starts the thread, which joins the crew. The member does not report which state it
 * holds before member_agree. */
int member_start(const struct member_options *options, struct member **ret_member, struct error *error);
/* Ends the thread and closes all connections. Others see this as a death unless member_leave
 * came first. */
void member_free(struct member *member);

/* Reports `standing` and waits until the whole crew has done so and the chief has named the next
 * world. Call it also after a step has failed with ERROR_UNAVAILABLE: it gives up the old
 * generation and waits for a replacement if necessary. */
int member_agree(struct member *member, const struct member_standing *standing, struct world *ret_world,
                 struct error *error);

/* Returns how many threads this process must compute with to be accepted, if the crew has refused it because it
 * uses another number (member_agree has failed with ERROR_DEVICE); else 0. The process then executes itself
 * again with that number. */
int member_wanted_threads(struct member *member);

/* For loose crews, which call member_agree only once: returns 1 and the world if a newer one has
 * been named since the last call, else 0. The world stays in force when the chief is lost;
 * `standing` is reported to its replacement. Fails as member_agree does. */
int member_poll_world(struct member *member, const struct member_standing *standing, struct world *ret_world,
                      struct error *error);

/* Aborts `group` when its generation ends, or at once if it has ended already. Its operations
 * then fail with ERROR_UNAVAILABLE, naming the lost member, or with ERROR_STALE. One group at a
 * time; NULL releases it. The group must be released before it is freed. */
void member_guard(struct member *member, struct collective *group);

/* Sets the current step, for reports to observers and for messages about stalls. */
void member_set_step(struct member *member, int64_t step);

/* Returns true in the chief while a member has joined and waits for a step boundary. */
bool member_has_newcomers(struct member *member);

/* Returns what happened to a rank of `world`, which may be an older world. Only the chief knows
 * who is lost; elsewhere, all ranks count as having moved on once that world has ended. Callable
 * from any thread. */
enum member_presence { MEMBER_PRESENT, MEMBER_MOVED_ON, MEMBER_LOST };
enum member_presence member_presence_of(struct member *member, const struct world *world, unsigned rank);

/* Makes member_agree fail with ERROR_CANCELLED (for SIGTERM). Callable from any thread. */
void member_cancel(struct member *member);

/* Leaves the crew in an orderly way, so that the coordinator does not count it as a death. Waits
 * at most one second for the answer; in the chief, at most five seconds until all others have
 * left, because its end looks like a loss to them. */
void member_leave(struct member *member);

/* Writes one line for the status: "" while the crew is complete, else whom it waits for and why
 * ("waiting for worker 1: connection closed 3 s ago"). Callable from any thread. */
void member_describe(struct member *member, char text[MEMBER_TEXT_MAX]);

#endif
