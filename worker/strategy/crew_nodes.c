/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/crew_nodes.h"

#include <stdio.h>

#include "common/fnv1a.h"

#define BOOT_PATH "/proc/sys/kernel/random/boot_id"
/* Numbers travel as float64. */
#define NUMBER_BITS 52

uint64_t crew_nodes_machine(void)
{
    char text[64] = "";
    FILE *file = fopen(BOOT_PATH, "re");
    if (file == NULL)
        return 0;
    bool read = fgets(text, sizeof(text), file) != NULL;
    fclose(file);
    return read ? fnv1a(FNV1A_START, text) : 0;
}

int crew_nodes_find(struct strategy *strategy, uint64_t machine, unsigned ret_nodes[CREW_SIZE_MAX], struct error *error)
{
    const struct world *world = strategy_world(strategy);
    double numbers[CREW_SIZE_MAX] = {0};
    uint64_t own = machine != 0 ? machine : crew_nodes_machine();
    numbers[world->rank] = (double)(own & ((UINT64_C(1) << NUMBER_BITS) - 1));
    if (strategy_sum(strategy, numbers, world->size, error) < 0)
        return -1;
    for (unsigned rank = 0; rank < world->size; rank++) {
        ret_nodes[rank] = rank;
        for (unsigned other = rank; other-- > 0;)
            if (numbers[other] == numbers[rank] && numbers[rank] != 0)
                ret_nodes[rank] = other;
    }
    return 0;
}
