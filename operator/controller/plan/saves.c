/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/saves.h"

#include <inttypes.h>

static const char *newest(struct planning *planning)
{
    int64_t step = planning->next->progress.last_checkpoint_step;
    return step == FIELD_UNSET ? "there is no checkpoint yet"
                               : planning_format(planning, "the newest checkpoint is of step %" PRId64, step);
}

static void say_failing(struct planning *planning, const struct saves_input *saves)
{
    const char *message = planning_format(planning, "%s; training goes on, %s", saves->message, newest(planning));
    condition_warn(planning, CONDITION_CHECKPOINTS_FAILING, saves->failure, "Checkpoint", message);
}

static void say_mended(struct planning *planning)
{
    const char *message = planning_format(planning, "checkpoints are saved again: %s", newest(planning));
    planning_event(planning, false, "Saved", "Checkpoint", message);
    condition_set(planning, CONDITION_CHECKPOINTS_FAILING, CONDITION_FALSE, "Saved", message);
}

void saves_update(struct planning *planning)
{
    const struct saves_input *saves = &planning->input->saves;
    if (status_terminal(planning->next))
        return;
    if (saves->failure)
        say_failing(planning, saves);
    else if (saves->succeeded && condition_is(planning->old, CONDITION_CHECKPOINTS_FAILING, CONDITION_TRUE))
        say_mended(planning);
}
