/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/crew_communicator.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/comm/traffic.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/crew_group.h"
#include "worker/strategy/crew_nodes.h"
#include "worker/strategy/device_pairs.h"
#include "worker/strategy/exact_values.h"

#define CONNECT_MS_DEFAULT 60000
#define DEADLINE_MS_DEFAULT 300000
#define STALL_MS_DEFAULT 30000
#define ABORT_MS 10000
/* So often in a row may the library fail before a step is done, with all peers there; then Auto goes through the host. */
#define FAILURES_MAX 2
#define WHY_MAX 1024
#define MILLION 1000000
/* If a sleep ends this much later than asked for, the process was stopped. */
#define LATE_NS 20000000
/* Numbers travel as float64. */
#define NUMBER_BITS 52

struct crew_communicator {
    struct strategy_options options;
    struct collective *group; /* of the generation; NULL: none is formed, or this process is alone */
    struct world world;
    struct device *devices[STRATEGY_DEVICES_MAX]; /* of this process */
    unsigned device_count;                        /* of each */
    struct communicator *communicator;            /* NULL for a lone device */
    bool is_there;
    bool told; /* that there is one, or that there is none */
    bool avoided;
    bool tried; /* the devices' pairs */
    _Atomic unsigned failures;
    _Atomic bool has_failed;                 /* in this generation; the whole's, like the last */
    int64_t frozen_ns;                       /* crew_communicator_take_frozen_ns */
    struct crew_communicator *parts, *whole; /* one a device; of a part: NULL, and what it is a part of */
};

struct crew_communicator *crew_communicator_new(const struct strategy_options *options)
{
    struct crew_communicator *crew = memory_allocate(1, sizeof *crew);
    crew->options = *options;
    crew->device_count = options->device_count;
    for (unsigned i = 0; i < options->device_count; i++)
        crew->devices[i] = options->devices[i].device;
    crew->parts = memory_allocate(crew->device_count + 1, sizeof *crew->parts);
    return crew;
}

void crew_communicator_free(struct crew_communicator *crew)
{
    if (crew != NULL)
        free(crew->parts);
    free(crew);
}

const char *crew_communicator_cargo(enum strategy_type type, unsigned stages, unsigned devices)
{
    if (type == STRATEGY_PEER_TO_PEER)
        return "what a worker's own GPUs tell each other goes";
    if (type != STRATEGY_PIPELINE)
        return "gradients go";
    return stages > 0 && stages <= devices ? "gradients of replicas go" : "what crosses between stages goes";
}

static const char *cargo_of(const struct crew_communicator *crew)
{
    return crew_communicator_cargo(crew->options.type, crew->options.pipeline.stages, crew->device_count);
}

bool crew_communicator_is_there(const struct crew_communicator *crew)
{
    return crew != NULL && crew->is_there;
}

/* ---------------------------------------------------------------- waiting */

struct patience {
    struct crew_communicator *crew;
    const char *what;
    int64_t started_ns, deadline_ms, stalls;
    unsigned turns;
};

static struct patience patience_start(struct crew_communicator *crew, const char *what, int64_t deadline_ms)
{
    return (struct patience){
        .crew = crew, .what = what, .started_ns = clock_monotonic_ns(), .deadline_ms = deadline_ms};
}

static void tell_stall(struct patience *patience, int64_t waited_ms)
{
    const struct strategy_options *options = &patience->crew->options;
    char text[WHY_MAX];
    if (options->calls.on_stall == NULL)
        return;
    int64_t step = options->state->progress.step;
    char who[32] = "this worker's GPUs have"; /* alone in their group */
    if (patience->crew->group != NULL)
        snprintf(who, sizeof who, "rank %u has", patience->crew->world.rank);
    snprintf(text, sizeof text, "%s waited %lld s for %s in step %lld; last completed: step %lld", who,
             (long long)waited_ms / 1000, patience->what, (long long)step + 1, (long long)step);
    options->calls.on_stall(options->calls.context, text);
}

/* Short waits are spun through. Returns how long it took. */
static int64_t nap(unsigned turn)
{
    int64_t now = clock_monotonic_ns();
    if (turn < 64)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = turn < 1024 ? 20000 : 200000}, NULL);
    return clock_monotonic_ns() - now;
}

/* A process that trains alone has no peers to lose. */
static int check_peers(const struct crew_communicator *crew, struct error *error)
{
    return crew->group != NULL ? collective_check_peers(crew->group, error) : 0;
}

/* One more turn; -1 when there is no sense in any. */
static int patience_keep(struct patience *patience, struct error *error)
{
    const struct crew_communicator *crew = patience->crew;
    int64_t stall_ms = crew->options.crew.stall_ms > 0 ? crew->options.crew.stall_ms : STALL_MS_DEFAULT;
    int64_t waited_ms = (clock_monotonic_ns() - patience->started_ns) / MILLION;
    if (check_peers(crew, error) < 0)
        return -1;
    if (waited_ms > patience->deadline_ms)
        return error_set(error, ERROR_TIMEOUT, "waited %lld s for %s; all peers are alive: look at NCCL_DEBUG=INFO",
                         (long long)waited_ms / 1000, patience->what);
    if (waited_ms / stall_ms > patience->stalls) {
        patience->stalls = waited_ms / stall_ms;
        tell_stall(patience, waited_ms);
    }
    int64_t late_ns = nap(patience->turns++);
    if (late_ns > LATE_NS)
        patience->crew->frozen_ns += late_ns;
    return 0;
}

static int64_t step_deadline(const struct crew_communicator *crew)
{
    return crew->options.crew.step_deadline_ms > 0 ? crew->options.crew.step_deadline_ms : DEADLINE_MS_DEFAULT;
}

static int await_enqueued(struct crew_communicator *crew, const char *what, int64_t deadline_ms, struct error *error)
{
    struct patience patience = patience_start(crew, what, deadline_ms);
    for (;;) {
        bool enqueued;
        if (communicator_poll(crew->communicator, &enqueued, error) < 0)
            return -1;
        if (enqueued)
            return 0;
        if (patience_keep(&patience, error) < 0)
            return -1;
    }
}

/* ---------------------------------------------------------------- can all devices join */

/* A process says the same version of all of its devices. */
static bool same_versions(const struct crew_device *devices, unsigned each, const struct collective_peer *peers,
                          unsigned size, struct buffer *why)
{
    char texts[2][COMMUNICATOR_VERSION_MAX], names[2][COLLECTIVE_PEER_TEXT_MAX];
    unsigned rank = 0;
    while (rank < size && devices[rank * each].capabilities.version != 0 &&
           devices[rank * each].capabilities.version == devices[0].capabilities.version)
        rank++;
    if (rank == size)
        return true;
    collective_peer_describe(peers, 0, names[0]);
    collective_peer_describe(peers, rank, names[1]);
    communicator_version_text(devices[0].capabilities.version, texts[0]);
    communicator_version_text(devices[rank * each].capabilities.version, texts[1]);
    if (devices[rank * each].capabilities.version == 0)
        buffer_format(why,
                      "%s cannot use NCCL: it is not installed there, has failed there, or the GPUs there spoil what "
                      "they copy to each other",
                      names[1]);
    else
        buffer_format(why, "%s has NCCL %s, %s has %s; take the same image for all", names[0], texts[0], names[1],
                      texts[1]);
    return false;
}

static bool share_a_device(const struct crew_device *one, const struct crew_device *other)
{
    return one->machine == other->machine && one->capabilities.place == other->capabilities.place &&
           !(one->capabilities.may_share_device && other->capabilities.may_share_device);
}

/* Those of one process are different ones. */
static bool own_devices(const struct crew_device *devices, unsigned each, const struct collective_peer *peers,
                        unsigned size, struct buffer *why)
{
    char names[2][COLLECTIVE_PEER_TEXT_MAX];
    for (unsigned place = each; place < size * each; place++)
        for (unsigned other = 0; other < place / each * each; other++) {
            if (!share_a_device(&devices[place], &devices[other]))
                continue;
            collective_peer_describe(peers, other / each, names[0]);
            collective_peer_describe(peers, place / each, names[1]);
            buffer_format(why, "%s and %s use the same GPU, and NCCL needs one for each", names[0], names[1]);
            return false;
        }
    return true;
}

bool crew_devices_fit(const struct crew_device *devices, unsigned each, const struct collective_peer *peers,
                      unsigned size, struct buffer *why)
{
    return same_versions(devices, each, peers, size, why) && own_devices(devices, each, peers, size, why);
}

enum number { NUMBER_VERSION, NUMBER_PLACE, NUMBER_MACHINE, NUMBER_SHARES, NUMBERS };

static double number_of(uint64_t value)
{
    return (double)(value & ((UINT64_C(1) << NUMBER_BITS) - 1));
}

/* Exact: each number is one rank's. */
static int sum_numbers(struct crew_communicator *crew, double *values, size_t count, struct error *error)
{
    if (crew->group == NULL)
        return 0;
    size_t total = exact_values_floats(count, crew->world.size);
    SCOPED_FREE float *places = memory_allocate(total, sizeof *places);
    exact_values_put(values, count, crew->world.rank, places);
    if (crew_group_sum(crew->group, places, total, error) < 0)
        return -1;
    exact_values_sum(places, count, crew->world.size, values);
    return 0;
}

static unsigned count_places(const struct crew_communicator *crew)
{
    return crew->world.size * crew->device_count;
}

static void tell_own(const struct crew_communicator *crew, double *numbers)
{
    const struct communicator_capabilities *own = crew->options.sums.communicator;
    uint64_t machine = crew->options.crew.machine != 0 ? crew->options.crew.machine : crew_nodes_machine();
    bool gives_up =
        crew->avoided || (crew->options.crew.collective == COLLECTIVE_AUTO && crew->failures >= FAILURES_MAX);
    for (unsigned i = 0; own != NULL && !gives_up && i < crew->device_count; i++, numbers += NUMBERS) {
        numbers[NUMBER_VERSION] = own[i].version;
        numbers[NUMBER_PLACE] = number_of(own[i].place);
        numbers[NUMBER_MACHINE] = number_of(machine);
        numbers[NUMBER_SHARES] = own[i].may_share_device;
    }
}

static int exchange_devices(struct crew_communicator *crew, struct crew_device *ret_devices, struct error *error)
{
    size_t count = (size_t)count_places(crew) * NUMBERS;
    SCOPED_FREE double *values = memory_allocate(count, sizeof *values);
    tell_own(crew, values + (size_t)crew->world.rank * crew->device_count * NUMBERS);
    if (sum_numbers(crew, values, count, error) < 0)
        return -1;
    for (unsigned place = 0; place < count_places(crew); place++) {
        const double *theirs = &values[(size_t)place * NUMBERS];
        ret_devices[place] = (struct crew_device){.capabilities = {.version = (int)theirs[NUMBER_VERSION],
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
    bool cares = crew->options.sums.communicator != NULL; /* a crew on CPUs need not hear of it */
    if (news && cares && crew->world.rank == 0 && crew->options.calls.on_notice != NULL)
        crew->options.calls.on_notice(crew->options.calls.context, text);
}

/* The same in every rank. `kind`: what it is to a job that wants no other way. */
static int do_without(struct crew_communicator *crew, enum error_kind kind, const char *why, struct error *error)
{
    char text[2 * WHY_MAX];
    if (crew->options.crew.collective == COLLECTIVE_NCCL)
        return error_set(error, kind, "strategy.collective: NCCL cannot sum for this crew: %s", why);
    snprintf(text, sizeof text, "%s through the host, not by NCCL: %s", cargo_of(crew), why);
    tell(crew, false, text);
    return 0;
}

static void say_it_is_there(struct crew_communicator *crew)
{
    char text[WHY_MAX], version[COMMUNICATOR_VERSION_MAX];
    communicator_version_text(crew->options.sums.communicator->version, version);
    snprintf(text, sizeof text, "%s from GPU to GPU by NCCL %s", cargo_of(crew), version);
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
    if (crew->group != NULL && crew_group_tell(crew->group, 0, &invitation, sizeof invitation, error) < 0)
        return -1;
    if (!invitation.holds)
        return 0;
    int64_t deadline = options->crew.connect_deadline_ms > 0 ? options->crew.connect_deadline_ms : CONNECT_MS_DEFAULT;
    if (communicator_start(crew->devices, crew->device_count, &invitation.id, crew->world.rank * crew->device_count,
                           count_places(crew), &crew->communicator, cause) == 0)
        (void)await_enqueued(crew, "NCCL to connect the GPUs", deadline, cause);
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
    char name[COLLECTIVE_PEER_TEXT_MAX] = "this worker's GPUs";
    SCOPED_BUFFER why = BUFFER_INIT(2 * WHY_MAX);
    if (crew->group != NULL)
        collective_peer_describe(crew->world.peers, failed, name);
    buffer_format(&why, "%s could not join%s%s", name, cause->message[0] ? ": " : "; see what it says", cause->message);
    crew->failures++;
    int result = communicator_abort(crew->communicator, ABORT_MS, error);
    crew->communicator = NULL;
    return result < 0 ? -1 : do_without(crew, ERROR_DEVICE, buffer_text(&why), error);
}

static void make_parts(struct crew_communicator *crew)
{
    for (unsigned i = 0; i < crew->device_count; i++) {
        crew->parts[i] = *crew;
        crew->parts[i].whole = crew;
        crew->parts[i].parts = NULL;
        crew->parts[i].devices[0] = crew->devices[i];
        crew->parts[i].device_count = 1;
        crew->parts[i].communicator = communicator_part(crew->communicator, i);
    }
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
    make_parts(crew);
    return 0;
}

/* Once, before the library opens direct ways between the devices here, where they can be in a group at all. */
static void try_pairs(struct crew_communicator *crew)
{
    if (crew->tried || crew->options.sums.communicator == NULL)
        return;
    crew->tried = true;
    if (!device_pairs_try(&crew->options, crew->devices, crew->device_count))
        crew->avoided = true;
}

/* A lone process has no rank that people would know it by. */
static bool fit(const struct crew_communicator *crew, const struct crew_device *devices, struct buffer *why)
{
    const struct world *world = &crew->world;
    if (crew->group != NULL || !crew->avoided)
        return crew_devices_fit(devices, crew->device_count, world->peers, world->size, why);
    buffer_format(why, "this worker's GPUs spoil what they copy to each other");
    return false;
}

int crew_communicator_form(struct crew_communicator *crew, struct collective *group, const struct world *world,
                           struct error *error)
{
    SCOPED_BUFFER why = BUFFER_INIT(WHY_MAX);
    crew->group = group;
    crew->world = *world;
    crew->has_failed = false;
    SCOPED_FREE struct crew_device *devices = memory_allocate(count_places(crew), sizeof *devices);
    try_pairs(crew);
    if (exchange_devices(crew, devices, error) < 0)
        return -1;
    if (!fit(crew, devices, &why))
        return do_without(crew, ERROR_CONFLICT, buffer_text(&why), error);
    if (count_places(crew) > 1)
        return join(crew, error);
    crew->is_there = true;
    return 0;
}

void crew_communicator_avoid(struct crew_communicator *crew)
{
    if (crew != NULL)
        crew->avoided = true;
}

struct crew_communicator *crew_communicator_part(struct crew_communicator *crew, unsigned device)
{
    return &crew->parts[device];
}

void crew_communicator_note_step(struct crew_communicator *crew)
{
    if (crew != NULL && crew->communicator != NULL)
        crew->failures = 0;
}

int crew_communicator_end(struct crew_communicator *crew, struct error *error)
{
    if (crew == NULL || crew->communicator == NULL)
        return 0;
    struct communicator *communicator = crew->communicator;
    crew->communicator = NULL;
    if (crew->group != NULL)
        collective_break_off(crew->group, ERROR_CANCELLED, "the group is closed");
    return communicator_abort(communicator, ABORT_MS, error);
}

/* ---------------------------------------------------------------- work */

static struct crew_communicator *whole_of(struct crew_communicator *crew)
{
    return crew->whole != NULL ? crew->whole : crew;
}

/* Counts the bytes that this rank sends; for a sum, those that each rank of a ring sends. A process that trains alone sends nothing. */
static void count_traffic(struct crew_communicator *crew, const struct communicator_operation *operations,
                          unsigned count)
{
    size_t size = count_places(whole_of(crew));
    for (unsigned i = 0; crew->group != NULL && i < count; i++) {
        size_t bytes = operations[i].elements * sizeof(float);
        if (operations[i].kind != COMMUNICATOR_RECEIVE)
            traffic_count(operations[i].kind == COMMUNICATOR_SUM ? 2 * bytes * (size - 1) / size : bytes);
    }
}

/* Counted for the whole crew: a failure that several threads see in one generation counts once. */
static bool has_failed_too_often(struct crew_communicator *whole)
{
    if (!atomic_exchange(&whole->has_failed, true))
        whole->failures++;
    return whole->failures > FAILURES_MAX;
}

/* Peers that are gone show in the collective as well, and there with their names; but the library may hear of it first. */
static int count_failure(struct crew_communicator *crew, struct error *cause, struct error *error)
{
    if (check_peers(crew, error) < 0)
        return -1;
    if (crew->group == NULL || (cause->kind == ERROR_UNAVAILABLE && has_failed_too_often(whole_of(crew))))
        cause->kind = ERROR_DEVICE;
    return error_set(error, cause->kind, "%s", cause->message);
}

int crew_communicator_queue(struct crew_communicator *crew, struct device_stream *const *streams,
                            const struct communicator_operation *operations, unsigned count, struct error *error)
{
    struct error cause = ERROR_INIT;
    if (count == 0)
        return 0;
    count_traffic(crew, operations, count);
    if (communicator_enqueue(crew->communicator, streams, operations, count, &cause) < 0 ||
        await_enqueued(crew, "NCCL to take over its work", step_deadline(crew), &cause) < 0)
        return count_failure(crew, &cause, error);
    return 0;
}

static int await_event(struct crew_communicator *crew, struct device_event *event, struct error *error)
{
    const char *what =
        crew->options.type == STRATEGY_PIPELINE ? "what another worker gives by NCCL" : "NCCL's sums of gradients";
    struct patience patience = patience_start(crew, what, step_deadline(crew));
    bool enqueued;
    while (!device_event_is_done(event)) {
        if (communicator_poll(crew->communicator, &enqueued, error) < 0 || patience_keep(&patience, error) < 0)
            return -1;
    }
    return communicator_poll(crew->communicator, &enqueued, error);
}

int crew_communicator_keep_up(struct crew_communicator *crew, struct device_event *event, struct error *error)
{
    struct error cause = ERROR_INIT;
    if (crew->communicator != NULL && await_event(crew, event, &cause) < 0)
        return count_failure(crew, &cause, error);
    return 0;
}

int64_t crew_communicator_take_frozen_ns(struct crew_communicator *crew)
{
    if (crew == NULL)
        return 0;
    int64_t frozen_ns = crew->frozen_ns;
    crew->frozen_ns = 0;
    return frozen_ns;
}

int crew_communicator_await(struct crew_communicator *crew, struct device_event *event, struct error *error)
{
    if (crew_communicator_keep_up(crew, event, error) < 0)
        return -1;
    if (device_event_wait(event, error) < 0)
        return -1;
    if (crew->whole == NULL) /* else crew_communicator_note_step */
        crew->failures = 0;
    return 0;
}
