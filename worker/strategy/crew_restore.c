/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/crew_restore.h"

#include "worker/strategy/crew_group.h"

int crew_restore_parts(struct strategy *strategy, struct collective *group, struct error *error)
{
    const struct strategy_options *options = &strategy->options;
    unsigned rank = strategy->world.rank;
    char base[STRATEGY_BASE_MAX] = "";
    strategy->holds_state = false;
    collective_set_label(group, "the chief's restore");
    if ((rank == 0 && options->calls.restore_part(options->calls.context, true, base, error) < 0) ||
        collective_barrier(group, error) < 0 || crew_group_tell(group, 0, base, sizeof base, error) < 0)
        return -1;
    base[sizeof base - 1] = '\0';
    if (rank != 0 && options->calls.restore_part(options->calls.context, false, base, error) < 0)
        return -1;
    strategy->holds_state = true;
    return collective_barrier(group, error);
}
