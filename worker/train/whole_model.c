/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/whole_model.h"

#include <stdlib.h>

#include "common/memory.h"

int whole_model_take(struct trainer *trainer, struct whole_model *ret_model, struct error *error)
{
    struct whole_model model = {.layout = graph_layout(trainer->graph)};
    if (training_state_to_host(&trainer->state, error) < 0)
        return -1;
    if (trainer->strategy == NULL || strategy_has_whole_model(trainer->strategy)) {
        model.parameters = trainer->state.host.parameters;
    } else {
        if (trainer_is_chief(trainer))
            model.gathered = memory_allocate((size_t)model.layout->elements, sizeof *model.gathered);
        model.parameters = model.gathered;
        if (strategy_gather(trainer->strategy, model.gathered, error) < 0) {
            whole_model_release(&model);
            return -1;
        }
    }
    *ret_model = model;
    return 0;
}

void whole_model_release(struct whole_model *model)
{
    free(model->gathered);
    *model = (struct whole_model){0};
}
