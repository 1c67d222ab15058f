/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects the parameters of the whole model in the chief, so that they can be written to one file.
 * If the ranks hold parts of the model (Pipeline), they send them to the chief.
 */
#ifndef COXSWAIN_TRAIN_GATHERED_MODEL_H
#define COXSWAIN_TRAIN_GATHERED_MODEL_H

#include "worker/train/trainer.h"

struct gathered_model {
    const struct parameter_layout *layout;
    const float *parameters; /* host memory; NULL in ranks other than the chief that only send their parts */
    float *gathered;         /* owned, or NULL */
};

/* Collects the parameters. If strategy_writers is above 1, all ranks call it at the same step.
 * Fails as strategy_step does. The caller releases the model. */
int gathered_model_take(struct trainer *trainer, struct gathered_model *ret_model, struct error *error);
void gathered_model_release(struct gathered_model *model);

#endif
