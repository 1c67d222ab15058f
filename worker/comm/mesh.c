/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/mesh.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/comm/handshake.h"

#define REDIAL_NS (10 * 1000000LL)
/* Two ranks that share memory have a processor each, if there are two, and move more before one waits for the other. Several are as
 * good with what stays in a second-level cache; of many the rings of all to one rank have no more room than those of sixteen. */
#define RING_BYTES_OF_TWO ((size_t)2 << 20)
#define RING_BYTES ((size_t)512 << 10)
#define RINGS_OF_FULL_LENGTH 16

/* A connection we make, to a lower rank. */
struct dial {
    enum { DIAL_IDLE, DIAL_UNDER_WAY, DIAL_DONE } state;
    int64_t next_ns; /* IDLE: when to dial; UNDER_WAY: when to give up and dial again */
    struct link link;
    struct handshake handshake;
    struct shared_ring *ring;        /* offered */
    char path[SHARED_FILE_PATH_MAX]; /* its name; "": it has none */
};

struct mesh {
    const struct collective_options *options;
    struct link *links;
    struct dial dials[CREW_SIZE_MAX];
    unsigned missing;
    struct error refusal; /* why TLS with a peer, or a proof, failed last */
};

/* ---------------------------------------------------------------- dialling */

static void withdraw(struct dial *dial)
{
    if (dial->ring != NULL)
        shared_ring_withdraw(dial->ring, dial->path);
    dial->path[0] = '\0';
}

static void dial_abandon(struct dial *dial)
{
    withdraw(dial);
    shared_ring_free(dial->ring);
    dial->ring = NULL;
    link_release(&dial->link);
    dial->state = DIAL_IDLE;
    dial->next_ns = clock_monotonic_ns() + REDIAL_NS;
}

static void dial_start(struct dial *dial, const struct collective_peer *peer)
{
    dial->next_ns = clock_monotonic_ns() + HANDSHAKE_NS;
    handshake_dial(&dial->handshake, &dial->link, peer->address, peer->port);
    if (dial->handshake.phase == HANDSHAKE_FAILED)
        dial_abandon(dial);
    else
        dial->state = DIAL_UNDER_WAY;
}

static size_t ring_capacity(const struct collective_options *options)
{
    size_t bytes = options->size == 2 ? RING_BYTES_OF_TWO : RING_BYTES;
    for (unsigned size = RINGS_OF_FULL_LENGTH; size < options->size; size *= 2)
        bytes /= 2;
    return bytes;
}

static void dial_greet(struct mesh *mesh, struct dial *dial, unsigned rank)
{
    const struct collective_options *options = mesh->options;
    struct greeting greeting = {
        .generation = options->generation, .rank = options->rank, .size = options->size, .to = rank};
    snprintf(greeting.job_uid, sizeof(greeting.job_uid), "%s", options->job_uid);
    if (options->transport != COLLECTIVE_TRANSPORT_TCP &&
        getrandom(&greeting.nonce, sizeof(greeting.nonce), 0) == sizeof(greeting.nonce) &&
        shared_ring_create(greeting.nonce, ring_capacity(options), dial->path, &dial->ring, NULL) == 0)
        memcpy(greeting.shared_path, dial->path, sizeof(dial->path));
    handshake_greet(&dial->handshake, &dial->link, &greeting);
}

static void dial_succeed(struct mesh *mesh, struct dial *dial, unsigned rank, bool shared)
{
    withdraw(dial);
    if (shared) {
        link_take_ring(&dial->link, dial->ring);
        dial->ring = NULL;
    }
    shared_ring_free(dial->ring);
    dial->ring = NULL;
    mesh->links[rank] = dial->link;
    link_init(&dial->link);
    dial->state = DIAL_DONE;
    mesh->missing--;
}

static int dial_answered(struct mesh *mesh, struct dial *dial, unsigned rank, struct error *error)
{
    switch (dial->handshake.answer) {
    case ANSWER_STALE:
        return error_set(error, ERROR_STALE,
                         "this process's generation is superseded (" GENERATION_FORMAT "): rank %u is in a newer one",
                         GENERATION_ARGUMENTS(mesh->options->generation), rank);
    case ANSWER_REFUSED:
        return error_set(error, ERROR_INVALID, "rank %u belongs to another job", rank);
    case ANSWER_TCP:
    case ANSWER_SHARED:
        dial_succeed(mesh, dial, rank, dial->handshake.answer == ANSWER_SHARED && dial->ring != NULL);
        return 0;
    }
    return 0;
}

static int dial_advance(struct mesh *mesh, unsigned rank, short ready, struct error *error)
{
    struct dial *dial = &mesh->dials[rank];
    if (dial->state == DIAL_DONE)
        return 0;
    if (dial->state == DIAL_IDLE) {
        if (clock_monotonic_ns() >= dial->next_ns)
            dial_start(dial, &mesh->options->peers[rank]);
        return 0;
    }
    if (ready != 0)
        handshake_advance(&dial->handshake, &dial->link, &mesh->refusal);
    if (dial->handshake.phase == HANDSHAKE_GREET)
        dial_greet(mesh, dial, rank);
    if (dial->handshake.phase == HANDSHAKE_ANSWERED)
        return dial_answered(mesh, dial, rank, error);
    /* Once the greeting is sent the peer may give this connection a seat at any moment: dialling again then would leave it with a
     * connection that is closed, which a peer that has all of its connections never looks at. */
    bool is_late = dial->handshake.phase != HANDSHAKE_GREETED && clock_monotonic_ns() >= dial->next_ns;
    if (dial->handshake.phase == HANDSHAKE_FAILED || is_late)
        dial_abandon(dial);
    return 0;
}

/* ---------------------------------------------------------------- being dialled */

static enum greeting_answer judge_greeting(const struct mesh *mesh, const struct greeting *greeting)
{
    const struct collective_options *options = mesh->options;
    if (strcmp(greeting->job_uid, options->job_uid) != 0)
        return ANSWER_REFUSED;
    if (generation_compare(greeting->generation, options->generation) < 0)
        return ANSWER_STALE;
    if (greeting->size != options->size || greeting->to != options->rank || greeting->rank <= options->rank ||
        greeting->rank >= options->size)
        return ANSWER_REFUSED;
    return ANSWER_TCP;
}

/* A rank that dials again has lost its earlier connection. */
static void seat(struct mesh *mesh, struct arrival *arrival)
{
    const struct greeting *greeting = &arrival->greeting;
    struct link *link = &mesh->links[greeting->rank];
    struct shared_ring *ring = NULL;
    if (link->socket >= 0)
        mesh->missing++;
    link_release(link);
    if (mesh->options->transport != COLLECTIVE_TRANSPORT_TCP && greeting->shared_path[0] != '\0')
        (void)shared_ring_open(greeting->shared_path, greeting->nonce, ring_capacity(mesh->options), &ring, NULL);
    arrival_answer(arrival, ring != NULL ? ANSWER_SHARED : ANSWER_TCP);
    *link = arrival->link;
    link_init(&arrival->link);
    if (ring != NULL)
        link_take_ring(link, ring);
    mesh->missing--;
}

static void take_arrivals(struct mesh *mesh)
{
    struct arrival arrival;
    while (endpoint_take(mesh->options->endpoint, mesh->options->generation, &arrival)) {
        enum greeting_answer answer = judge_greeting(mesh, &arrival.greeting);
        if (answer == ANSWER_TCP)
            seat(mesh, &arrival);
        else
            arrival_answer(&arrival, answer);
        link_release(&arrival.link); /* unless it has a seat now */
    }
}

/* ---------------------------------------------------------------- all of it */

/* Sleeps until something can move. Revents of the dials land in `ready`. */
static int mesh_poll(struct mesh *mesh, int cancel, short ready[CREW_SIZE_MAX], struct error *error)
{
    struct pollfd polls[2 + CREW_SIZE_MAX];
    unsigned rank = mesh->options->rank;
    polls[0] = (struct pollfd){.fd = cancel, .events = POLLIN};
    polls[1] = (struct pollfd){.fd = endpoint_descriptor(mesh->options->endpoint), .events = POLLIN};
    for (unsigned i = 0; i < rank; i++)
        (void)link_prepare_poll(&mesh->dials[i].link, true, mesh->dials[i].handshake.phase == HANDSHAKE_CONNECTING,
                                &polls[2 + i]);
    if (poll(polls, 2 + rank, 10) < 0 && errno != EINTR)
        return error_set_errno(error, "wait for peers");
    if (polls[0].revents != 0)
        return error_set(error, ERROR_CANCELLED, "cancelled while connecting to the other workers");
    for (unsigned i = 0; i < rank; i++)
        ready[i] = polls[2 + i].revents;
    return 0;
}

static int mesh_timeout(const struct mesh *mesh, struct error *error)
{
    SCOPED_BUFFER names = BUFFER_INIT(ERROR_MESSAGE_MAX);
    bool missing[CREW_SIZE_MAX];
    for (unsigned i = 0; i < mesh->options->size; i++)
        missing[i] = i != mesh->options->rank && mesh->links[i].socket < 0;
    collective_peers_describe(mesh->options->peers, missing, mesh->options->size, &names);
    bool refused = mesh->refusal.kind != ERROR_NONE;
    return error_set(error, ERROR_TIMEOUT, "no data connection with %s; do the pods reach each other's ports?%s%s",
                     buffer_text(&names), refused ? " The last of them failed with: " : "",
                     refused ? mesh->refusal.message : "");
}

static int mesh_run(struct mesh *mesh, int cancel, int64_t deadline_ms, struct error *error)
{
    int64_t until = clock_monotonic_ns() + deadline_ms * 1000000;
    short ready[CREW_SIZE_MAX] = {0};
    for (;;) {
        for (unsigned i = 0; i < mesh->options->rank; i++)
            if (dial_advance(mesh, i, ready[i], error) < 0)
                return -1;
        take_arrivals(mesh);
        if (mesh->missing == 0)
            return 0;
        if (clock_monotonic_ns() >= until)
            return mesh_timeout(mesh, error);
        if (mesh_poll(mesh, cancel, ready, error) < 0)
            return -1;
    }
}

int mesh_connect(const struct collective_options *options, int cancel, int64_t deadline_ms, struct link *links,
                 struct error *error)
{
    struct mesh *mesh = memory_allocate(1, sizeof(*mesh));
    mesh->options = options;
    mesh->links = links;
    mesh->missing = options->size - 1;
    if (options->transport != COLLECTIVE_TRANSPORT_TCP)
        shared_file_sweep();
    for (unsigned i = 0; i < CREW_SIZE_MAX; i++)
        link_init(&mesh->dials[i].link);
    int status = endpoint_start(options->endpoint, error);
    if (status == 0)
        status = mesh_run(mesh, cancel, deadline_ms, error);
    for (unsigned i = 0; i < options->rank; i++)
        if (mesh->dials[i].state != DIAL_DONE)
            dial_abandon(&mesh->dials[i]);
    free(mesh);
    return status;
}
