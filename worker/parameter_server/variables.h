/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds one parameter server's part of the model: the parameters and optimizer slots of its pieces (placement.h),
 * packed, and the table of tickets whose updates they contain. It runs the optimizer. The server (server.h) calls it on
 * one thread.
 *
 * An update is applied once: if its ticket is in the table, it is a duplicate, whichever worker sends it. An update
 * computed in another lineage is refused; the lineage is a number that the chief raises whenever the crew rolls back to
 * a checkpoint. With bounded staleness and backup workers, an update is also refused (LATE) if its worker's clock, when
 * it took the ticket, is more than `staleness` below the field `clock`: the chief has reassigned that ticket. A worker's
 * clock counts the tickets that it has finished (ticket_scheduler.h).
 *
 * Asynchronous: variables_apply. Synchronous: variables_stage for each share of a step, then variables_reduce and
 * variables_apply_step once all have arrived; shares are summed in the order of the reduction tree
 * (strategy/reduction_tree.h), so that the result has the bits of one device.
 *
 * An update may contain only the gradients of some of a table's rows (placement_rows.h); all others are 0. If a
 * gradient of 0 changes nothing under the optimizer, only these rows are touched; else the whole table is updated
 * (momentum and decay continue). Either way the result has the bits of the whole gradient.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_VARIABLES_H
#define COXSWAIN_PARAMETER_SERVER_VARIABLES_H

#include "common/job/job_document.h"
#include "worker/device/device.h"
#include "worker/optimizer/optimizer.h"
#include "worker/parameter_server/placement_rows.h"
#include "worker/parameter_server/ticket_set.h"

/* Most shares of a step, all of which are staged at a time. */
#define VARIABLES_SHARES_MAX 64

struct variables_options {
    struct device *device;
    const struct optimizer_spec *optimizer;
    const struct placement *placement;
    unsigned server;   /* whose pieces these are */
    unsigned shares;   /* Synchronous: tickets in a step; 0: asynchronous */
    bool refuses_late; /* bounded staleness with backup workers: refuse LATE updates */
    int64_t staleness;
};

struct variables_copy;

/* Fields are read-only for callers. All arrays are packed, in host memory, and `elements` long. */
struct variables {
    struct variables_options options;
    struct device_stream *stream;
    int64_t elements;
    float *parameters;
    unsigned slot_count;
    float *slots[OPTIMIZER_SLOTS_MAX];

    bool holds_state;
    uint32_t lineage;          /* raised by each rollback of the crew */
    int64_t updates;           /* number applied; Synchronous: steps */
    int64_t empty;             /* asynchronous: tickets taken whose shares have no examples, and so no update */
    struct ticket_set applied; /* Synchronous: includes staged shares */
    int64_t clock; /* asynchronous: highest clock of any worker when it took one of `applied` in this lineage */

    struct variables_copy *copies; /* in progress (variables_copy.h) */

    float *spread; /* a whole gradient, 0 for rows that were not sent; NULL: never needed */
    struct row_buffer {
        float *parameters, *gradients;
        int64_t elements, capacity;
    } touched; /* rows gathered for one launch */

    float *shares[VARIABLES_SHARES_MAX]; /* of the step `updates` */
    float *gradient;                     /* their sum */
    double *norm_blocks;
    struct reduction_plan *plan;
};

/* Allocates the arrays; they hold no state before variables_start or a load. What the options point to must outlive the variables. */
int variables_init(struct variables *variables, const struct variables_options *options, struct error *error);
void variables_release(struct variables *variables);

/* Starts from the values of a fresh model: `flat` is in the layout's order. */
void variables_start(struct variables *variables, const float *flat, const struct ticket_set *applied, int64_t updates);

/* The possible results of an update: it was applied, or why it was not. */
#define UPDATE_VERDICTS(X)                                                                                             \
    X(APPLIED, "applied")                                                                                              \
    X(DUPLICATE, "duplicate")                                                                                          \
    X(OUTDATED, "computed before a rollback")                                                                          \
    X(LATE, "staler than the bound")
enum update_verdict {
#define X(name, text) UPDATE_##name,
    UPDATE_VERDICTS(X)
#undef X
};

struct update {
    int64_t ticket;
    int64_t clock; /* its worker's when it took the ticket (ticket_scheduler.h) */
    uint32_t lineage;
    double learning_rate;
    double gradient_scale;  /* from clipping; 0: the share has no examples */
    const float *gradients; /* of the transfer for `rows`, packed; if `flat`, in the layout's order */
    bool flat;
    const struct row_set *rows; /* NULL: all */
    /* Called while all packed parameters are updated from first to last: those before `end` are
     * done. May be NULL. */
    void (*reached)(void *context, int64_t end);
    void *context;
};
/* Returns whether an update's share has no examples. In asynchronous modes, nothing is applied
 * then, and only its ticket is recorded: with a gradient of 0 the optimizer would continue momentum
 * and decay. */
static inline bool update_is_empty(const struct update *update)
{
    return update->gradient_scale == 0;
}
/* Returns whether the update would be applied, or why not. Changes nothing. */
enum update_verdict variables_judge(const struct variables *variables, const struct update *update);
/* Asynchronous: applies the update unless it is a duplicate, outdated or late. */
int variables_apply(struct variables *variables, const struct update *update, enum update_verdict *ret_verdict,
                    struct error *error);

/* Synchronous: keeps a copy of a share's gradients until variables_reduce, unless the update is a duplicate, outdated or late. */
int variables_stage(struct variables *variables, const struct update *update, enum update_verdict *ret_verdict,
                    struct error *error);
/* Sums the shares of step `updates`. `ret_squares` is the sum's part of the crew's squared gradient
 * norm. ERROR_INTERNAL: a share is missing. */
int variables_reduce(struct variables *variables, double *ret_squares, struct error *error);
/* Applies the sum. `step` is the number of steps before it; does nothing if it was applied already. */
int variables_apply_step(struct variables *variables, int64_t step, double learning_rate, double gradient_scale,
                         struct error *error);

/* Marks tickets as applied although their updates are lost for good; `are_empty`: their shares have
 * no examples, and nothing is lost. */
void variables_discard_tickets(struct variables *variables, const struct ticket_set *tickets, bool are_empty);

#endif
