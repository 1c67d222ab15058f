/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the parameters of the whole model available in the chief's host memory, for the final
 * export and the best weights. If each rank holds only a part of the model (strategy Pipeline), all
 * ranks must call gathered_model_take at the same step, and the others send their parts to the
 * chief. Otherwise the result points into the trainer's state, and is valid until the next step.
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
