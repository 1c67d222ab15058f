/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/pipeline_schedule.h"

unsigned pipeline_slots(unsigned depth, unsigned depths, unsigned micro_batches)
{
    unsigned slots = depths - depth;
    if (slots > micro_batches)
        slots = micro_batches;
    return slots > 0 ? slots : 1;
}

void pipeline_schedule(unsigned depth, unsigned depths, unsigned micro_batches, struct pipeline_action *actions)
{
    unsigned ahead = depths - depth - 1, forward = 0, backward = 0;
    while (backward < micro_batches) {
        bool advance = forward < micro_batches && forward <= backward + ahead;
        *actions++ = advance ? (struct pipeline_action){PIPELINE_FORWARD, forward++}
                             : (struct pipeline_action){PIPELINE_BACKWARD, backward++};
    }
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

double pipeline_ideal_bubble(unsigned depths, unsigned micro_batches)
{
    return (double)(depths - 1) / (double)(micro_batches + depths - 1);
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
