/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/collective_parts.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/lock.h"

#define SPIN_NS 30000
/* A thread that waits for peers wakes at this interval, to notice if this process was stopped: then a wake-up is LATE_NS late or more. */
#define WAKE_MS 20
#define LATE_NS 20000000

/* ---------------------------------------------------------------- operations */

void collective_lend_staging(struct collective *group, struct operation *operation)
{
    if (group->spare_count == 0 || operation->staging != NULL)
        return;
    struct spare_staging spare = group->spares[--group->spare_count];
    operation->staging = spare.memory;
    operation->staging_elements = spare.elements;
}

void collective_take_staging_back(struct collective *group, struct operation *operation)
{
    if (operation->staging == NULL)
        return;
    group->spares[group->spare_count++] = (struct spare_staging){operation->staging, operation->staging_elements};
    operation->staging = NULL;
    operation->staging_elements = 0;
}

static bool has_shards(const struct request *request)
{
    return request->kind == REQUEST_REDUCE_SCATTER || request->kind == REQUEST_ALL_GATHER;
}

/* The same on both. */
static bool are_two_with_shared_memory(const struct collective *group)
{
    return group->setting.size == 2 && group->lanes[1 - group->setting.rank].link.ring != NULL;
}

/* Returns the size of the request's next operation. With shards, it ends with the round, so that each rank's part is one piece. */
static size_t operation_size(const struct collective *group, const struct request *request)
{
    size_t most = request->kind == REQUEST_BROADCAST ? OPERATION_BYTES : OPERATION_ELEMENTS;
    if (request->kind == REQUEST_ALL_REDUCE && are_two_with_shared_memory(group))
        most = OPERATION_BYTES_OF_TWO / sizeof(float);
    size_t left = request->total - request->begun;
    if (has_shards(request)) {
        unsigned ranks = group->setting.size;
        size_t at = request->shards.offset + request->begun, round = shards_round(&request->shards, ranks, at);
        size_t to_end = shards_stripe(&request->shards, ranks, round, ranks) - at;
        most = to_end < most ? to_end : most;
    }
    return left < most ? left : most;
}

static void begin_reduction(struct collective *group, struct operation *operation, uint64_t sequence,
                            const struct request *request, size_t size, const struct collective_shards *shards)
{
    const float *here[OPERATION_PARTS_MAX];
    collective_lend_staging(group, operation);
    for (unsigned i = 0; i < group->setting.reduction.contributions[group->setting.rank]; i++)
        here[i] = request->contributions[i] + request->begun;
    if (shards)
        operation_begin_reduce_scatter(operation, &group->setting, sequence, here, request->result + request->begun,
                                       size, shards, collective_enqueue, group);
    else
        operation_begin_all_reduce(operation, &group->setting, sequence, here, request->result + request->begun, size,
                                   collective_enqueue, group);
    if (operation_stages_late(operation))
        collective_take_staging_back(group, operation);
}

static void begin_operation(struct collective *group, struct request *request)
{
    struct operation *operation = collective_operation(group, group->next_sequence);
    uint64_t sequence = group->next_sequence++;
    size_t size = operation_size(group, request);
    struct collective_shards shards = request->shards;
    shards.offset += request->begun;
    operation->ticket = request->ticket;
    request->operations++;
    if (request->kind == REQUEST_BROADCAST)
        operation_begin_broadcast(operation, &group->setting, sequence, request->root, request->receives,
                                  request->bytes + request->begun, size, collective_enqueue, group);
    else if (request->kind == REQUEST_ALL_GATHER)
        operation_begin_all_gather(operation, &group->setting, sequence, request->sources,
                                   request->result + request->begun, size, &shards, collective_enqueue, group);
    else
        begin_reduction(group, operation, sequence, request, size, has_shards(request) ? &shards : NULL);
    request->begun += size;
}

static void retire_operations(struct collective *group)
{
    for (uint64_t sequence = group->oldest_sequence; sequence < group->next_sequence; sequence++) {
        struct operation *operation = collective_operation(group, sequence);
        if (!operation->active)
            continue;
        operation_advance(operation, collective_enqueue, group);
        if (!operation_is_done(operation))
            continue;
        operation->active = false;
        collective_take_staging_back(group, operation);
        struct request *request = collective_request(group, operation->ticket);
        request->operations--;
        if (request_done(request))
            group->unfinished--;
    }
    while (group->oldest_sequence < group->next_sequence &&
           !collective_operation(group, group->oldest_sequence)->active)
        group->oldest_sequence++;
}

/* Begins as many operations as the window has room for, in the order of the tickets. */
static bool begin_operations(struct collective *group)
{
    bool begun = false;
    while (group->cutting < group->next_ticket && group->next_sequence - group->oldest_sequence < COLLECTIVE_WINDOW) {
        struct request *request = collective_request(group, group->cutting);
        if (request->begun == request->total) {
            group->cutting++;
            continue;
        }
        begin_operation(group, request);
        begun = true;
    }
    return begun;
}

/* ---------------------------------------------------------------- progress */

bool collective_progress(struct collective *group)
{
    if (atomic_load(&group->aborted))
        return false;
    struct error error = ERROR_INIT;
    bool moved = begin_operations(group);
    for (unsigned rank = 0; rank < group->setting.size; rank++) {
        if (rank != group->setting.rank && collective_lane_progress(group, rank, &moved, &error) < 0) {
            collective_fail(group, &error);
            return false;
        }
    }
    retire_operations(group);
    transfers_retire(group);
    moved |= begin_operations(group);
    if (moved)
        group->progress_ns = clock_monotonic_ns();
    return moved;
}

/* Sleeps, without the lock, until a link or the event is ready. Only the thread that drives consumes the bells: if the communication
 * thread wakes and finds that a caller drives, it leaves them, because the caller, about to sleep, would miss the one it waits for. */
static void group_sleep(struct collective *group, int timeout_ms)
{
    bool drives = group->driven;
    struct pollfd polls[1 + CREW_SIZE_MAX];
    unsigned size = group->setting.size;
    polls[size] = (struct pollfd){.fd = group->wake, .events = POLLIN};
    for (unsigned rank = 0; rank < size; rank++) {
        struct lane *lane = &group->lanes[rank];
        if (!link_prepare_poll(&lane->link, collective_lane_wants(group, lane), lane->queue != NULL, &polls[rank]))
            return;
    }
    pthread_mutex_unlock(&group->lock);
    int64_t begun = clock_monotonic_ns();
    int ready = poll(polls, size + 1, timeout_ms);
    int64_t late = clock_monotonic_ns() - begun - (int64_t)timeout_ms * 1000000;
    pthread_mutex_lock(&group->lock);
    if (drives && late > LATE_NS)
        group->frozen_ns += late;
    if (ready <= 0 || (group->driven && !drives))
        return;
    for (unsigned rank = 0; rank < size; rank++)
        link_after_poll(&group->lanes[rank].link, &polls[rank]);
    uint64_t count;
    if (polls[size].revents != 0 && !atomic_load(&group->aborted))
        (void)!read(group->wake, &count, sizeof(count));
}

void *collective_run(void *context)
{
    struct collective *group = context;
    SCOPED_LOCK(&group->lock);
    while (!group->stopping) {
        if (group->driven || group->unfinished == 0 || atomic_load(&group->aborted)) {
            pthread_cond_wait(&group->changed, &group->lock);
        } else if (!collective_progress(group) && group->unfinished > 0) {
            group->sleeping = true;
            group_sleep(group, 1000);
            group->sleeping = false;
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------- driving */

static const char *const operation_names[] = {
    [OPERATION_DIRECT] = "all-reduce",      [OPERATION_OWNED] = "all-reduce",  [OPERATION_STEPPED] = "all-reduce",
    [OPERATION_SCATTER] = "reduce-scatter", [OPERATION_GATHER] = "all-gather", [OPERATION_BROADCAST] = "broadcast",
};

static void describe(struct collective *group, char *text, size_t size)
{
    if (group->unfinished == 0) {
        snprintf(text, size, "rank %u: nothing under way; last completed operation %llu", group->setting.rank,
                 (unsigned long long)group->oldest_sequence);
        return;
    }
    struct operation *operation = collective_operation(group, group->oldest_sequence);
    bool awaited[CREW_SIZE_MAX] = {false};
    SCOPED_BUFFER names = BUFFER_INIT(ERROR_MESSAGE_MAX);
    for (unsigned rank = 0; rank < group->setting.size; rank++)
        awaited[rank] = operation->active && (operation->awaiting[rank] > 0 || group->lanes[rank].queue != NULL);
    collective_peers_describe(group->peers, awaited, group->setting.size, &names);
    snprintf(text, size, "rank %u waits %.1f s for %s in operation %llu (%s, %s); last completed %llu",
             group->setting.rank, (double)(clock_monotonic_ns() - group->progress_ns) / 1e9,
             names.length ? buffer_text(&names) : "its own turn", (unsigned long long)group->oldest_sequence + 1,
             operation_names[operation->kind], group->label, (unsigned long long)group->oldest_sequence);
}

/* Reports a stall, and fails the group after the deadline. */
static void check_patience(struct collective *group, const struct request *request, int64_t *stalls_told)
{
    int64_t idle_ms = (clock_monotonic_ns() - group->progress_ns) / 1000000;
    char text[ERROR_MESSAGE_MAX];
    if (idle_ms >= group->options.deadline_ms && !request->has_no_deadline) {
        struct error error = ERROR_INIT;
        describe(group, text, sizeof(text));
        error_set(&error, ERROR_TIMEOUT, "%s", text);
        collective_fail(group, &error);
    } else if (idle_ms / group->options.stall_ms > *stalls_told && group->options.on_stall != NULL) {
        describe(group, text, sizeof(text));
        group->options.on_stall(group->options.stall_context, text);
    }
    *stalls_told = idle_ms / group->options.stall_ms;
}

static int64_t patience_ms(const struct collective *group)
{
    int64_t shorter =
        group->options.stall_ms < group->options.deadline_ms ? group->options.stall_ms : group->options.deadline_ms;
    return shorter < WAKE_MS ? shorter : WAKE_MS;
}

/* Gives others the processor for a moment. A process that is stopped is found here more often than asleep. */
static void lend_processor(struct collective *group, int64_t now)
{
    sched_yield();
    int64_t late = clock_monotonic_ns() - now;
    if (late > LATE_NS)
        group->frozen_ns += late;
}

/* Moves bytes until the request is done: spins briefly, since an answer is often microseconds away, then sleeps. */
static void drive(struct collective *group, const struct request *request)
{
    int64_t stalls_told = 0, spin_until = clock_monotonic_ns() + SPIN_NS;
    while (!request_done(request) && !atomic_load(&group->aborted)) {
        int64_t now;
        if (collective_progress(group)) {
            spin_until = group->progress_ns + SPIN_NS;
        } else if ((now = clock_monotonic_ns()) < spin_until) {
            lend_processor(group, now);
        } else if (!request_done(request)) {
            group_sleep(group, (int)patience_ms(group));
            check_patience(group, request, &stalls_told);
        }
    }
}

void collective_wake(struct collective *group)
{
    uint64_t one = 1;
    if (group->sleeping)
        (void)!write(group->wake, &one, sizeof(one));
    else
        pthread_cond_signal(&group->changed);
}

void collective_drive(struct collective *group, const struct request *request)
{
    group->driven = true;
    drive(group, request);
    group->driven = false;
    if (group->unfinished > 0)
        collective_wake(group);
}
