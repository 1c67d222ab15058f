/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of the whole model in the chief, for whoever writes them to one
 * file. Where the ranks hold parts of them (a pipeline), they hand them over.
 */
#ifndef COXSWAIN_TRAIN_WHOLE_MODEL_H
#define COXSWAIN_TRAIN_WHOLE_MODEL_H

#include "worker/train/trainer.h"

struct whole_model {
    const struct parameter_layout *layout;
    const float *parameters; /* host memory; NULL in ranks other than the chief that only hand over */
    float *gathered;         /* owned, or NULL */
};

/* Called by all ranks at the same step where strategy_writers says that there are several. Errors as strategy_step's. */
int whole_model_take(struct trainer *trainer, struct whole_model *ret_model, struct error *error);
void whole_model_release(struct whole_model *model);

#endif
