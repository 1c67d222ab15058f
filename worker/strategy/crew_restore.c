/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/crew_restore.h"

#include <string.h>

int crew_restore_parts(struct strategy *strategy, struct collective *group, struct error *error)
{
    const struct strategy_options *options = &strategy->options;
    unsigned rank = strategy->world.rank;
    char base[STRATEGY_BASE_MAX] = "";
    bool all[CREW_SIZE_MAX];
    memset(all, true, sizeof all);
    strategy->holds_state = false;
    collective_set_label(group, "the chief's restore");
    if ((rank == 0 && options->restore_part(options->context, true, base, error) < 0) ||
        collective_barrier(group, error) < 0 || collective_broadcast(group, 0, all, base, sizeof base, error) < 0)
        return -1;
    base[sizeof base - 1] = '\0';
    if (rank != 0 && options->restore_part(options->context, false, base, error) < 0)
        return -1;
    strategy->holds_state = true;
    return collective_barrier(group, error);
}
