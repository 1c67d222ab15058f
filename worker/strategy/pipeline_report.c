/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/strategy/pipeline_parts.h"

#define COLUMNS 100
/* Times of different processes meet on the wall clock, kept small enough to be exact as doubles. */
#define CLOCK_SPAN_NS 1000000000000000LL

enum { SPAN_START, SPAN_END, SPAN_WORDS };

static int64_t wall_offset(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t wall = ((int64_t)now.tv_sec % (CLOCK_SPAN_NS / 1000000000)) * 1000000000 + now.tv_nsec;
    return wall - clock_monotonic_ns();
}

/* Our stages of the first replica among those of all; `spans` a stage. */
static void put_spans(const struct pipeline *pipeline, unsigned spans, double *places)
{
    int64_t offset = wall_offset();
    for (unsigned u = 0; u < pipeline->unit_count; u++) {
        const struct pipeline_unit *unit = &pipeline->units[u];
        double *place = places + (size_t)unit->stage * spans * SPAN_WORDS;
        for (unsigned i = 0; unit->share->replica == 0 && i < unit->span_count && i < spans; i++) {
            place[i * SPAN_WORDS + SPAN_START] = (double)(unit->spans[i].start_ns + offset);
            place[i * SPAN_WORDS + SPAN_END] = (double)(unit->spans[i].end_ns + offset);
        }
    }
}

static void take_spans(const struct pipeline *pipeline, unsigned stage, unsigned spans, const double *places,
                       struct pipeline_span *ret_spans)
{
    const double *place = places + (size_t)stage * spans * SPAN_WORDS;
    SCOPED_FREE struct pipeline_action *actions = memory_allocate(spans + 1, sizeof *actions);
    pipeline_schedule(pipeline->partition.depth[stage], pipeline->partition.depths, spans / 2, actions);
    for (unsigned i = 0; i < spans; i++)
        ret_spans[i] = (struct pipeline_span){.action = actions[i],
                                              .start_ns = (int64_t)place[i * SPAN_WORDS + SPAN_START],
                                              .end_ns = (int64_t)place[i * SPAN_WORDS + SPAN_END]};
}

int pipeline_describe(struct strategy *base, struct buffer *text, struct error *error)
{
    struct pipeline *pipeline = (struct pipeline *)base;
    unsigned stages = pipeline->shape.stages, first, end;
    reduction_rank_leaves(base->world.logical_shards, 0, pipeline->shape.replicas, &first, &end);
    unsigned spans = 2 * (end - first), count = stages * spans * SPAN_WORDS;
    SCOPED_FREE double *places = memory_allocate(count + 1, sizeof *places);
    SCOPED_FREE struct pipeline_span *all = memory_allocate((size_t)stages * spans + 1, sizeof *all);
    struct pipeline_trace traces[STAGES_MAX];
    put_spans(pipeline, spans, places);
    if (pipeline->shape.size > 1 && pipeline_exchange_sum(pipeline, places, count, error) < 0)
        return -1;
    for (unsigned s = 0; s < stages; s++) {
        take_spans(pipeline, s, spans, places, all + (size_t)s * spans);
        traces[s] = (struct pipeline_trace){all + (size_t)s * spans, spans};
    }
    buffer_format(text,
                  "pipeline   the last step, %u stages x %u micro-batches: %.0f %% of the time idle (%.0f %% where all "
                  "stages cost the same and have processors of their own)\n",
                  stages, end - first, 100 * pipeline_bubble(traces, stages),
                  100 * pipeline_ideal_bubble(pipeline->partition.depths, end - first));
    pipeline_picture(traces, stages, COLUMNS, text);
    return 0;
}
