/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/lock.h"
#include "common/memory.h"
#include "common/subnormals.h"
#include "worker/strategy/device_sums.h"
#include "worker/strategy/pipeline_parts.h"

/* ---- a run */

static void note_time(void *context)
{
    *(int64_t *)context = clock_monotonic_ns();
}

/* Puts it on the stream, and behind it what hands on to other processes. */
static int launch(struct pipeline_lane *lane, struct pipeline_unit *unit, struct pipeline_action action, unsigned tick,
                  struct error *error)
{
    struct pipeline_direct *direct = lane->direct;
    if (pipeline_unit_launch(unit, action, error) < 0 || pipeline_passing_behind(unit, action, error) < 0)
        return -1;
    device_stream_call(lane->stream, note_time, &lane->computed_ns);
    return direct != NULL ? pipeline_direct_exchange(direct, tick + 1, error) : 0;
}

static int act(struct pipeline_lane *lane, struct pipeline_action action, unsigned tick, struct error *error)
{
    struct pipeline_direct *direct = lane->direct;
    struct pipeline_unit *unit = lane->share->units[action.part];
    if ((direct != NULL && pipeline_direct_exchange(direct, tick, error) < 0) ||
        pipeline_passing_before(unit, action, error) < 0)
        return -1;
    struct pipeline_span span = {.action = action, .start_ns = clock_monotonic_ns()};
    if (launch(lane, unit, action, tick, error) < 0 || device_stream_synchronise(lane->stream, error) < 0)
        return -1;
    span.end_ns = lane->computed_ns;
    if (!lane->pipeline->evaluates)
        lane->spans[lane->span_count++] = span;
    pipeline_passing_after(unit, action);
    return 0;
}

/* From GPU to GPU, in the order that the host has: nothing of the stage's gradients is under way any more. */
static int sum(struct pipeline_lane *lane, struct error *error)
{
    if (device_sums_start_vectors(lane->sums, lane->devices, lane->store->gradients, error) < 0)
        return -1;
    return device_sums_wait(lane->sums, lane->devices, error);
}

static int run(struct pipeline_lane *lane, struct error *error)
{
    const struct pipeline_timetable *timetable = &lane->share->timetable;
    unsigned count = timetable->counts[lane->stage];
    if (!timetable->evaluates) {
        lane->spans = memory_resize(lane->spans, count + 1, sizeof *lane->spans);
        lane->span_count = 0;
    }
    for (unsigned i = 0; i < count; i++)
        if (act(lane, timetable->actions[lane->stage][i], timetable->tick_of[lane->stage][i], error) < 0)
            return -1;
    if (lane->direct != NULL && pipeline_direct_finish(lane->direct, error) < 0)
        return -1;
    if (lane->sums != NULL && !timetable->evaluates && sum(lane, error) < 0)
        return -1;
    for (unsigned p = 0; p < lane->pipeline->partition.parts; p++)
        if (lane->pipeline->partition.stage_of_part[p] == lane->stage &&
            pipeline_passing_finish(lane->share->units[p], error) < 0)
            return -1;
    return 0;
}

static void finish_run(struct pipeline_lane *lane, int result)
{
    struct pipeline *pipeline = lane->pipeline;
    if (result < 0)
        (void)device_stream_synchronise(lane->stream, NULL);
    /* Other lanes may be waiting for other processes. pipeline_await reports the cause, not their error. */
    if (result < 0 && pipeline->group)
        collective_abort(pipeline->group, ERROR_CANCELLED, "a stage of this process has failed");
    SCOPED_LOCK(&pipeline->lock);
    pipeline->failed |= result < 0;
    pipeline->working--;
    pthread_cond_broadcast(&pipeline->changed);
}

static void *serve(void *context)
{
    struct pipeline_lane *lane = context;
    struct pipeline *pipeline = lane->pipeline;
    uint64_t done = 0;
    subnormals_flush();
    for (;;) {
        pthread_mutex_lock(&pipeline->lock);
        while (pipeline->run == done && !pipeline->over)
            pthread_cond_wait(&pipeline->changed, &pipeline->lock);
        bool over = pipeline->over;
        done = pipeline->run;
        pthread_mutex_unlock(&pipeline->lock);
        if (over)
            return NULL;
        error_clear(&lane->error);
        finish_run(lane, run(lane, &lane->error));
    }
}

void pipeline_start(struct pipeline *pipeline, bool evaluates, float scale)
{
    for (unsigned i = 0; i < pipeline->unit_count; i++)
        pipeline_passing_reset(&pipeline->units[i]);
    for (unsigned s = 0; s < pipeline->share_count; s++)
        pipeline_share_plan(pipeline, &pipeline->shares[s], evaluates);
    for (unsigned i = 0; i < pipeline->lane_count; i++)
        if (pipeline->lanes[i].direct != NULL)
            pipeline_direct_begin(pipeline->lanes[i].direct);
    SCOPED_LOCK(&pipeline->lock);
    pipeline->evaluates = evaluates;
    pipeline->scale = scale;
    pipeline->failed = false;
    pipeline->working = pipeline->lane_count;
    pipeline->run++;
    pthread_cond_broadcast(&pipeline->changed);
}

/* Reports the first failure, not that of a lane that ended because another had failed. */
int pipeline_await(struct pipeline *pipeline, struct error *error)
{
    pthread_mutex_lock(&pipeline->lock);
    while (pipeline->working > 0)
        pthread_cond_wait(&pipeline->changed, &pipeline->lock);
    bool failed = pipeline->failed;
    pthread_mutex_unlock(&pipeline->lock);
    if (!failed)
        return 0;
    const struct error *cause = NULL;
    for (unsigned i = 0; i < pipeline->lane_count; i++) {
        const struct error *own = &pipeline->lanes[i].error;
        if (own->kind != ERROR_NONE && (cause == NULL || cause->kind == ERROR_CANCELLED))
            cause = own;
    }
    return cause ? error_set(error, cause->kind, "%s", cause->message)
                 : error_set(error, ERROR_INTERNAL, "a stage has failed");
}

int64_t pipeline_own_ns(const struct pipeline *pipeline)
{
    int64_t most = pipeline->read_ns;
    for (unsigned l = 0; l < pipeline->lane_count; l++) {
        const struct pipeline_lane *lane = &pipeline->lanes[l];
        int64_t busy = 0;
        for (unsigned i = 0; i < lane->span_count; i++)
            busy += lane->spans[i].end_ns - lane->spans[i].start_ns;
        most = busy > most ? busy : most;
    }
    return most;
}

/* ---- life cycle */

int pipeline_lane_init(struct pipeline *pipeline, struct pipeline_lane *lane, unsigned stage,
                       struct pipeline_store *store, struct device *device, struct error *error)
{
    *lane = (struct pipeline_lane){
        .pipeline = pipeline, .share = store->share, .store = store, .stage = stage, .device = device};
    return pipeline->plan_only ? 0 : device_stream_new(device, &lane->stream, error);
}

int pipeline_lane_start(struct pipeline_lane *lane, struct error *error)
{
    errno = pthread_create(&lane->thread, NULL, serve, lane);
    if (errno != 0)
        return error_set_errno(error, "cannot start the thread of stage %u", lane->stage);
    lane->has_thread = true;
    return 0;
}

void pipeline_lane_stop(struct pipeline_lane *lane)
{
    if (lane->has_thread)
        pthread_join(lane->thread, NULL);
    lane->has_thread = false;
}

void pipeline_lane_release(struct pipeline_lane *lane)
{
    if (lane->stream)
        device_stream_free(lane->stream);
    free(lane->spans);
    *lane = (struct pipeline_lane){0};
}
