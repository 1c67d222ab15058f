/* SPDX-License-Identifier: Apache-2.0
 *
 * The order in which a stage works on the micro-batches of a step: one forward,
 * one backward (1F1B; Narayanan et al. 2019). A stage at depth d of D goes
 * forward with the first D - d - 1 micro-batches, then forward and backward in
 * turns, then backward with what is left. So it has at most D - d of them under
 * way, however many there are, and goes backward in their order.
 *
 *     depth 0   F0 F1 F2          B0 F3 B1 ...
 *     depth 1      F0 F1       B0 F2 B1 F3 ...
 *     depth 2         F0 B0 F1 B1 F2 ...
 */
#ifndef COXSWAIN_STRATEGY_PIPELINE_SCHEDULE_H
#define COXSWAIN_STRATEGY_PIPELINE_SCHEDULE_H

#include <stdint.h>

#include "common/buffer.h"

enum pipeline_work { PIPELINE_FORWARD, PIPELINE_BACKWARD };

struct pipeline_action {
    enum pipeline_work work;
    unsigned micro_batch;
};

/* Micro-batches that a stage has under way at most; at least 1. */
unsigned pipeline_slots(unsigned depth, unsigned depths, unsigned micro_batches);
/* Fills 2 x micro_batches actions. */
void pipeline_schedule(unsigned depth, unsigned depths, unsigned micro_batches, struct pipeline_action *actions);

/* When an action ran: nanoseconds on one clock. */
struct pipeline_span {
    struct pipeline_action action;
    int64_t start_ns, end_ns;
};

/* What one stage did in a step. */
struct pipeline_trace {
    const struct pipeline_span *spans;
    unsigned count;
};

/* The part of stages x time in which nothing was computed, 0 .. 1. */
double pipeline_bubble(const struct pipeline_trace *traces, unsigned stages);
/* The same in an ideal step of equal stages: (D - 1) / (M + D - 1). */
double pipeline_ideal_bubble(unsigned depths, unsigned micro_batches);

/* A line a stage, time from left to right in `columns`: a digit (the micro-batch, modulo 10) where it goes forward, a letter
 * (0 is a) where it goes backward, a dot where it waits. */
void pipeline_picture(const struct pipeline_trace *traces, unsigned stages, unsigned columns, struct buffer *text);

#endif
