/* SPDX-License-Identifier: Apache-2.0
 *
 * A member of the crew, in every process. It keeps one stream to the chief's
 * coordinator (the chief's own member too), over which it joins, beats, reports
 * what it holds, and is told the world. The chief's member runs the coordinator
 * as well. All of it happens on a thread of its own, so a busy trainer still
 * beats.
 *
 * A trainer's life with it:
 *
 *     member_start
 *     again:
 *         member_agree(standing)      waits in place until the crew is whole
 *         collective_new, member_guard, collective_connect
 *         state from where the world says
 *         steps … until one fails with ERROR_UNAVAILABLE: goto again
 *     member_leave, member_free
 *
 * Every error that is not to be retried has its exit code: ERROR_STALE 163 (a
 * newer incarnation has taken our seat, or our generation is superseded),
 * ERROR_TIMEOUT 160 (the crew is lost), ERROR_FORBIDDEN 160 (it is of another
 * version), ERROR_INVALID 64 (another job, or a crew of another shape),
 * ERROR_DEVICE 162 (our device has not the crew's arithmetic).
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

/* A place in the crew. Seat 0 is the chief's. Strings are copied. */
struct crew_seat {
    const char *role; /* "worker" */
    unsigned index;   /* within the role */
    const char *host; /* resolved freshly whenever it is dialled */
    uint16_t port;    /* of its member's RPC server */
};

struct member_options {
    const char *job_uid;
    uint32_t attempt, epoch;       /* COXSWAIN_ATTEMPT, COXSWAIN_INCARNATION */
    unsigned rank, size;           /* our seat, and how many there are */
    unsigned least, expected;      /* elastic crews: members of the smallest world, of the first; 0: size */
    int64_t start_ms;              /* how long a chief's first world waits for the expected; 0: 30 s */
    const struct crew_seat *seats; /* `size` of them */
    const char *listen_address;    /* COXSWAIN_POD_IP, or NULL: all interfaces */
    const char *
        announce_address; /* numeric address that peers dial for bulk data; NULL: listen_address, else the seat's host resolved */
    uint16_t data_port;      /* of this rank's endpoint */
    bool loose;              /* members do not wait for each other once they have started: see member_poll_world */
    unsigned logical_shards; /* the chief's counts; others learn it from the world */
    const char
        *arithmetic; /* the best that this one has (coordination/arithmetic.h); NULL: members need not compute alike */
    int64_t beat_ms; /* 0: 500 */
    int64_t suspicion_ms; /* silence that the status names; 0: 2000 */
    int64_t death_ms;     /* silence that is death; 0: 5000 */
    int64_t lost_ms; /* without a chief for so long: ERROR_TIMEOUT; 0: 600 s. Waiting for other members has no end */
};

/* What this replica could hand on. */
struct member_standing {
    bool holds_state;     /* parameters and slots are whole: initialised, restored, or trained */
    int64_t applied_step; /* last optimizer step in them */
    bool planned;         /* all of the world in force have agreed to meet here, at a step boundary: nobody is missed */
};

enum world_source {
    WORLD_SOURCE_PEER, /* `source_rank` holds the highest applied step; those with `receives` copy it over the data plane */
    WORLD_SOURCE_CHIEF, /* nobody holds any: rank 0 restores a checkpoint or initialises, all others receive from it */
};

struct world {
    struct generation generation;
    unsigned rank, size;             /* ranks are the seats in use, counted from 0 */
    unsigned members[CREW_SIZE_MAX]; /* by rank: the seat */
    uint32_t epochs[CREW_SIZE_MAX];  /* by rank: of who sits there */
    struct collective_peer peers[CREW_SIZE_MAX];
    unsigned logical_shards;
    char arithmetic[ARITHMETIC_MAX]; /* that all compute with from here on; "": each with its own */
    enum world_source source;
    unsigned source_rank;
    bool receives[CREW_SIZE_MAX]; /* by rank: behind, or new */
    int64_t step;                 /* the step that all agree on; meaningless for WORLD_SOURCE_CHIEF */
};

struct member;

/* Listens and starts its thread; speaks to nobody before member_agree. */
int member_start(const struct member_options *options, struct member **ret_member, struct error *error);
/* Ends the thread and all connections; others see a death unless member_leave came first. */
void member_free(struct member *member);

/* Reports `standing` and waits until the whole crew has done so and the chief has named the next world. Also the way back in
 * after a step failed with ERROR_UNAVAILABLE: it gives up the old generation, waiting for a replacement if need be. */
int member_agree(struct member *member, const struct member_standing *standing, struct world *ret_world,
                 struct error *error);

/* For loose crews, after their first member_agree, which is the only one: 1 and the world when a newer one has been named since,
 * else 0. The world stays when the chief is lost; `standing` is what a new one is told. Fails as member_agree does. */
int member_poll_world(struct member *member, const struct member_standing *standing, struct world *ret_world,
                      struct error *error);

/* Has `group` aborted (ERROR_UNAVAILABLE, naming who is gone; or ERROR_STALE) when its generation ends, at once if it has ended
 * already. One at a time; NULL releases. The group must be released before it is freed. */
void member_guard(struct member *member, struct collective *group);

/* The step that runs now, for whoever looks at the crew from outside and for the names of stalls. */
void member_set_step(struct member *member, int64_t step);

/* True in the chief while somebody has joined and waits to be taken in at a step boundary. */
bool member_has_newcomers(struct member *member);

/* What has become of a rank of `world`, which may be an older one. Only the chief knows who is lost; for the others all have moved
 * on once that world has ended. From any thread. */
enum member_presence { MEMBER_PRESENT, MEMBER_MOVED_ON, MEMBER_LOST };
enum member_presence member_presence_of(struct member *member, const struct world *world, unsigned rank);

/* Ends waiting in member_agree with ERROR_CANCELLED (SIGTERM). From any thread. */
void member_cancel(struct member *member);

/* An orderly goodbye: the coordinator does not count it as a death. Waits at most a second for the answer. In the chief: waits
 * at most five seconds for all others to have left, since its end looks like a loss to them. */
void member_leave(struct member *member);

/* One line for the status: "" while the crew is whole, else whom it waits for and why ("waiting for worker 1: connection closed
 * 3 s ago"). From any thread. */
void member_describe(struct member *member, char text[MEMBER_TEXT_MAX]);

#endif
