/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/crew_communicator.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/comm/traffic.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/crew_group.h"
#include "worker/strategy/crew_nodes.h"
#include "worker/strategy/exact_values.h"

#define CONNECT_MS_DEFAULT 60000
#define DEADLINE_MS_DEFAULT 300000
#define STALL_MS_DEFAULT 30000
#define ABORT_MS 10000
/* So often in a row may the library fail before a step is done, with all peers there; then Auto goes through the host. */
#define FAILURES_MAX 2
#define WHY_MAX 1024
#define MILLION 1000000
/* Numbers travel as float64. */
#define NUMBER_BITS 52

struct crew_communicator {
    struct strategy_options options;
    struct collective *group; /* of the generation; NULL: none is formed */
    struct world world;
    struct communicator *communicator; /* NULL in a crew of one */
    bool is_there;
    bool told; /* that there is one, or that there is none */
    unsigned failures;
};

struct crew_communicator *crew_communicator_new(const struct strategy_options *options)
{
    struct crew_communicator *crew = memory_allocate(1, sizeof *crew);
    crew->options = *options;
    return crew;
}

void crew_communicator_free(struct crew_communicator *crew)
{
    free(crew);
}

bool crew_communicator_is_there(const struct crew_communicator *crew)
{
    return crew != NULL && crew->is_there;
}

/* ---------------------------------------------------------------- waiting */

struct patience {
    const struct crew_communicator *crew;
    const char *what;
    int64_t started_ns, deadline_ms, stalls;
    unsigned turns;
};

static struct patience patience_start(const struct crew_communicator *crew, const char *what, int64_t deadline_ms)
{
    return (struct patience){
        .crew = crew, .what = what, .started_ns = clock_monotonic_ns(), .deadline_ms = deadline_ms};
}

static void tell_stall(struct patience *patience, int64_t waited_ms)
{
    const struct strategy_options *options = &patience->crew->options;
    char text[WHY_MAX];
    if (options->on_stall == NULL)
        return;
    int64_t step = options->state->progress.step;
    snprintf(text, sizeof text, "rank %u has waited %lld s for %s in step %lld; last completed: step %lld",
             patience->crew->world.rank, (long long)waited_ms / 1000, patience->what, (long long)step + 1,
             (long long)step);
    options->on_stall(options->context, text);
}

/* Short waits are spun through. */
static void nap(unsigned turn)
{
    if (turn < 64) {
        sched_yield();
        return;
    }
    nanosleep(&(struct timespec){.tv_nsec = turn < 1024 ? 20000 : 200000}, NULL);
}

/* One more turn; -1 when there is no sense in any. */
static int patience_keep(struct patience *patience, struct error *error)
{
    const struct crew_communicator *crew = patience->crew;
    int64_t stall_ms = crew->options.stall_ms > 0 ? crew->options.stall_ms : STALL_MS_DEFAULT;
    int64_t waited_ms = (clock_monotonic_ns() - patience->started_ns) / MILLION;
    if (collective_check(crew->group, error) < 0)
        return -1;
    if (waited_ms > patience->deadline_ms)
        return error_set(error, ERROR_TIMEOUT, "waited %lld s for %s; all peers are alive: look at NCCL_DEBUG=INFO",
                         (long long)waited_ms / 1000, patience->what);
    if (waited_ms / stall_ms > patience->stalls) {
        patience->stalls = waited_ms / stall_ms;
        tell_stall(patience, waited_ms);
    }
    nap(patience->turns++);
    return 0;
}

static int64_t step_deadline(const struct crew_communicator *crew)
{
    return crew->options.step_deadline_ms > 0 ? crew->options.step_deadline_ms : DEADLINE_MS_DEFAULT;
}

static int await_handed_over(struct crew_communicator *crew, const char *what, int64_t deadline_ms, struct error *error)
{
    struct patience patience = patience_start(crew, what, deadline_ms);
    for (;;) {
        bool handed_over;
        if (communicator_poll(crew->communicator, &handed_over, error) < 0)
            return -1;
        if (handed_over)
            return 0;
        if (patience_keep(&patience, error) < 0)
            return -1;
    }
}

/* ---------------------------------------------------------------- who can be in it */

static bool same_versions(const struct crew_device *devices, const struct collective_peer *peers, unsigned size,
                          struct buffer *why)
{
    char texts[2][COMMUNICATOR_VERSION_MAX], names[2][COLLECTIVE_PEER_TEXT_MAX];
    unsigned rank = 0;
    while (rank < size && devices[rank].standing.version != 0 &&
           devices[rank].standing.version == devices[0].standing.version)
        rank++;
    if (rank == size)
        return true;
    collective_peer_describe(peers, 0, names[0]);
    collective_peer_describe(peers, rank, names[1]);
    communicator_version_text(devices[0].standing.version, texts[0]);
    communicator_version_text(devices[rank].standing.version, texts[1]);
    if (devices[rank].standing.version == 0)
        buffer_format(why, "%s takes no part in it: it lacks NCCL, or has failed with it", names[1]);
    else
        buffer_format(why, "%s has NCCL %s, %s has %s; take the same image for all", names[0], texts[0], names[1],
                      texts[1]);
    return false;
}

static bool share_a_device(const struct crew_device *one, const struct crew_device *other)
{
    return one->machine == other->machine && one->standing.place == other->standing.place &&
           !(one->standing.may_share_device && other->standing.may_share_device);
}

static bool own_devices(const struct crew_device *devices, const struct collective_peer *peers, unsigned size,
                        struct buffer *why)
{
    char names[2][COLLECTIVE_PEER_TEXT_MAX];
    for (unsigned rank = 1; rank < size; rank++)
        for (unsigned other = 0; other < rank; other++) {
            if (!share_a_device(&devices[rank], &devices[other]))
                continue;
            collective_peer_describe(peers, other, names[0]);
            collective_peer_describe(peers, rank, names[1]);
            buffer_format(why, "%s and %s are on one GPU, which NCCL does not take twice", names[0], names[1]);
            return false;
        }
    return true;
}

bool crew_devices_fit(const struct crew_device *devices, const struct collective_peer *peers, unsigned size,
                      struct buffer *why)
{
    return same_versions(devices, peers, size, why) && own_devices(devices, peers, size, why);
}

enum number { NUMBER_VERSION, NUMBER_PLACE, NUMBER_MACHINE, NUMBER_SHARES, NUMBERS };

static double number_of(uint64_t value)
{
    return (double)(value & ((UINT64_C(1) << NUMBER_BITS) - 1));
}

/* Exact: each number is one rank's. */
static int sum_numbers(struct crew_communicator *crew, double *values, size_t count, struct error *error)
{
    size_t total = exact_values_floats(count, crew->world.size);
    SCOPED_FREE float *places = memory_allocate(total, sizeof *places);
    exact_values_put(values, count, crew->world.rank, places);
    if (crew_group_sum(crew->group, places, total, error) < 0)
        return -1;
    exact_values_sum(places, count, crew->world.size, values);
    return 0;
}

static int exchange_devices(struct crew_communicator *crew, struct crew_device ret_devices[CREW_SIZE_MAX],
                            struct error *error)
{
    const struct communicator_standing *own = crew->options.communicator;
    double values[CREW_SIZE_MAX * NUMBERS] = {0}, *mine = &values[(size_t)crew->world.rank * NUMBERS];
    uint64_t machine = crew->options.machine != 0 ? crew->options.machine : crew_nodes_machine();
    bool gives_up = crew->options.collective == COLLECTIVE_AUTO && crew->failures >= FAILURES_MAX;
    if (own != NULL && !gives_up) {
        mine[NUMBER_VERSION] = own->version;
        mine[NUMBER_PLACE] = number_of(own->place);
        mine[NUMBER_MACHINE] = number_of(machine);
        mine[NUMBER_SHARES] = own->may_share_device;
    }
    if (sum_numbers(crew, values, (size_t)crew->world.size * NUMBERS, error) < 0)
        return -1;
    for (unsigned rank = 0; rank < crew->world.size; rank++) {
        const double *theirs = &values[(size_t)rank * NUMBERS];
        ret_devices[rank] = (struct crew_device){.standing = {.version = (int)theirs[NUMBER_VERSION],
                                                              .place = (uint64_t)theirs[NUMBER_PLACE],
                                                              .may_share_device = theirs[NUMBER_SHARES] != 0},
                                                 .machine = (uint64_t)theirs[NUMBER_MACHINE]};
    }
    return 0;
}

/* ---------------------------------------------------------------- forming it */

static void tell(struct crew_communicator *crew, bool is_there, const char *text)
{
    bool news = !crew->told || crew->is_there != is_there;
    crew->told = true;
    crew->is_there = is_there;
    bool cares = crew->options.communicator != NULL; /* a crew on CPUs need not hear of it */
    if (news && cares && crew->world.rank == 0 && crew->options.on_notice != NULL)
        crew->options.on_notice(crew->options.context, text);
}

/* The same in every rank. `kind`: what it is to a job that wants no other way. */
static int do_without(struct crew_communicator *crew, enum error_kind kind, const char *why, struct error *error)
{
    char text[2 * WHY_MAX];
    if (crew->options.collective == COLLECTIVE_NCCL)
        return error_set(error, kind, "strategy.collective: NCCL cannot sum for this crew: %s", why);
    snprintf(text, sizeof text, "gradients go through the host, not by NCCL: %s", why);
    tell(crew, false, text);
    return 0;
}

static void say_it_is_there(struct crew_communicator *crew)
{
    char text[WHY_MAX], version[COMMUNICATOR_VERSION_MAX];
    communicator_version_text(crew->options.communicator->version, version);
    snprintf(text, sizeof text, "gradients go from GPU to GPU by NCCL %s", version);
    tell(crew, true, text);
}

struct invitation {
    bool holds;
    struct communicator_id id;
};

/* Rank 0 has a name for the group; whether anything comes of it is known when all have tried. */
static int start(struct crew_communicator *crew, struct error *cause, struct error *error)
{
    struct strategy_options *options = &crew->options;
    struct invitation invitation = {0};
    if (crew->world.rank == 0)
        invitation.holds = communicator_identify(options->device, &invitation.id, cause) == 0;
    if (crew_group_tell(crew->group, 0, &invitation, sizeof invitation, error) < 0)
        return -1;
    if (!invitation.holds)
        return 0;
    int64_t deadline = options->connect_deadline_ms > 0 ? options->connect_deadline_ms : CONNECT_MS_DEFAULT;
    if (communicator_start(options->device, &invitation.id, crew->world.rank, crew->world.size, &crew->communicator,
                           cause) == 0)
        (void)await_handed_over(crew, "NCCL to connect the crew's GPUs", deadline, cause);
    return 0;
}

/* *ret_failed: a rank that could not join; the crew's size when there is none. */
static int vote(struct crew_communicator *crew, bool joined, unsigned *ret_failed, struct error *error)
{
    double failed[CREW_SIZE_MAX] = {0};
    failed[crew->world.rank] = !joined;
    if (sum_numbers(crew, failed, crew->world.size, error) < 0)
        return -1;
    *ret_failed = 0;
    while (*ret_failed < crew->world.size && failed[*ret_failed] == 0)
        ++*ret_failed;
    return 0;
}

static int do_without_it(struct crew_communicator *crew, unsigned failed, const struct error *cause,
                         struct error *error)
{
    char name[COLLECTIVE_PEER_TEXT_MAX];
    SCOPED_BUFFER why;
    buffer_init(&why, 2 * WHY_MAX);
    collective_peer_describe(crew->world.peers, failed, name);
    buffer_format(&why, "%s could not join%s%s", name, cause->message[0] ? ": " : "; see what it says", cause->message);
    crew->failures++;
    int result = communicator_abort(crew->communicator, ABORT_MS, error);
    crew->communicator = NULL;
    return result < 0 ? -1 : do_without(crew, ERROR_DEVICE, buffer_text(&why), error);
}

static int join(struct crew_communicator *crew, struct error *error)
{
    struct error cause = ERROR_INIT;
    unsigned failed;
    if (start(crew, &cause, error) < 0)
        return -1;
    if (vote(crew, crew->communicator != NULL && cause.kind == ERROR_NONE, &failed, error) < 0)
        return -1;
    if (failed < crew->world.size)
        return do_without_it(crew, failed, &cause, error);
    say_it_is_there(crew);
    return 0;
}

int crew_communicator_form(struct crew_communicator *crew, struct collective *group, const struct world *world,
                           struct error *error)
{
    struct crew_device devices[CREW_SIZE_MAX];
    SCOPED_BUFFER why;
    buffer_init(&why, WHY_MAX);
    crew->group = group;
    crew->world = *world;
    if (exchange_devices(crew, devices, error) < 0)
        return -1;
    if (!crew_devices_fit(devices, world->peers, world->size, &why))
        return do_without(crew, ERROR_CONFLICT, buffer_text(&why), error);
    if (world->size > 1)
        return join(crew, error);
    crew->is_there = true;
    return 0;
}

int crew_communicator_end(struct crew_communicator *crew, struct error *error)
{
    if (crew == NULL || crew->communicator == NULL)
        return 0;
    struct communicator *communicator = crew->communicator;
    crew->communicator = NULL;
    return communicator_abort(communicator, ABORT_MS, error);
}

/* ---------------------------------------------------------------- work */

/* What this rank gives away: of a sum, what any rank of a ring does. */
static void count_traffic(const struct crew_communicator *crew, const struct communicator_operation *operations,
                          unsigned count)
{
    size_t size = crew->world.size;
    for (unsigned i = 0; i < count; i++) {
        size_t bytes = operations[i].elements * sizeof(float);
        if (operations[i].kind != COMMUNICATOR_RECEIVE)
            traffic_count(operations[i].kind == COMMUNICATOR_SUM ? 2 * bytes * (size - 1) / size : bytes);
    }
}

/* Peers that are gone show in the collective as well, and there with their names; but the library may hear of it first. */
static int count_failure(struct crew_communicator *crew, struct error *cause, struct error *error)
{
    if (collective_check(crew->group, error) < 0)
        return -1;
    if (cause->kind == ERROR_UNAVAILABLE && ++crew->failures > FAILURES_MAX)
        cause->kind = ERROR_DEVICE;
    return error_set(error, cause->kind, "%s", cause->message);
}

int crew_communicator_queue(struct crew_communicator *crew, struct device_stream *stream,
                            const struct communicator_operation *operations, unsigned count, struct error *error)
{
    struct error cause = ERROR_INIT;
    if (count == 0)
        return 0;
    count_traffic(crew, operations, count);
    if (communicator_enqueue(crew->communicator, stream, operations, count, &cause) < 0 ||
        await_handed_over(crew, "NCCL to take over gradients", step_deadline(crew), &cause) < 0)
        return count_failure(crew, &cause, error);
    return 0;
}

static int await_event(struct crew_communicator *crew, struct device_event *event, struct error *error)
{
    struct patience patience = patience_start(crew, "NCCL's sums of gradients", step_deadline(crew));
    bool handed_over;
    while (!device_event_is_done(event)) {
        if (communicator_poll(crew->communicator, &handed_over, error) < 0 || patience_keep(&patience, error) < 0)
            return -1;
    }
    return communicator_poll(crew->communicator, &handed_over, error);
}

int crew_communicator_await(struct crew_communicator *crew, struct device_event *event, struct error *error)
{
    struct error cause = ERROR_INIT;
    if (crew->communicator != NULL && await_event(crew, event, &cause) < 0)
        return count_failure(crew, &cause, error);
    if (device_event_wait(event, error) < 0)
        return -1;
    crew->failures = 0;
    return 0;
}
