/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/planning.h"

bool invalid_plan(struct planning *planning)
{
    if (!planning->input->invalid)
        return false;
    planning_finish(planning, CONDITION_FAILED, "InvalidSpec",
                    planning_format(planning, "%s", planning->input->invalid));
    return true;
}
