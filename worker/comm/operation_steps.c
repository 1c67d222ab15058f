/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/operation_steps.h"

#include <string.h>

#include "common/memory.h"
#include "common/vectorised.h"

/* Parts start at cache lines. */
#define PART_ALIGNMENT 16

static size_t part_start(const struct operation *operation, unsigned part)
{
    if (part == operation->schedule->parts)
        return operation->elements;
    return operation->elements * part / operation->schedule->parts / PART_ALIGNMENT * PART_ALIGNMENT;
}

static size_t range_elements(const struct operation *operation, struct part_range range)
{
    return part_start(operation, range.end) - part_start(operation, range.first);
}

/* Returns the address of a range of the vector at `place`. */
static float *locate(const struct operation *operation, struct place place, struct part_range range)
{
    size_t start = part_start(operation, range.first);
    if (place.kind == PLACE_RESULT)
        return operation->result + start;
    if (place.kind == PLACE_CONTRIBUTION)
        return (float *)operation->contributions[place.index] + start;
    return operation->staging + operation->buffer_offsets[place.index] + start -
           part_start(operation, operation->schedule->buffers[place.index].first);
}

/* ---------------------------------------------------------------- beginning */

static void place_buffers(struct operation *operation)
{
    const struct schedule *schedule = operation->schedule;
    size_t needed = 0;
    operation->buffer_offsets =
        memory_resize(operation->buffer_offsets, schedule->buffer_count + 1, sizeof(*operation->buffer_offsets));
    for (unsigned i = 0; i < schedule->buffer_count; i++) {
        operation->buffer_offsets[i] = needed;
        needed += range_elements(operation, schedule->buffers[i]) + PART_ALIGNMENT;
    }
    if (needed <= operation->staging_elements)
        return;
    free(operation->staging);
    operation->staging = memory_allocate(needed, sizeof(float));
    operation->staging_elements = needed;
}

void operation_steps_begin(struct operation *operation, const struct schedule *schedule)
{
    operation->schedule = schedule;
    operation->step = operation->sends = operation->additions = 0;
    place_buffers(operation);
    operation->arrived = memory_resize(operation->arrived, schedule->receive_count + 1, sizeof(*operation->arrived));
    for (unsigned i = 0; i < schedule->receive_count; i++) {
        const struct schedule_frame *frame = &schedule->receives[i];
        operation->arrived[i] = range_elements(operation, frame->range) == 0;
        operation->awaiting[frame->rank] += !operation->arrived[i];
        operation->awaiting_total += !operation->arrived[i];
    }
}

/* ---------------------------------------------------------------- steps */

static void send_frames(struct operation *operation, operation_send *send, void *context)
{
    const struct schedule *schedule = operation->schedule;
    for (; operation->sends < schedule->send_count && schedule->sends[operation->sends].step == operation->step;
         operation->sends++) {
        const struct schedule_frame *frame = &schedule->sends[operation->sends];
        size_t elements = range_elements(operation, frame->range);
        if (elements > 0)
            operation_send_frame(operation, frame->rank, FRAME_CONTRIBUTION, frame->number,
                                 locate(operation, frame->place, frame->range), elements * sizeof(float), send,
                                 context);
    }
}

static bool has_received(const struct operation *operation)
{
    const struct schedule *schedule = operation->schedule;
    for (unsigned i = 0; i < schedule->receive_count; i++)
        if (schedule->receives[i].step == operation->step && !operation->arrived[i])
            return false;
    return true;
}

static bool has_additions(const struct operation *operation)
{
    const struct schedule *schedule = operation->schedule;
    return operation->additions < schedule->addition_count &&
           schedule->additions[operation->additions].step == operation->step;
}

VECTORISED static void add_vectors(const float *left, const float *right, float *into, size_t elements)
{
    for (size_t i = 0; i < elements; i++)
        into[i] = left[i] + right[i];
}

static void add(struct operation *operation)
{
    for (; has_additions(operation); operation->additions++) {
        const struct schedule_addition *addition = &operation->schedule->additions[operation->additions];
        float *into = locate(operation, addition->into, addition->range);
        const float *left = locate(operation, addition->left, addition->range);
        const float *right = locate(operation, addition->right, addition->range);
        add_vectors(left, right, into, range_elements(operation, addition->range));
    }
}

void operation_steps_advance(struct operation *operation, operation_send *send, void *context)
{
    while (operation->step < operation->schedule->steps) {
        send_frames(operation, send, context);
        /* Frames that are not sent yet may be read from where the sums are written. */
        if (!has_received(operation) || (has_additions(operation) && operation->unsent > 0))
            return;
        add(operation);
        operation->step++;
    }
    operation->combined = true;
}

/* ---------------------------------------------------------------- frames */

/* The receive that a frame is for; as many as there are when it is for none. */
static unsigned find_receive(const struct operation *operation, unsigned rank, const struct frame_header *header)
{
    const struct schedule *schedule = operation->schedule;
    unsigned i = 0;
    while (i < schedule->receive_count &&
           (schedule->receives[i].rank != rank || schedule->receives[i].number != header->part))
        i++;
    return i;
}

void *operation_steps_destination(const struct operation *operation, unsigned rank, const struct frame_header *header)
{
    unsigned index = find_receive(operation, rank, header);
    if (header->kind != FRAME_CONTRIBUTION || index == operation->schedule->receive_count || operation->arrived[index])
        return NULL;
    const struct schedule_frame *frame = &operation->schedule->receives[index];
    if (header->length != range_elements(operation, frame->range) * sizeof(float))
        return NULL;
    return locate(operation, frame->place, frame->range);
}

void operation_steps_received(struct operation *operation, unsigned rank, const struct frame_header *header,
                              operation_send *send, void *context)
{
    operation->arrived[find_receive(operation, rank, header)] = true;
    operation_steps_advance(operation, send, context);
}
