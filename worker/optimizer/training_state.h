/* SPDX-License-Identifier: Apache-2.0
 *
 * What a replica holds between two steps, and all of it: flat parameters, the
 * optimizer's slots, and the position. Two replicas whose spans are equal byte
 * for byte go on identically. Checkpoints and transfers between peers copy
 * exactly the spans.
 *
 * The host sees the flat arrays through `host`: the arrays themselves where all
 * memory is shared, else copies, which training_state_to_host brings up to date
 * and training_state_to_device writes back. Both are for the time between two
 * steps, wait until all is copied, and cost nothing where there are no copies.
 *
 * Where a crew shares the slots out, they are those of two shards (shard_plan.h):
 * this rank's own, and behind it that of the rank before. The parameters are whole.
 * Several devices with memory of their own have these slots between them
 * (slot_pieces.h), and the parameters are those of the first.
 *
 * Where devices hold a part of the model each (state_parts.h) all of the state is in
 * parts, and only the host has it in one.
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

/* Fixed-size, little-endian as every machine we run on; part of the state's bytes. */
struct training_progress {
    int64_t step;              /* steps applied */
    int64_t data_epoch;        /* passes over the data finished */
    int64_t examples_consumed; /* within this epoch: the sampler's position */
    int64_t seed;
    struct loss_scaling scaling;
};

/* The optimizer's slots, and one that a strategy may add. */
#define TRAINING_SLOTS_MAX (OPTIMIZER_SLOTS_MAX + 1)

struct training_state {
    struct device *device;                      /* the first part's, where there are parts */
    struct parameter_layout layout;             /* borrowed tensors: the graph must outlive the state */
    float *parameters;                          /* device memory; NULL: in parts */
    unsigned slot_count, optimizer_slots;       /* the optimizer's come first */
    const char *slot_names[TRAINING_SLOTS_MAX]; /* "momentum"; "adam.m", "adam.v" */
    float *slots[TRAINING_SLOTS_MAX];           /* device memory, zero at the start; NULL: in pieces, or in parts */
    struct slot_pieces *pieces;                 /* NULL: the device has them all */
    struct state_parts *parts;                  /* NULL: the device has all of the state, but for pieces */
    struct {
        float *parameters, *slots[TRAINING_SLOTS_MAX]; /* shared memory */
        struct device_stream *stream;                  /* of the copies; NULL: there are none */
    } host;
    uint64_t writings;        /* by training_state_to_device, so far */
    struct shard_plan shards; /* of size 0: the slots are as long as the parameters */
    unsigned shard_rank;
    struct training_progress progress;
};

/* Parameters as graph_initialise gives them for `seed`, slots zero, position 0. */
int training_state_init(struct training_state *state, struct device *device, const struct parameter_layout *layout,
                        const struct optimizer_spec *optimizer, int64_t seed, struct error *error);
/* Who has which slots: rank `rank` of `size`, each with so many devices, of which this rank's are the state's and others. */
struct training_shard {
    unsigned rank, size;
    struct device *const *devices; /* borrowed during the call; they outlive the state */
    unsigned device_count;
};
int training_state_init_shard(struct training_state *state, const struct training_shard *shard,
                              const struct parameter_layout *layout, const struct optimizer_spec *optimizer,
                              int64_t seed, struct error *error);
/* In parts, on several devices (state_parts_new). */
int training_state_init_parts(struct training_state *state, const struct state_part *parts, unsigned count,
                              const struct parameter_layout *layout, const struct optimizer_spec *optimizer,
                              int64_t seed, struct error *error);
/* What is on the part's device; where there are no parts, on the only one. */
struct state_part training_state_part(const struct training_state *state, unsigned part);
/* Of one slot. */
int64_t training_state_slot_elements(const struct training_state *state);
/* One more flat array of the state, zero at the start. `name` must outlive the state. Where there are parts the host alone gets it:
 * they have the optimizer's slots, and no others. */
int training_state_add_slot(struct training_state *state, const char *name, struct error *error);
void training_state_release(struct training_state *state);

int training_state_to_host(struct training_state *state, struct error *error);
int training_state_to_device(struct training_state *state, struct error *error);

/* The parameters alone. */
int training_state_parameters_to_host(struct training_state *state, struct error *error);
int training_state_parameters_to_device(struct training_state *state, struct error *error);

/* "progress", "parameters", then the slots, as the host sees them. Pointers into the state. */
#define TRAINING_STATE_SPANS_MAX (2 + TRAINING_SLOTS_MAX)
struct state_span {
    const char *name;
    void *bytes;
    size_t length;
};
unsigned training_state_spans(struct training_state *state, struct state_span ret_spans[TRAINING_STATE_SPANS_MAX]);

/* CRC-32C over all spans in order: equal for equal states (after training_state_to_host). */
uint32_t training_state_digest(struct training_state *state);

#endif
