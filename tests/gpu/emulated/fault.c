/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/emulated/fault.h"

#include <stdatomic.h>
#include <stdlib.h>

#define GRID_OTHERWISE 40

static atomic_int fault; /* cudaError_t */
static atomic_ulong grids;

bool emulated_may_run(void)
{
    const char *code = getenv("EMULATED_FAULT"), *number = getenv("EMULATED_FAULT_GRID");
    if (!code)
        return true;
    const unsigned long bad = number ? strtoul(number, NULL, 10) : GRID_OTHERWISE;
    if (atomic_fetch_add(&grids, 1) + 1 >= bad)
        atomic_store(&fault, (int)strtol(code, NULL, 10));
    return atomic_load(&fault) == cudaSuccess;
}

cudaError_t emulated_fault(void)
{
    return (cudaError_t)atomic_load(&fault);
}
