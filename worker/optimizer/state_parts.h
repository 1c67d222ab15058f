/* SPDX-License-Identifier: Apache-2.0
 *
 * The training state of a process whose devices have memory of their own and hold
 * a part of the model each (parameter_layout.h): parameters and slots of a part lie
 * on its device, in the part's own layout. The host has all of them in the layout
 * of the whole. Several parts may have the same tensors, and parts have copies of
 * tables that others hold: all with equal values.
 */
#ifndef COXSWAIN_OPTIMIZER_STATE_PARTS_H
#define COXSWAIN_OPTIMIZER_STATE_PARTS_H

#include "worker/device/device.h"
#include "worker/model/parameter_layout.h"
#include "worker/optimizer/optimizer.h"

struct state_parts;

/* What one device has. */
struct state_part {
    struct device *device;
    const struct parameter_layout *layout;
    float *parameters, *slots[OPTIMIZER_SLOTS_MAX];
};

/* Devices and layouts of `wanted`, which both outlive this, are read; arrays are zeros at the start. The tensors of `whole` outlive
 * it, too, and each is in one part at least. */
int state_parts_new(const struct state_part *wanted, unsigned count, const struct parameter_layout *whole,
                    unsigned slots, struct state_parts **ret_parts, struct error *error);
void state_parts_free(struct state_parts *parts);
const struct state_part *state_parts_at(const struct state_parts *parts, unsigned part);

/* Both wait until all is copied. `slots` NULL: the parameters alone. */
int state_parts_to_host(struct state_parts *parts, float *parameters, float *const *slots, struct error *error);
int state_parts_to_devices(struct state_parts *parts, float *parameters, float *const *slots, struct error *error);

#endif
