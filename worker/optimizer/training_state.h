/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds the complete state of training between two steps: parameters and optimizer slots in flat
 * arrays, and progress (step, position in the data, loss scale). Strategies update it, checkpoints
 * store it, and peers send it to new workers. training_state_spans lists its bytes; two states
 * whose spans are equal byte for byte continue identically.
 *
 * The host sees the flat arrays through `host`. If the device shares the host's memory, these are
 * the arrays themselves; otherwise they are copies, which training_state_to_host updates and
 * training_state_to_device writes back. Call both only between two steps. They return once all is
 * copied, and do nothing if there are no copies.
 *
 * If a crew shards the slots, each rank stores those of two shards (shard_plan.h): its own,
 * followed by that of the rank before it. The parameters are complete on each rank. If a rank has
 * several devices with separate memory, its slots are split over them (slot_pieces.h), and
 * `parameters` belongs to the first device.
 *
 * If each device holds a part of the model (state_parts.h), parameters and slots lie in parts on
 * the devices; only the host's copy is contiguous.
 */
#ifndef COXSWAIN_OPTIMIZER_TRAINING_STATE_H
#define COXSWAIN_OPTIMIZER_TRAINING_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/device/device.h"
#include "worker/model/parameter_layout.h"
#include "worker/optimizer/loss_scaling.h"
#include "worker/optimizer/optimizer.h"
#include "worker/optimizer/shard_plan.h"
#include "worker/optimizer/state_parts.h"

/* Part of the bytes of the state: fixed size, and little-endian like all supported machines. */
struct training_progress {
    int64_t step;              /* steps applied */
    int64_t data_epoch;        /* finished passes over the data */
    int64_t examples_consumed; /* within this epoch: the sampler's position */
    int64_t seed;
    struct loss_scaling scaling;
};

/* The optimizer's slots, and one that a strategy may add. */
#define TRAINING_SLOTS_MAX (OPTIMIZER_SLOTS_MAX + 1)

struct training_state {
    struct device *device;                      /* if the state is in parts, the first part's */
    struct parameter_layout layout;             /* borrowed tensors: the graph must outlive the state */
    float *parameters;                          /* device memory; NULL if the state is in parts */
    unsigned slot_count, optimizer_slots;       /* the optimizer's come first */
    const char *slot_names[TRAINING_SLOTS_MAX]; /* "momentum"; "adam.m", "adam.v" */
    float *slots[TRAINING_SLOTS_MAX];           /* device memory, zero at the start; NULL if in pieces or parts */
    struct slot_pieces *pieces;                 /* NULL: `device` holds all slots */
    struct state_parts *parts;                  /* NULL: `device` holds the whole state, except slots in pieces */
    struct {
        float *parameters, *slots[TRAINING_SLOTS_MAX]; /* shared memory */
        struct device_stream *stream;                  /* for the copies; NULL: there are none */
    } host;
    uint64_t writings;        /* how often the whole state was written to the device so far */
    struct shard_plan shards; /* size 0: not sharded; the slots are as long as the parameters */
    unsigned shard_rank;
    struct training_progress progress;
};

/* Allocates the state. Parameters start as graph_initialise computes them for `seed`; slots and
 * progress start at zero. */
int training_state_init(struct training_state *state, struct device *device, const struct parameter_layout *layout,
                        const struct optimizer_spec *optimizer, int64_t seed, struct error *error);
/* Describes how slots are sharded: over `size` ranks with `device_count` devices each. `devices` are those of
 * this process, whose rank is `rank`; the parameters are stored on the first. */
struct training_shard {
    unsigned rank, size;
    struct device *const *devices; /* the array is borrowed during the call; the devices must outlive the state */
    unsigned device_count;
};
int training_state_init_shard(struct training_state *state, const struct training_shard *shard,
                              const struct parameter_layout *layout, const struct optimizer_spec *optimizer,
                              int64_t seed, struct error *error);
/* Allocates a state in parts, on several devices (state_parts_new). */
int training_state_init_parts(struct training_state *state, const struct state_part *parts, unsigned count,
                              const struct parameter_layout *layout, const struct optimizer_spec *optimizer,
                              int64_t seed, struct error *error);
/* Returns the arrays of a part; if the state is not in parts, those of the only device. */
struct state_part training_state_part(const struct training_state *state, unsigned part);
/* Returns the number of elements in one slot. */
int64_t training_state_slot_elements(const struct training_state *state);
/* Adds one more slot to the state, zero at the start. `name` must outlive the state. If the
 * state is in parts or its slots are in pieces, only the host gets the array; the devices hold
 * the optimizer's slots only. */
int training_state_add_slot(struct training_state *state, const char *name, struct error *error);
void training_state_release(struct training_state *state);

int training_state_to_host(struct training_state *state, struct error *error);
int training_state_to_device(struct training_state *state, struct error *error);

/* Copy only the parameters. */
int training_state_parameters_to_host(struct training_state *state, struct error *error);
int training_state_parameters_to_device(struct training_state *state, struct error *error);

/* Lists the spans: "progress", "parameters", then the slots, as the host sees them. They point
 * into the state. Returns how many. */
#define TRAINING_STATE_SPANS_MAX (2 + TRAINING_SLOTS_MAX)
struct state_span {
    const char *name;
    void *bytes;
    size_t length;
};
unsigned training_state_spans(struct training_state *state, struct state_span ret_spans[TRAINING_STATE_SPANS_MAX]);

/* Returns a CRC-32C over all spans in order: equal for equal states. Call training_state_to_host
 * first. */
uint32_t training_state_digest(struct training_state *state);

#endif
