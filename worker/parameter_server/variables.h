/* SPDX-License-Identifier: Apache-2.0
 *
 * What one parameter server holds of the model: its pieces' parameters and
 * optimizer slots, packed, and the table of tickets whose updates are in them.
 * The optimizer runs here.
 *
 * An update counts once: a ticket that is in the table is a duplicate, whoever
 * sends it again. An update that was computed in another lineage (before the
 * crew rolled back) is refused, and so is, with backup workers and a bound, one
 * whose worker the others have left behind: its ticket is another's by then.
 *
 * Asynchronous: variables_apply. Synchronous: variables_stage each share of a
 * step, then variables_reduce and variables_apply_step once all are there; shares
 * are summed in the tree that all synchronous strategies use, so that the bits are
 * those of one device.
 *
 * An update may hold the gradients of a table's rows alone (placement_rows.h); the
 * others are 0. Where a gradient of 0 changes nothing, only these rows are touched;
 * else the whole table moves as the optimizer has it (momentum and decay go on).
 * Either way the bits are those of the whole gradient.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_VARIABLES_H
#define COXSWAIN_PARAMETER_SERVER_VARIABLES_H

#include "common/job/job_document.h"
#include "worker/device/device.h"
#include "worker/optimizer/optimizer.h"
#include "worker/parameter_server/placement_rows.h"
#include "worker/parameter_server/ticket_set.h"

/* Of a step; the shares that are staged at a time. */
#define VARIABLES_SHARES_MAX 64

struct variables_options {
    struct device *device;
    const struct optimizer_spec *optimizer;
    const struct placement *placement;
    unsigned server; /* whose pieces these are */
    unsigned shares; /* Synchronous: tickets in a step; 0: asynchronous */
    /* Bounded staleness with backup workers: what was begun at a clock further behind the highest than this is refused. */
    bool refuses_late;
    int64_t staleness;
};

struct variables_copy;

/* Its fields are for reading. All arrays are packed, host memory, `elements` long. */
struct variables {
    struct variables_options options;
    struct device_stream *stream;
    int64_t elements;
    float *parameters;
    unsigned slot_count;
    float *slots[OPTIMIZER_SLOTS_MAX];

    bool holds_state;
    uint32_t lineage;          /* raised by each rollback of the crew */
    int64_t updates;           /* applied in all; Synchronous: steps */
    int64_t empty;             /* asynchronous: tickets taken whose shares have no examples, and so no update */
    struct ticket_set applied; /* Synchronous: staged shares too */
    int64_t clock;             /* asynchronous: the highest at which a worker has begun one of them in this lineage */

    struct variables_copy *copies; /* under way (variables_copy.h) */

    float *spread; /* a whole gradient, 0 where rows did not come; NULL: never needed */
    struct row_buffer {
        float *parameters, *gradients;
        int64_t elements, capacity;
    } touched; /* rows gathered for one launch */

    float *shares[VARIABLES_SHARES_MAX]; /* of the step `updates` */
    float *gradient;                     /* their sum */
    double *norm_blocks;
    struct reduction_plan *plan;
};

int variables_init(struct variables *variables, const struct variables_options *options, struct error *error);
void variables_release(struct variables *variables);

/* From the values a fresh model starts with: `flat` is in the layout's order. */
void variables_start(struct variables *variables, const float *flat, const struct ticket_set *applied, int64_t updates);

/* How an update was received. */
#define UPDATE_VERDICTS(X)                                                                                             \
    X(APPLIED, "applied")                                                                                              \
    X(DUPLICATE, "duplicate")                                                                                          \
    X(OUTDATED, "of a lineage that was left")                                                                          \
    X(LATE, "staler than the bound")
enum update_verdict {
#define X(name, text) UPDATE_##name,
    UPDATE_VERDICTS(X)
#undef X
};

struct update {
    int64_t ticket;
    int64_t clock; /* its worker's, when it began (dispenser.h) */
    uint32_t lineage;
    double learning_rate;
    double gradient_scale;  /* of clipping; 0: its share has no examples */
    const float *gradients; /* of what travels for `rows`, packed, unless `flat`: then in the layout's order */
    bool flat;
    const struct row_set *rows; /* NULL: all */
    /* Told while all of the packed parameters are updated, from the first to the last: those before `end` are done. May be NULL. */
    void (*reached)(void *context, int64_t end);
    void *context;
};
/* Asynchronous: there is nothing to apply then, and the optimizer must not take a gradient of 0 for it, by which momentum and
 * decay would go on: its ticket alone is taken. */
static inline bool update_is_empty(const struct update *update)
{
    return update->gradient_scale == 0;
}
enum update_verdict variables_judge(const struct variables *variables, const struct update *update);
/* Asynchronous: applies what is neither duplicate, nor outdated, nor late. */
int variables_apply(struct variables *variables, const struct update *update, enum update_verdict *ret_verdict,
                    struct error *error);

/* Synchronous: keeps a copy. */
int variables_stage(struct variables *variables, const struct update *update, enum update_verdict *ret_verdict,
                    struct error *error);
/* Sums the shares of step `updates`; the sum of squares goes into the crew's gradient norm. ERROR_INTERNAL when one is missing. */
int variables_reduce(struct variables *variables, double *ret_squares, struct error *error);
/* `step`: the number of steps before it; done before: nothing happens. */
int variables_apply_step(struct variables *variables, int64_t step, double learning_rate, double gradient_scale,
                         struct error *error);

/* Marks tickets as settled whose updates are lost for good; `are_empty`: their shares have no examples, and nothing is lost. */
void variables_write_off(struct variables *variables, const struct ticket_set *tickets, bool are_empty);

#endif
