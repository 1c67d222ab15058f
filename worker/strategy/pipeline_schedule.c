/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/pipeline_schedule.h"

#include <stdlib.h>

#include "common/memory.h"

unsigned pipeline_slots(unsigned depth, unsigned depths, unsigned micro_batches)
{
    unsigned slots = depths - depth;
    if (slots > micro_batches)
        slots = micro_batches;
    return slots > 0 ? slots : 1;
}

/* ---- the play */

struct play {
    const struct pipeline_course *course;
    unsigned micro_batches;
    bool evaluates;
    unsigned (*done)[2]; /* by part and work: micro-batches */
};

static bool is_done(const struct play *play, unsigned part, enum pipeline_work work, unsigned micro_batch)
{
    return play->done[part][work] > micro_batch;
}

static unsigned slots_of(const struct play *play, unsigned part)
{
    const struct graph_partition *partition = play->course->partition;
    return pipeline_slots(partition->depth[part], partition->depths, play->course->most);
}

/* Returns whether the inputs exist, and what was sent from the same slot before was taken. */
static bool crossings_allow(const struct play *play, unsigned part, enum pipeline_work work, unsigned micro_batch)
{
    const struct pipeline_course *course = play->course;
    bool forward = work == PIPELINE_FORWARD;
    const struct graph_crossing *crossings = forward ? course->values : course->gradients;
    unsigned count = forward ? course->value_count : course->gradient_count, slots = slots_of(play, part);
    for (unsigned i = 0; i < count; i++)
        if ((crossings[i].to == part && !is_done(play, crossings[i].from, work, micro_batch)) ||
            (crossings[i].from == part && micro_batch >= slots &&
             !is_done(play, crossings[i].to, work, micro_batch - slots)))
            return false;
    return true;
}

static bool is_ready(const struct play *play, unsigned part, enum pipeline_work work)
{
    unsigned micro_batch = play->done[part][work], slots = slots_of(play, part);
    if (micro_batch >= play->micro_batches)
        return false;
    if (work == PIPELINE_BACKWARD && !is_done(play, part, PIPELINE_FORWARD, micro_batch))
        return false;
    if (work == PIPELINE_FORWARD && !play->evaluates && micro_batch >= slots &&
        !is_done(play, part, PIPELINE_BACKWARD, micro_batch - slots))
        return false;
    return crossings_allow(play, part, work, micro_batch);
}

/* Backward before forward, and the deepest part first; whether there is anything to do. */
static bool choose(const struct play *play, unsigned stage, struct pipeline_action *ret_action)
{
    const struct graph_partition *partition = play->course->partition;
    for (unsigned work = play->evaluates ? PIPELINE_FORWARD + 1 : PIPELINE_BACKWARD + 1; work-- > PIPELINE_FORWARD;)
        for (unsigned deepest = partition->depths; deepest-- > 0;)
            for (unsigned p = 0; p < partition->parts; p++)
                if (partition->stage_of_part[p] == stage && partition->depth[p] == deepest &&
                    is_ready(play, p, (enum pipeline_work)work)) {
                    *ret_action = (struct pipeline_action){(enum pipeline_work)work, play->done[p][work], p};
                    return true;
                }
    return false;
}

/* An action's results become visible in the next tick. */
static bool tick(const struct play *play, struct pipeline_timetable *timetable)
{
    unsigned before[STAGES_MAX];
    bool moved = false;
    for (unsigned s = 0; s < timetable->stages; s++) {
        before[s] = timetable->counts[s];
        timetable->counts[s] += choose(play, s, &timetable->actions[s][before[s]]);
    }
    for (unsigned s = 0; s < timetable->stages; s++)
        if (timetable->counts[s] > before[s]) {
            const struct pipeline_action *action = &timetable->actions[s][before[s]];
            play->done[action->part][action->work]++;
            timetable->tick_of[s][before[s]] = timetable->ticks;
            moved = true;
        }
    timetable->ticks += moved;
    return moved;
}

/* The oldest micro-batch that is not through can always move on: it waits for none but older ones. So the play ends with all
 * done. */
void pipeline_timetable_init(struct pipeline_timetable *timetable, const struct pipeline_course *course,
                             unsigned micro_batches, bool evaluates)
{
    const struct graph_partition *partition = course->partition;
    struct play play = {.course = course, .micro_batches = micro_batches, .evaluates = evaluates};
    *timetable = (struct pipeline_timetable){
        .stages = partition->stages, .micro_batches = micro_batches, .evaluates = evaluates};
    play.done = memory_allocate(partition->parts, sizeof *play.done);
    for (unsigned p = 0; p < partition->parts; p++)
        timetable->counts[partition->stage_of_part[p]] += (evaluates ? 1 : 2) * micro_batches;
    for (unsigned s = 0; s < partition->stages; s++) {
        timetable->actions[s] = memory_allocate(timetable->counts[s] + 1, sizeof *timetable->actions[s]);
        timetable->tick_of[s] = memory_allocate(timetable->counts[s] + 1, sizeof *timetable->tick_of[s]);
        timetable->counts[s] = 0;
    }
    while (tick(&play, timetable))
        ;
    free(play.done);
}

void pipeline_timetable_release(struct pipeline_timetable *timetable)
{
    for (unsigned s = 0; s < timetable->stages; s++) {
        free(timetable->actions[s]);
        free(timetable->tick_of[s]);
    }
    *timetable = (struct pipeline_timetable){0};
}

double pipeline_timetable_idle(const struct pipeline_timetable *timetable)
{
    unsigned busy = 0;
    for (unsigned s = 0; s < timetable->stages; s++)
        busy += timetable->counts[s];
    return timetable->ticks ? 1 - (double)busy / ((double)timetable->stages * timetable->ticks) : 0;
}

/* ---- what a step looked like */

struct stretch {
    int64_t start_ns, end_ns, busy_ns;
};

static struct stretch measure(const struct pipeline_trace *traces, unsigned stages)
{
    struct stretch stretch = {.start_ns = INT64_MAX};
    for (unsigned s = 0; s < stages; s++)
        for (unsigned i = 0; i < traces[s].count; i++) {
            const struct pipeline_span *span = &traces[s].spans[i];
            if (span->start_ns < stretch.start_ns)
                stretch.start_ns = span->start_ns;
            if (span->end_ns > stretch.end_ns)
                stretch.end_ns = span->end_ns;
            stretch.busy_ns += span->end_ns - span->start_ns;
        }
    return stretch;
}

double pipeline_bubble(const struct pipeline_trace *traces, unsigned stages)
{
    struct stretch stretch = measure(traces, stages);
    if (stretch.end_ns <= stretch.start_ns)
        return 0;
    return 1 - (double)stretch.busy_ns / ((double)stages * (double)(stretch.end_ns - stretch.start_ns));
}

/* The action that fills most of the column, or '.' when none fills half of it. */
static char column_letter(const struct pipeline_trace *trace, int64_t start_ns, int64_t end_ns)
{
    int64_t most = 0, idle = end_ns - start_ns;
    char letter = '.';
    for (unsigned i = 0; i < trace->count; i++) {
        const struct pipeline_span *span = &trace->spans[i];
        int64_t from = span->start_ns > start_ns ? span->start_ns : start_ns;
        int64_t to = span->end_ns < end_ns ? span->end_ns : end_ns;
        if (to <= from)
            continue;
        idle -= to - from;
        if (to - from > most) {
            most = to - from;
            letter = (char)((span->action.work == PIPELINE_FORWARD ? '0' : 'a') + span->action.micro_batch % 10);
        }
    }
    return idle > most ? '.' : letter;
}

void pipeline_picture(const struct pipeline_trace *traces, unsigned stages, unsigned columns, struct buffer *text)
{
    struct stretch stretch = measure(traces, stages);
    int64_t length = stretch.end_ns > stretch.start_ns ? stretch.end_ns - stretch.start_ns : 1;
    for (unsigned s = 0; s < stages; s++) {
        buffer_format(text, "stage %-3u |", s);
        for (unsigned c = 0; c < columns; c++) {
            int64_t from = stretch.start_ns + length * c / columns, to = stretch.start_ns + length * (c + 1) / columns;
            buffer_format(text, "%c", column_letter(&traces[s], from, to));
        }
        buffer_format(text, "|\n");
    }
}
