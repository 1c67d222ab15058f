/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/collective.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/lock.h"
#include "common/memory.h"
#include "worker/comm/collective_parts.h"
#include "worker/comm/mesh.h"
#include "worker/comm/schedule.h"

#define DEADLINE_MS_DEFAULT 300000
#define STALL_MS_DEFAULT 30000

/* ---------------------------------------------------------------- abort */

void collective_fail(struct collective *group, const struct error *cause)
{
    pthread_mutex_lock(&group->abort_lock);
    if (!atomic_load(&group->aborted)) {
        group->failure = *cause;
        atomic_store(&group->aborted, true);
    }
    pthread_mutex_unlock(&group->abort_lock);
    uint64_t one = 1;
    (void)!write(group->wake, &one, sizeof(one));
    pthread_cond_broadcast(&group->transferred);
}

void collective_abort(struct collective *group, enum error_kind kind, const char *reason)
{
    struct error error = ERROR_INIT;
    error_set(&error, kind, "%s", reason);
    collective_fail(group, &error);
}

/* The lock belongs to the thread that moves bytes, which does not hold it for long. Descriptors stay open until the group is freed. */
void collective_break_off(struct collective *group, enum error_kind kind, const char *reason)
{
    collective_abort(group, kind, reason);
    SCOPED_LOCK(&group->lock);
    for (unsigned rank = 0; rank < group->setting.size; rank++)
        if (group->lanes[rank].link.socket >= 0)
            shutdown(group->lanes[rank].link.socket, SHUT_RDWR);
}

int collective_failure(struct collective *group, struct error *error)
{
    SCOPED_LOCK(&group->abort_lock);
    if (error != NULL)
        *error = group->failure;
    return -1;
}

int collective_check(struct collective *group, struct error *error)
{
    return atomic_load(&group->aborted) ? collective_failure(group, error) : 0;
}

int collective_check_peers(struct collective *group, struct error *error)
{
    struct pollfd looks[CREW_SIZE_MAX];
    char peer[COLLECTIVE_PEER_TEXT_MAX];
    unsigned size = group->setting.size;
    for (unsigned rank = 0; rank < size; rank++)
        looks[rank] = (struct pollfd){.fd = rank == group->setting.rank ? -1 : group->lanes[rank].link.socket,
                                      .events = POLLRDHUP};
    int gone = poll(looks, size, 0);
    if (collective_check(group, error) < 0) /* a connection that was broken off here says nothing of the peer */
        return -1;
    for (unsigned rank = 0; gone > 0 && rank < size; rank++) {
        if (looks[rank].revents == 0)
            continue;
        collective_peer_describe(group->peers, rank, peer);
        pthread_mutex_lock(&group->lock);
        error_set(error, ERROR_UNAVAILABLE, "%s has closed its connection (%s); its log may say why", peer,
                  group->label);
        pthread_mutex_unlock(&group->lock);
        return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------- starting and waiting */

/* With the lock held; the caller fills the rest in before the first progress. When as many are under way as there is room for,
 * the oldest is seen through first. */
static struct request *request_new(struct collective *group, size_t total)
{
    struct request *request = collective_request(group, group->next_ticket);
    if (!request_done(request))
        collective_drive(group, request);
    *request = (struct request){.ticket = group->next_ticket, .total = total};
    group->next_ticket++;
    if (group->unfinished == 0)
        group->progress_ns = clock_monotonic_ns();
    if (total > 0)
        group->unfinished++;
    return request;
}

/* Sends what it can at once; the thread sees to the rest unless the caller is about to wait. */
static void request_launch(struct collective *group, bool waits)
{
    collective_progress(group);
    if (!waits && group->unfinished > 0)
        collective_wake(group);
}

enum launch {
    LAUNCH_ONLY,         /* a wait comes later */
    LAUNCH_TO_WAIT,      /* it comes at once */
    LAUNCH_TO_WAIT_LONG, /* without a deadline */
};

static collective_ticket start_all_reduce(struct collective *group, const float *const *contributions, float *result,
                                          size_t elements, enum launch launch)
{
    SCOPED_LOCK(&group->lock);
    struct request *request = request_new(group, elements);
    request->has_no_deadline = launch == LAUNCH_TO_WAIT_LONG;
    request->result = result;
    memcpy(request->contributions, contributions,
           group->setting.reduction.contributions[group->setting.rank] * sizeof(*contributions));
    collective_ticket ticket = request->ticket;
    request_launch(group, launch != LAUNCH_ONLY);
    return ticket;
}

collective_ticket collective_all_reduce_start(struct collective *group, const float *const *contributions,
                                              float *result, size_t elements)
{
    return start_all_reduce(group, contributions, result, elements, LAUNCH_ONLY);
}

collective_ticket collective_all_reduce_start_quietly(struct collective *group, const float *const *contributions,
                                                      float *result, size_t elements)
{
    return start_all_reduce(group, contributions, result, elements, LAUNCH_TO_WAIT);
}

void collective_attend(struct collective *group)
{
    SCOPED_LOCK(&group->lock);
    if (group->unfinished > 0)
        collective_wake(group);
}

int collective_all_reduce(struct collective *group, const float *const *contributions, float *result, size_t elements,
                          struct error *error)
{
    return collective_wait(group, start_all_reduce(group, contributions, result, elements, LAUNCH_TO_WAIT), error);
}

collective_ticket collective_reduce_scatter_start(struct collective *group, const float *const *contributions,
                                                  float *result, size_t elements,
                                                  const struct collective_shards *shards)
{
    SCOPED_LOCK(&group->lock);
    struct request *request = request_new(group, elements);
    request->kind = REQUEST_REDUCE_SCATTER;
    request->shards = *shards;
    request->result = result;
    memcpy(request->contributions, contributions,
           group->setting.reduction.contributions[group->setting.rank] * sizeof(*contributions));
    collective_ticket ticket = request->ticket;
    request_launch(group, true);
    return ticket;
}

int collective_all_gather(struct collective *group, float *vector, size_t elements,
                          const struct collective_shards *shards, const unsigned *sources, struct error *error)
{
    pthread_mutex_lock(&group->lock);
    struct request *request = request_new(group, elements);
    request->kind = REQUEST_ALL_GATHER;
    request->shards = *shards;
    request->sources = sources;
    request->result = vector;
    collective_ticket ticket = request->ticket;
    request_launch(group, true);
    pthread_mutex_unlock(&group->lock);
    return collective_wait(group, ticket, error);
}

int collective_broadcast(struct collective *group, unsigned root, const bool *receives, void *bytes, size_t length,
                         struct error *error)
{
    pthread_mutex_lock(&group->lock);
    struct request *request = request_new(group, length);
    request->kind = REQUEST_BROADCAST;
    request->root = root;
    request->receives = receives;
    request->bytes = bytes;
    collective_ticket ticket = request->ticket;
    request_launch(group, true);
    pthread_mutex_unlock(&group->lock);
    return collective_wait(group, ticket, error);
}

int collective_barrier(struct collective *group, struct error *error)
{
    float nothing = 0, result = 0;
    const float *contributions[OPERATION_PARTS_MAX];
    for (unsigned i = 0; i < OPERATION_PARTS_MAX; i++)
        contributions[i] = &nothing;
    return collective_wait(group, start_all_reduce(group, contributions, &result, 1, LAUNCH_TO_WAIT_LONG), error);
}

void collective_set_label(struct collective *group, const char *label)
{
    SCOPED_LOCK(&group->lock);
    snprintf(group->label, sizeof(group->label), "%s", label);
}

int collective_wait(struct collective *group, collective_ticket ticket, struct error *error)
{
    pthread_mutex_lock(&group->lock);
    struct request *request = collective_request(group, ticket);
    if (!request_done(request))
        collective_drive(group, request);
    bool done = request_done(request);
    pthread_mutex_unlock(&group->lock);
    return done ? 0 : collective_failure(group, error);
}

/* ---------------------------------------------------------------- life cycle */

static int check_options(const struct collective_options *options, struct error *error)
{
    if (options->size < 1 || options->size > CREW_SIZE_MAX || options->rank >= options->size)
        return error_set(error, ERROR_INVALID,
                         "internal error: rank %u in a group of %u ranks; a group has 1 to %d ranks, numbered from 0",
                         options->rank, options->size, CREW_SIZE_MAX);
    for (unsigned i = 0; i < options->size; i++)
        if (options->reduction.contributions[i] < 1 || options->reduction.contributions[i] > OPERATION_PARTS_MAX)
            return error_set(error, ERROR_INVALID, "internal error: rank %u has %u contributions; 1 to %d are allowed",
                             i, options->reduction.contributions[i], OPERATION_PARTS_MAX);
    return 0;
}

static void copy_options(struct collective *group, const struct collective_options *options)
{
    group->options = *options;
    memcpy(group->peers, options->peers, options->size * sizeof(*options->peers));
    group->options.peers = group->peers;
    group->job_uid = memory_copy_string(options->job_uid);
    group->options.job_uid = group->job_uid;
    if (group->options.deadline_ms <= 0)
        group->options.deadline_ms = DEADLINE_MS_DEFAULT;
    if (group->options.stall_ms <= 0)
        group->options.stall_ms = STALL_MS_DEFAULT;
    group->setting = (struct operation_setting){.rank = options->rank,
                                                .size = options->size,
                                                .generation = options->generation,
                                                .reduction = options->reduction,
                                                .check_frames = options->check_frames,
                                                .algorithm = options->algorithm};
    for (unsigned i = 0; i < options->size; i++)
        group->setting.first_input[i + 1] = group->setting.first_input[i] + options->reduction.contributions[i];
}

static void free_schedules(struct operation_setting *setting)
{
    schedule_free(setting->doubling);
    schedule_free(setting->halving);
    schedule_free(setting->chosen);
}

static void make_schedules(struct operation_setting *setting)
{
    const unsigned nodes[CREW_SIZE_MAX] = {0};
    if (setting->algorithm == COLLECTIVE_ALGORITHM_RING)
        setting->chosen = schedule_ring(setting->rank, setting->size);
    if (setting->algorithm == COLLECTIVE_ALGORITHM_REDUCE_TO_ONE && setting->reduction.merges != NULL)
        setting->chosen = schedule_hierarchical(setting->rank, setting->size, nodes, &setting->reduction);
    if (schedule_pairs_are_tree(setting->size, &setting->reduction)) {
        setting->doubling = schedule_doubling(setting->rank, setting->size);
        setting->halving = schedule_halving(setting->rank, setting->size);
    }
}

void collective_set_nodes(struct collective *group, const unsigned *nodes)
{
    struct operation_setting *setting = &group->setting;
    SCOPED_LOCK(&group->lock);
    schedule_free(setting->chosen);
    setting->chosen = NULL;
    if (setting->reduction.merges != NULL)
        setting->chosen = schedule_hierarchical(setting->rank, setting->size, nodes, &setting->reduction);
}

int collective_new(const struct collective_options *options, struct collective **ret_group, struct error *error)
{
    if (check_options(options, error) < 0)
        return -1;
    int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake < 0)
        return error_set_errno(error, "create an event");
    struct collective *group = memory_allocate(1, sizeof(*group));
    copy_options(group, options);
    group->wake = wake;
    make_schedules(&group->setting);
    group->requests = memory_allocate(COLLECTIVE_REQUESTS_MAX, sizeof(*group->requests));
    group->next_ticket = group->cutting = 1;
    for (unsigned i = 0; i < CREW_SIZE_MAX; i++) {
        link_init(&group->lanes[i].link);
        group->lanes[i].queue_end = &group->lanes[i].queue;
        lane_transfers_init(&group->lanes[i].transfers);
    }
    pthread_mutex_init(&group->lock, NULL);
    pthread_mutex_init(&group->abort_lock, NULL);
    pthread_cond_init(&group->changed, NULL);
    condition_init(&group->transferred);
    *ret_group = group;
    return 0;
}

static int connect_links(struct collective *group, int64_t deadline_ms, struct error *error)
{
    struct link links[CREW_SIZE_MAX];
    for (unsigned i = 0; i < CREW_SIZE_MAX; i++)
        link_init(&links[i]);
    int status = mesh_connect(&group->options, group->wake, deadline_ms, links, error);
    for (unsigned i = 0; i < CREW_SIZE_MAX; i++)
        group->lanes[i].link = links[i];
    return status;
}

int collective_connect(struct collective *group, int64_t deadline_ms, struct error *error)
{
    struct error cause = ERROR_INIT;
    if (connect_links(group, deadline_ms, &cause) < 0) {
        collective_fail(group, &cause);
        return collective_failure(group, error);
    }
    errno = pthread_create(&group->thread, NULL, collective_run, group);
    if (errno != 0)
        return error_set_errno(error, "start the communication thread");
    group->has_thread = true;
    return 0;
}

void collective_free(struct collective *group)
{
    if (group == NULL)
        return;
    collective_abort(group, ERROR_CANCELLED, "the group is closed");
    if (group->has_thread) {
        pthread_mutex_lock(&group->lock);
        group->stopping = true;
        pthread_cond_signal(&group->changed);
        pthread_mutex_unlock(&group->lock);
        pthread_join(group->thread, NULL);
    }
    for (unsigned i = 0; i < CREW_SIZE_MAX; i++) {
        link_release(&group->lanes[i].link);
        lane_transfers_release(&group->lanes[i].transfers);
    }
    for (unsigned i = 0; i < COLLECTIVE_WINDOW; i++)
        operation_release(&group->operations[i]);
    while (group->spare_count > 0)
        free(group->spares[--group->spare_count].memory);
    free_schedules(&group->setting);
    pthread_cond_destroy(&group->transferred);
    pthread_cond_destroy(&group->changed);
    pthread_mutex_destroy(&group->abort_lock);
    pthread_mutex_destroy(&group->lock);
    close(group->wake);
    free(group->requests);
    free(group->job_uid);
    free(group);
}

int64_t collective_take_frozen_ns(struct collective *group)
{
    SCOPED_LOCK(&group->lock);
    int64_t frozen_ns = group->frozen_ns;
    group->frozen_ns = 0;
    return frozen_ns;
}

struct generation collective_generation(const struct collective *group)
{
    return group->options.generation;
}

bool collective_shares_memory(const struct collective *group, unsigned rank)
{
    return group->lanes[rank].link.ring != NULL;
}
