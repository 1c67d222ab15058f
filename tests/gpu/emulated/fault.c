/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/emulated/fault.h"

#include <stdatomic.h>
#include <stdlib.h>

#define GRID_OTHERWISE 40

static atomic_int fault; /* cudaError_t */
static atomic_ulong grids, products;

/* Adds one to `count`. Returns whether the GPU is bad by then. */
static bool is_bad_at(atomic_ulong *count)
{
    const char *code = getenv("EMULATED_FAULT"), *number = getenv("EMULATED_FAULT_GRID");
    const unsigned long bad = number ? strtoul(number, NULL, 10) : GRID_OTHERWISE;
    if (atomic_fetch_add(count, 1) + 1 >= bad)
        atomic_store(&fault, (int)strtol(code, NULL, 10));
    return atomic_load(&fault) != cudaSuccess;
}

static bool is_seen_by_cublas(void)
{
    return getenv("EMULATED_FAULT_SEEN_BY") != NULL;
}

bool emulated_may_run(void)
{
    if (!getenv("EMULATED_FAULT"))
        return true;
    return is_seen_by_cublas() ? atomic_load(&fault) == cudaSuccess : !is_bad_at(&grids);
}

bool emulated_product_fails(void)
{
    return getenv("EMULATED_FAULT") && is_seen_by_cublas() && is_bad_at(&products);
}

cudaError_t emulated_fault(void)
{
    return (cudaError_t)atomic_load(&fault);
}
