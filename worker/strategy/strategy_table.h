/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the functions that a distribution strategy must implement; strategy.c calls them for the training loop
 * (strategy.h). Each function is documented at the function strategy_… of the same name in strategy.h.
 *
 * A strategy's own struct begins with `struct strategy`, so that a pointer to one is a pointer to
 * the other. To add a strategy, add a file with such a table, and a line in strategy.c.
 */
#ifndef COXSWAIN_STRATEGY_STRATEGY_TABLE_H
#define COXSWAIN_STRATEGY_STRATEGY_TABLE_H

#include "worker/strategy/strategy.h"

/* Of crews of several processes. Each function may be NULL. */
struct strategy_crew_operations {
    void (*break_off)(struct strategy *strategy);                /* NULL: no other rank waits for this one */
    void (*await_delivery)(struct strategy *strategy);           /* NULL: everything is delivered when a step ends */
    int (*meet)(struct strategy *strategy, struct error *error); /* NULL: there is nothing to wait for */
    struct collective *(*group)(struct strategy *strategy);      /* borrowed; NULL: there is none */
    unsigned (*writers)(const struct strategy *strategy);        /* NULL: rank 0 holds all of the state */
};

/* Of strategies whose processes and devices each hold a part of the model. */
struct strategy_model_operations {
    int (*evaluate)(struct strategy *strategy, const struct dataset *dataset, int64_t first, int64_t count,
                    struct loss_sums *ret_sums, struct error *error);
    void (*evaluation_part)(const struct strategy *strategy, unsigned *ret_index, unsigned *ret_count);
    unsigned (*kin)(const struct strategy *strategy, unsigned rank);
    int (*gather)(struct strategy *strategy, float *whole, struct error *error);
    const unsigned *(*stages)(const struct strategy *strategy, unsigned *ret_layers);
    int (*describe)(struct strategy *strategy, struct buffer *text, struct error *error);
};

/* Of loose strategies (strategy_is_loose). */
struct strategy_loose_operations {
    int (*average_begin)(struct strategy *strategy, struct error *error);
    void (*average_end)(struct strategy *strategy);
    unsigned (*averaged)(const struct strategy *strategy, unsigned *ret_of);
    int64_t (*finished)(const struct strategy *strategy, unsigned seat);
};

struct strategy_operations {
    enum strategy_type type;
    int (*open)(const struct strategy_options *options, struct strategy **ret_strategy, struct error *error);
    int (*reform)(struct strategy *strategy, struct error *error);
    int (*step)(struct strategy *strategy, double learning_rate, unsigned votes, struct strategy_result *ret_result,
                struct error *error);
    int (*sum)(struct strategy *strategy, double *values, unsigned count,
               struct error *error); /* NULL in loose strategies */
    int (*share)(struct strategy *strategy, void *bytes, size_t length, struct error *error);
    void (*close)(struct strategy *strategy);

    /* What may be NULL: */
    void (*memory_plan)(const struct strategy_options *options, struct memory_plans *plans); /* nothing to plan */
    int (*settle)(struct strategy *strategy, struct error *error); /* a step leaves nothing running */
    void (*stand_at_boundary)(struct strategy *strategy);    /* the state is the boundary's until a step changes it */
    bool (*is_whole)(const struct strategy *strategy);       /* whenever holds_state */
    int64_t (*step_before)(const struct strategy *strategy); /* the present step - 1 */
    const struct strategy_crew_operations *crew;             /* there is one process */
    const struct strategy_model_operations *model;           /* every rank has the whole model */
    const struct strategy_loose_operations *loose;           /* all replicas are equal */
};

struct strategy {
    const struct strategy_operations *operations;
    struct strategy_options options;
    struct world world;
    bool holds_state;
    int64_t steps_abandoned; /* strategy_steps_abandoned */
    bool reform_is_planned;  /* the last step's votes asked for it */
};

extern const struct strategy_operations one_device_strategy;
extern const struct strategy_operations mirrored_strategy;
extern const struct strategy_operations central_storage_strategy;
extern const struct strategy_operations multi_worker_mirrored_strategy;
extern const struct strategy_operations peer_to_peer_strategy;
extern const struct strategy_operations pipeline_strategy;

#endif
