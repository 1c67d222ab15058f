/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/variables_copy.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/memory.h"

#define SEGMENT_ELEMENTS ((int64_t)1 << 16)

enum segment_state { SEGMENT_OUT, SEGMENT_UNDER_WAY, SEGMENT_COPIED };

static int64_t count_segments(int64_t elements)
{
    return (elements + SEGMENT_ELEMENTS - 1) / SEGMENT_ELEMENTS;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---------------------------------------------------------------- segments */

static float *own_array(const struct variables_copy *copy, unsigned number)
{
    return number == 0 ? copy->values.parameters : copy->values.slots[number - 1];
}

/* False when another thread has begun it, or has done it. */
static bool copy_segment(struct variables_copy *copy, int64_t number)
{
    int expected = SEGMENT_OUT;
    if (!atomic_compare_exchange_strong(&copy->states[number], &expected, SEGMENT_UNDER_WAY))
        return false;
    int64_t first = number * SEGMENT_ELEMENTS;
    int64_t count = least(SEGMENT_ELEMENTS, copy->values.elements - first);
    for (unsigned i = 0; i <= copy->values.slot_count; i++)
        memcpy(own_array(copy, i) + first, copy->from[i] + first, (size_t)count * sizeof(float));
    atomic_store(&copy->states[number], SEGMENT_COPIED);
    return true;
}

/* Briefly: for a part of a segment at most. */
static void await_segment(struct variables_copy *copy, int64_t number)
{
    while (atomic_load(&copy->states[number]) != SEGMENT_COPIED)
        sched_yield();
}

void variables_keep(struct variables *variables, int64_t first, int64_t count)
{
    struct variables_copy *copy = variables->copy;
    if (copy == NULL || count <= 0)
        return;
    int64_t begin = first / SEGMENT_ELEMENTS, end = count_segments(first + count);
    for (int64_t i = begin; i < end; i++)
        (void)copy_segment(copy, i);
    for (int64_t i = begin; i < end; i++)
        await_segment(copy, i);
}

/* From the end, since updates come from the beginning. */
void variables_copy_complete(struct variables_copy *copy)
{
    for (int64_t i = copy->segments - 1; i >= 0; i--)
        (void)copy_segment(copy, i);
    for (int64_t i = 0; i < copy->segments; i++)
        await_segment(copy, i);
}

/* ---------------------------------------------------------------- life cycle */

/* A server's values keep their size. Pages come when they are written to first, mostly on the other thread. */
static int reserve(struct variables_copy *copy, const struct variables *variables, struct error *error)
{
    size_t bytes = ((size_t)variables->elements * (1 + variables->slot_count) + 1) * sizeof(float);
    if (copy->memory != NULL)
        return 0;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return error_set(error, ERROR_NO_SPACE, "no memory for a checkpoint's copy of %zu bytes", bytes);
    copy->memory = memory;
    copy->bytes = bytes;
    copy->segments = count_segments(variables->elements);
    copy->states = memory_allocate((size_t)copy->segments + 1, sizeof *copy->states);
    return 0;
}

int variables_copy_begin(struct variables_copy *copy, struct variables *variables, struct error *error)
{
    if (reserve(copy, variables, error) < 0)
        return -1;
    struct ticket_set applied = copy->values.applied;
    ticket_set_copy(&applied, &variables->applied);
    copy->values = *variables;
    copy->values.applied = applied;
    copy->values.copy = NULL;
    copy->values.parameters = copy->memory;
    copy->from[0] = variables->parameters;
    for (unsigned i = 0; i < variables->slot_count; i++) {
        copy->values.slots[i] = copy->memory + (int64_t)(i + 1) * variables->elements;
        copy->from[1 + i] = variables->slots[i];
    }
    for (int64_t i = 0; i < copy->segments; i++)
        atomic_store(&copy->states[i], SEGMENT_OUT);
    variables->copy = copy;
    return 0;
}

void variables_copy_end(struct variables_copy *copy, struct variables *variables)
{
    if (variables->copy == copy)
        variables->copy = NULL;
}

void variables_copy_release(struct variables_copy *copy)
{
    if (copy->memory != NULL)
        munmap(copy->memory, copy->bytes);
    free(copy->states);
    ticket_set_release(&copy->values.applied);
    *copy = (struct variables_copy){0};
}
