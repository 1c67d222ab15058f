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

struct strategy_operations {
    enum strategy_type type;
    int (*open)(const struct strategy_options *options, struct strategy **ret_strategy, struct error *error);
    /* NULL: nothing to plan. */
    void (*memory_plan)(const struct strategy_options *options, struct memory_plans *plans);
    int (*reform)(struct strategy *strategy, struct error *error);
    int (*step)(struct strategy *strategy, double learning_rate, unsigned votes, struct strategy_result *ret_result,
                struct error *error);
    int (*settle)(struct strategy *strategy, struct error *error); /* NULL: a step leaves nothing running */
    void (*stand_at_boundary)(
        struct strategy *strategy);                    /* NULL: the state is the boundary's until a step changes it */
    void (*break_off)(struct strategy *strategy);      /* NULL: no other rank waits for this one */
    bool (*is_whole)(const struct strategy *strategy); /* NULL: whenever holds_state */
    int64_t (*step_before)(const struct strategy *strategy); /* NULL: step - 1 */
    /* Loose strategies; NULL: all replicas are equal. */
    int (*average_begin)(struct strategy *strategy, struct error *error);
    void (*average_end)(struct strategy *strategy);
    unsigned (*averaged)(const struct strategy *strategy, unsigned *ret_of);
    int64_t (*finished)(const struct strategy *strategy, unsigned seat);
    /* NULL for loose strategies. */
    int (*sum)(struct strategy *strategy, double *values, unsigned count, struct error *error);
    void (*await_delivery)(struct strategy *strategy);           /* NULL: everything is delivered when a step ends */
    int (*meet)(struct strategy *strategy, struct error *error); /* NULL: there is one process */
    struct collective *(*group)(struct strategy *strategy);      /* NULL: there is none, as in a crew of one */
    int (*share)(struct strategy *strategy, void *bytes, size_t length, struct error *error);
    /* NULL: each process evaluates with a model of its own. */
    int (*evaluate)(struct strategy *strategy, const struct dataset *dataset, int64_t first, int64_t count,
                    struct loss_sums *ret_sums, struct error *error);
    /* NULL: index and count are those of the world; one writer; every rank has the whole model; no stages. */
    void (*evaluation_part)(const struct strategy *strategy, unsigned *ret_index, unsigned *ret_count);
    unsigned (*writers)(const struct strategy *strategy);
    unsigned (*kin)(const struct strategy *strategy, unsigned rank); /* NULL: all ranks do the same work */
    int (*gather)(struct strategy *strategy, float *whole, struct error *error);
    const unsigned *(*stages)(const struct strategy *strategy, unsigned *ret_layers);
    int (*describe)(struct strategy *strategy, struct buffer *text, struct error *error); /* NULL: nothing to say */
    void (*close)(struct strategy *strategy);
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
