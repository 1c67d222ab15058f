/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/variables_copy.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/extremes.h"
#include "common/memory.h"
#include "worker/comm/link.h"

#define SEGMENT_ELEMENTS ((int64_t)1 << 16)

/* AHEAD: belongs to the update that is being applied, and is not available yet. */
enum segment_state { SEGMENT_OUT, SEGMENT_UNDER_WAY, SEGMENT_COPIED, SEGMENT_AHEAD };

static int64_t count_segments(int64_t elements)
{
    return (elements + SEGMENT_ELEMENTS - 1) / SEGMENT_ELEMENTS;
}

/* ---------------------------------------------------------------- segments */

static float *own_array(const struct variables_copy *copy, unsigned number)
{
    return number == 0 ? copy->values.parameters : copy->values.slots[number - 1];
}

/* Copies a segment. Returns false if another thread has begun or finished it. */
static bool copy_segment(struct variables_copy *copy, int64_t number)
{
    int expected = SEGMENT_OUT;
    if (!atomic_compare_exchange_strong(&copy->states[number], &expected, SEGMENT_UNDER_WAY))
        return false;
    int64_t first = number * SEGMENT_ELEMENTS;
    int64_t count = int64_min(SEGMENT_ELEMENTS, copy->values.elements - first);
    for (unsigned i = 0; i <= copy->values.slot_count; i++)
        memcpy(own_array(copy, i) + first, copy->from[i] + first, (size_t)count * sizeof(float));
    atomic_store(&copy->states[number], SEGMENT_COPIED);
    return true;
}

static bool is_settled(const struct variables_copy *copy, int64_t number)
{
    int state = atomic_load(&copy->states[number]);
    return state == SEGMENT_COPIED || state == SEGMENT_AHEAD;
}

/* Waits until a segment is copied, copying it if necessary. Waits briefly: another thread copies
 * part of a segment at most. A thread that sends a segment may leave it uncopied. */
static void await_segment(struct variables_copy *copy, int64_t number)
{
    while (!is_settled(copy, number) && !copy_segment(copy, number))
        sched_yield();
}

static void keep_in(struct variables_copy *copy, int64_t first, int64_t count)
{
    int64_t begin = first / SEGMENT_ELEMENTS, end = count_segments(first + count);
    for (int64_t i = begin; i < end; i++)
        (void)copy_segment(copy, i);
    for (int64_t i = begin; i < end; i++)
        await_segment(copy, i);
}

void variables_keep(struct variables *variables, int64_t first, int64_t count)
{
    for (struct variables_copy *copy = variables->copies; copy != NULL && count > 0; copy = copy->next)
        keep_in(copy, first, count);
}

/* Begins at the end, since updates begin at the beginning. */
void variables_copy_complete(struct variables_copy *copy)
{
    for (int64_t i = copy->segments - 1; i >= 0; i--)
        (void)copy_segment(copy, i);
    for (int64_t i = 0; i < copy->segments; i++)
        await_segment(copy, i);
}

/* Sends a segment from its place, unless an update has forced a copy; no update can write to it
 * meanwhile. A segment that was sent need not be copied. */
static size_t give_segment(struct variables_copy *copy, int64_t number, size_t offset, size_t length, struct link *link)
{
    int expected = SEGMENT_OUT;
    bool is_in_place = atomic_compare_exchange_strong(&copy->states[number], &expected, SEGMENT_UNDER_WAY);
    if (expected == SEGMENT_AHEAD)
        return BULK_CONNECTION_LATER;
    if (!is_in_place)
        await_segment(copy, number);
    const float *from = is_in_place ? copy->from[0] : own_array(copy, 0);
    struct iovec part = {(unsigned char *)from + offset, length};
    size_t given = link_write(link, &part, 1);
    if (is_in_place)
        atomic_store(&copy->states[number], given == length ? SEGMENT_COPIED : SEGMENT_OUT);
    return given;
}

size_t variables_copy_give(void *context, size_t offset, struct link *link)
{
    struct variables_copy *copy = context;
    const size_t segment = (size_t)SEGMENT_ELEMENTS * sizeof(float);
    const size_t end = (offset / segment + 1) * segment, all = (size_t)copy->values.elements * sizeof(float);
    return give_segment(copy, (int64_t)(offset / segment), offset, (end < all ? end : all) - offset, link);
}

/* ---------------------------------------------------------------- life cycle */

/* Allocates memory once, since a server's values keep their size. Pages are allocated at the first
 * write, mostly on the other thread. */
static int reserve(struct variables_copy *copy, const struct variables *variables, unsigned arrays, struct error *error)
{
    size_t bytes = ((size_t)variables->elements * arrays + 1) * sizeof(float);
    if (copy->memory != NULL)
        return 0;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return error_set(
            error, ERROR_NO_SPACE,
            "not enough memory for a copy of this ps's parameters and slots (%zu bytes); raise its memory limit",
            bytes);
    copy->memory = memory;
    copy->bytes = bytes;
    copy->segments = count_segments(variables->elements);
    copy->states = memory_allocate((size_t)copy->segments + 1, sizeof *copy->states);
    return 0;
}

static int begin(struct variables_copy *copy, struct variables *variables, enum variables_part part,
                 enum segment_state state, struct error *error)
{
    unsigned slots = part == VARIABLES_PARAMETERS ? 0 : variables->slot_count;
    if (reserve(copy, variables, 1 + slots, error) < 0)
        return -1;
    struct ticket_set applied = copy->values.applied;
    ticket_set_copy(&applied, &variables->applied);
    copy->values = *variables;
    copy->values.applied = applied;
    copy->values.copies = NULL;
    copy->values.slot_count = slots;
    copy->values.parameters = copy->memory;
    copy->from[0] = variables->parameters;
    for (unsigned i = 0; i < slots; i++) {
        copy->values.slots[i] = copy->memory + (int64_t)(i + 1) * variables->elements;
        copy->from[1 + i] = variables->slots[i];
    }
    for (int64_t i = 0; i < copy->segments; i++)
        atomic_store(&copy->states[i], state);
    copy->next = variables->copies;
    variables->copies = copy;
    return 0;
}

int variables_copy_begin(struct variables_copy *copy, struct variables *variables, enum variables_part part,
                         struct error *error)
{
    return begin(copy, variables, part, SEGMENT_OUT, error);
}

int variables_copy_expect(struct variables_copy *copy, struct variables *variables, enum variables_part part,
                          struct error *error)
{
    copy->reached = 0;
    return begin(copy, variables, part, SEGMENT_AHEAD, error);
}

void variables_copy_reach(struct variables_copy *copy, int64_t end)
{
    int64_t whole = end == copy->values.elements ? copy->segments : end / SEGMENT_ELEMENTS;
    for (; copy->reached < whole; copy->reached++)
        atomic_store(&copy->states[copy->reached], SEGMENT_OUT);
}

void variables_copy_end(struct variables_copy *copy, struct variables *variables)
{
    struct variables_copy **place = &variables->copies;
    while (*place != NULL && *place != copy)
        place = &(*place)->next;
    if (*place == copy)
        *place = copy->next;
}

void variables_copy_release(struct variables_copy *copy)
{
    if (copy->memory != NULL)
        munmap(copy->memory, copy->bytes);
    free(copy->states);
    ticket_set_release(&copy->values.applied);
    *copy = (struct variables_copy){0};
}
