/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans the order in which the stages of a pipeline work on the micro-batches of a step: one forward, one backward
 * (1F1B; Narayanan et al. 2019). The Pipeline strategy plans such a timetable before it runs a step.
 *
 * A stage is the layers of one device; it consists of one part, or several (model/partition.h). A part's depth is the
 * length of the longest path of parts that leads to it, 0 for the first. A part at depth d of D has at most D - d
 * micro-batches under way, and runs their backward passes in the same order. A stage runs a backward pass as soon as it
 * can, else a forward pass.
 *
 *     depth 0   F0 F1 F2          B0 F3 B1 ...
 *     depth 1      F0 F1       B0 F2 B1 F3 ...
 *     depth 2         F0 B0 F1 B1 F2 ...
 *
 * A stage with several parts works on all of them in turns, the deepest first. The order is found
 * by simulating all stages, action by action, under the conditions of a real run: an action starts
 * only after its inputs exist, and after the data that it overwrites was taken. So stages that keep
 * to this order cannot deadlock.
 */
#ifndef COXSWAIN_STRATEGY_PIPELINE_SCHEDULE_H
#define COXSWAIN_STRATEGY_PIPELINE_SCHEDULE_H

#include <stdint.h>

#include "common/buffer.h"
#include "worker/model/graph_stage.h"
#include "worker/model/partition.h"

enum pipeline_work { PIPELINE_FORWARD, PIPELINE_BACKWARD };

struct pipeline_action {
    enum pipeline_work work;
    unsigned micro_batch, part;
};

/* Returns the most micro-batches that a part has under way; at least 1. */
unsigned pipeline_slots(unsigned depth, unsigned depths, unsigned micro_batches);

/* The parts, and the values and gradients that cross between them. */
struct pipeline_course {
    const struct graph_partition *partition;
    const struct graph_crossing *values, *gradients;
    unsigned value_count, gradient_count;
    unsigned most; /* the most micro-batches of any step, for which there are slots */
};

/* The actions of each stage in a step, in order. */
struct pipeline_timetable {
    unsigned stages, micro_batches;
    bool evaluates; /* forward only */
    struct pipeline_action *actions[STAGES_MAX];
    /* The tick of each action. Its inputs are made in earlier ticks, and the data that it overwrites is taken in earlier ticks. */
    unsigned *tick_of[STAGES_MAX];
    unsigned counts[STAGES_MAX];
    unsigned ticks; /* in all, if every action takes one */
};
void pipeline_timetable_init(struct pipeline_timetable *timetable, const struct pipeline_course *course,
                             unsigned micro_batches, bool evaluates);
void pipeline_timetable_release(struct pipeline_timetable *timetable);
/* Returns the fraction of stages x ticks in which nothing is done, 0 .. 1: (D - 1) / (M + D - 1)
 * for D stages in a row. */
double pipeline_timetable_idle(const struct pipeline_timetable *timetable);

/* When an action ran: nanoseconds on one clock. */
struct pipeline_span {
    struct pipeline_action action;
    int64_t start_ns, end_ns;
};

/* The actions of one stage in a step, with their times. */
struct pipeline_trace {
    const struct pipeline_span *spans;
    unsigned count;
};

/* Returns the fraction of stages x time in which nothing was computed, 0 .. 1. */
double pipeline_bubble(const struct pipeline_trace *traces, unsigned stages);

/* Appends a chart to `text`: one line for each stage, time from left to right in `columns`
 * columns. A digit (the micro-batch modulo 10) is a forward pass, a letter (a for 0) a backward
 * pass, a dot waiting. */
void pipeline_picture(const struct pipeline_trace *traces, unsigned stages, unsigned columns, struct buffer *text);

#endif
