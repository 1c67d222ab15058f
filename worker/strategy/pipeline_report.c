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

/* Our stages of the first replica among those of all; room for `most` spans a stage. */
static void put_spans(const struct pipeline *pipeline, unsigned most, double *places)
{
    int64_t offset = wall_offset();
    for (unsigned l = 0; l < pipeline->lane_count; l++) {
        const struct pipeline_lane *lane = &pipeline->lanes[l];
        double *place = places + (size_t)lane->stage * most * SPAN_WORDS;
        for (unsigned i = 0; lane->share->replica == 0 && i < lane->span_count && i < most; i++) {
            place[i * SPAN_WORDS + SPAN_START] = (double)(lane->spans[i].start_ns + offset);
            place[i * SPAN_WORDS + SPAN_END] = (double)(lane->spans[i].end_ns + offset);
        }
    }
}

static void take_spans(const struct pipeline_timetable *timetable, unsigned stage, const double *place,
                       struct pipeline_span *ret_spans)
{
    for (unsigned i = 0; i < timetable->counts[stage]; i++)
        ret_spans[i] = (struct pipeline_span){.action = timetable->actions[stage][i],
                                              .start_ns = (int64_t)place[i * SPAN_WORDS + SPAN_START],
                                              .end_ns = (int64_t)place[i * SPAN_WORDS + SPAN_END]};
}

static void draw(const struct pipeline_timetable *timetable, unsigned most, const double *places, struct buffer *text)
{
    struct pipeline_trace traces[STAGES_MAX];
    SCOPED_FREE struct pipeline_span *all = memory_allocate((size_t)timetable->stages * most + 1, sizeof *all);
    for (unsigned s = 0; s < timetable->stages; s++) {
        take_spans(timetable, s, places + (size_t)s * most * SPAN_WORDS, all + (size_t)s * most);
        traces[s] = (struct pipeline_trace){all + (size_t)s * most, timetable->counts[s]};
    }
    buffer_format(text,
                  "pipeline   the last step, %u stages x %u micro-batches: %.0f %% of the time idle (%.0f %% where all "
                  "stages cost the same and have processors of their own)\n",
                  timetable->stages, timetable->micro_batches, 100 * pipeline_bubble(traces, timetable->stages),
                  100 * pipeline_timetable_idle(timetable));
    pipeline_picture(traces, timetable->stages, COLUMNS, text);
}

int pipeline_describe(struct strategy *base, struct buffer *text, struct error *error)
{
    struct pipeline *pipeline = (struct pipeline *)base;
    const struct pipeline_course course = pipeline_course_of(pipeline);
    struct pipeline_timetable timetable;
    unsigned first, end, most = 0;
    reduction_rank_leaves(base->world.logical_shards, 0, pipeline->shape.replicas, &first, &end);
    pipeline_timetable_init(&timetable, &course, end - first, false);
    for (unsigned s = 0; s < timetable.stages; s++)
        most = timetable.counts[s] > most ? timetable.counts[s] : most;
    unsigned count = timetable.stages * most * SPAN_WORDS;
    SCOPED_FREE double *places = memory_allocate(count + 1, sizeof *places);
    put_spans(pipeline, most, places);
    int result = pipeline->shape.size > 1 ? pipeline_exchange_sum(pipeline, places, count, error) : 0;
    if (result == 0)
        draw(&timetable, most, places, text);
    pipeline_timetable_release(&timetable);
    return result;
}
