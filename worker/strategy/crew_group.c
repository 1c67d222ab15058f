/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/crew_group.h"

#include <string.h>

#include "common/memory.h"
#include "worker/strategy/reduction_tree.h"

#define CONNECT_MS_DEFAULT 60000

int crew_group_open(const struct strategy_options *options, const struct world *world,
                    enum collective_algorithm algorithm, const struct collective_reduction *reduction,
                    struct collective **ret_group, struct error *error)
{
    const struct collective_options group = {
        .endpoint = options->crew.endpoint,
        .job_uid = options->crew.job_uid,
        .generation = world->generation,
        .rank = world->rank,
        .size = world->size,
        .peers = world->peers,
        .algorithm = algorithm,
        .reduction = *reduction,
        .transport = options->crew.transport,
        .deadline_ms = options->crew.step_deadline_ms,
        .stall_ms = options->crew.stall_ms,
        .on_stall = options->calls.on_stall,
        .stall_context = options->calls.context,
    };
    if (collective_new(&group, ret_group, error) < 0)
        return -1;
    member_guard(options->crew.member, *ret_group);
    int64_t deadline = options->crew.connect_deadline_ms > 0 ? options->crew.connect_deadline_ms : CONNECT_MS_DEFAULT;
    return collective_connect(*ret_group, deadline, error);
}

void crew_group_close(const struct strategy_options *options, struct collective **group)
{
    if (*group == NULL)
        return;
    member_guard(options->crew.member, NULL);
    collective_free(*group);
    *group = NULL;
}

int crew_group_sum(struct collective *group, float *words, size_t count, struct error *error)
{
    SCOPED_FREE float *zeros = memory_allocate(count, sizeof *zeros);
    const float *contributions[REDUCTION_COVER_MAX] = {words};
    for (unsigned i = 1; i < REDUCTION_COVER_MAX; i++)
        contributions[i] = zeros;
    return collective_all_reduce(group, contributions, words, count, error);
}

int crew_group_meet(struct collective *group, struct error *error)
{
    collective_set_label(group, "until everything is stored");
    return collective_barrier(group, error);
}

int crew_group_tell(struct collective *group, unsigned root, void *bytes, size_t length, struct error *error)
{
    bool all[CREW_SIZE_MAX];
    memset(all, true, sizeof all);
    return collective_broadcast(group, root, all, bytes, length, error);
}
