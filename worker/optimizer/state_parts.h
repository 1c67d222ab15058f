/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores the training state of a process whose devices have separate memory and each hold one part
 * of the model (strategy Pipeline; parameter_layout.h). training_state.c owns it. A part's
 * parameters and slots lie on its device, in the part's own layout; on the host they lie in the
 * layout of the whole model.
 *
 * Several parts may hold the same tensor: replicas of a stage do, and so does a part that has a
 * copy of another part's embedding table because one of its layers uses it. A copy to the devices
 * writes all of them; a copy to the host reads the first. In between, the caller must keep them
 * equal.
 */
#ifndef COXSWAIN_OPTIMIZER_STATE_PARTS_H
#define COXSWAIN_OPTIMIZER_STATE_PARTS_H

#include "worker/device/device.h"
#include "worker/model/parameter_layout.h"
#include "worker/optimizer/optimizer.h"

struct state_parts;

/* The state on one device. */
struct state_part {
    struct device *device;
    const struct parameter_layout *layout;
    float *parameters, *slots[OPTIMIZER_SLOTS_MAX];
};

/* Allocates the arrays of each part, filled with zeros. Reads only `device` and `layout` from
 * `wanted`; both must outlive the result, and so must the tensors of `whole`. Each tensor of
 * `whole` must be in at least one part. */
int state_parts_new(const struct state_part *wanted, unsigned count, const struct parameter_layout *whole,
                    unsigned slots, struct state_parts **ret_parts, struct error *error);
void state_parts_free(struct state_parts *parts);
const struct state_part *state_parts_at(const struct state_parts *parts, unsigned part);

/* Copy the state to or from the host. Both return once all is copied. `slots` NULL: copies only
 * the parameters. */
int state_parts_to_host(struct state_parts *parts, float *parameters, float *const *slots, struct error *error);
int state_parts_to_devices(struct state_parts *parts, float *parameters, float *const *slots, struct error *error);

#endif
