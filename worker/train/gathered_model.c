/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/gathered_model.h"

#include <stdlib.h>

#include "common/memory.h"

int gathered_model_take(struct trainer *trainer, struct gathered_model *ret_model, struct error *error)
{
    struct gathered_model model = {.layout = graph_layout(trainer->graph)};
    if (training_state_to_host(&trainer->state, error) < 0)
        return -1;
    if (trainer->strategy == NULL || strategy_has_gathered_model(trainer->strategy)) {
        model.parameters = trainer->state.host.parameters;
    } else {
        if (trainer_is_chief(trainer))
            model.gathered = memory_allocate((size_t)model.layout->elements, sizeof *model.gathered);
        model.parameters = model.gathered;
        if (strategy_gather(trainer->strategy, model.gathered, error) < 0) {
            gathered_model_release(&model);
            return -1;
        }
    }
    *ret_model = model;
    return 0;
}

void gathered_model_release(struct gathered_model *model)
{
    free(model->gathered);
    *model = (struct gathered_model){0};
}
