/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_await.h"

#include "common/clock.h"
#include "common/memory.h"
#include "operator/cli/access.h"
#include "operator/kube/informer.h"

#define LOOK_MS 1000

static enum await_end ask(const struct informer *jobs, const char *key, await_question *question, const void *context)
{
    return informer_synced(jobs) ? question(informer_get(jobs, key), context) : AWAIT_GOES_ON;
}

/* `path` names the object. */
static int await(struct cluster *cluster, const struct resource_path *path, await_question *question,
                 const void *context, int64_t timeout_ms, enum await_end *ret_end, struct error *error)
{
    SCOPED_FREE char *field = memory_format("metadata.name=%s", path->name);
    SCOPED_FREE char *key = memory_format("%s/%s", path->name_space, path->name);
    struct informer_options options = {.resource = path->resource,
                                       .name_space = path->name_space,
                                       .field_selector = field,
                                       .parse = informer_item_copy,
                                       .item_free = informer_item_free};
    struct informer *jobs = informer_start(cluster->client, &options);
    struct access access = {0};
    int64_t end_ms = timeout_ms < 0 ? INT64_MAX : clock_monotonic_ms() + timeout_ms;
    enum await_end end = AWAIT_GOES_ON;
    int status = 0;
    while (status >= 0 && end == AWAIT_GOES_ON && !cluster->interrupted) {
        int64_t left_ms = end_ms - clock_monotonic_ms();
        if (left_ms <= 0)
            end = AWAIT_TIMEOUT;
        else
            status = event_loop_turn(cluster->loop, left_ms < LOOK_MS ? left_ms : LOOK_MS, error);
        enum await_end answer = ask(jobs, key, question, context);
        end = answer != AWAIT_GOES_ON ? answer : end;
        if (status >= 0 && end == AWAIT_GOES_ON)
            status = access_check(&access, jobs, clock_monotonic_ms(), error);
    }
    informer_free(jobs);
    *ret_end = end;
    return status < 0 ? -1 : 0;
}

int job_await(struct cluster *cluster, const char *name, await_question *question, const void *context,
              int64_t timeout_ms, enum await_end *ret_end, struct error *error)
{
    struct resource_path path = cluster_job_path(cluster, name);
    return await(cluster, &path, question, context, timeout_ms, ret_end, error);
}

int sweep_await(struct cluster *cluster, const char *name, await_question *question, const void *context,
                int64_t timeout_ms, enum await_end *ret_end, struct error *error)
{
    struct resource_path path = cluster_sweep_path(cluster, name);
    return await(cluster, &path, question, context, timeout_ms, ret_end, error);
}
