/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights at the start. 124 million normal numbers take a processor four seconds, so all of them draw: a number depends on
 * its place alone.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/philox.h"
#include "worker/device/device.h"
#include "worker/model/graph.h"

#define PIECE 65536 /* elements that a thread takes at once */
#define PIECES_A_THREAD 8
#define THREADS_MAX 32

/* (0, 1]: 32 random bits, never 0, so that the logarithm is finite. */
static double unit(uint32_t word)
{
    return ((double)word + 1.0) / 4294967296.0;
}

/* Computes standard normal numbers for (seed, tensor, element) by Box and Muller 1958, from two
 * words of a Philox block, which serves an even element and the odd one after it. */
struct pair {
    double even, odd;
};
static struct pair normal_pair(uint64_t seed, uint64_t tensor, uint64_t block)
{
    struct philox_words words = philox(seed, block, tensor);
    double radius = sqrt(-2.0 * log(unit(words.word[0]))), angle = 6.283185307179586 * unit(words.word[1]);
    return (struct pair){radius * cos(angle), radius * sin(angle)};
}

/* Elements of the tensor from `first` on, to `to`. */
static void draw_normal(const struct parameter_tensor *tensor, uint64_t seed, int64_t first, int64_t count, float *to)
{
    const double deviation = (double)tensor->deviation;
    for (int64_t element = first; element < first + count;) {
        struct pair pair = normal_pair(seed, tensor->number, (uint64_t)element / 2);
        if (element % 2 == 0)
            to[element++ - first] = (float)(deviation * pair.even);
        if (element < first + count)
            to[element++ - first] = (float)(deviation * pair.odd);
    }
}

static void draw_values(const struct parameter_tensor *tensor, uint64_t seed, int64_t first, int64_t count, float *to)
{
    if (tensor->start == START_NORMAL) {
        draw_normal(tensor, seed, first, count, to);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        to[i] = tensor->start == START_ONE ? 1.0f : 0.0f;
}

struct drawing {
    const struct parameter_layout *layout;
    uint64_t seed;
    float *parameters;
    atomic_llong next; /* piece */
};

static int64_t pieces_of(const struct parameter_tensor *tensor)
{
    return (tensor->elements + PIECE - 1) / PIECE;
}

static void draw_piece(const struct drawing *drawing, const struct parameter_tensor *tensor, int64_t piece)
{
    int64_t skipped = tensor->shape[0] > 0 ? tensor->first_row * (tensor->elements / tensor->shape[0]) : 0;
    int64_t begin = piece * PIECE, left = tensor->elements - begin;
    draw_values(tensor, drawing->seed, skipped + begin, left < PIECE ? left : PIECE,
                drawing->parameters + tensor->offset + begin);
}

/* Takes pieces, which are numbered over all tensors, as long as there are any. */
static void *draw(void *context)
{
    struct drawing *drawing = context;
    int64_t piece = atomic_fetch_add(&drawing->next, 1), before = 0;
    for (unsigned t = 0; t < drawing->layout->tensor_count; t++) {
        const struct parameter_tensor *tensor = &drawing->layout->tensors[t];
        for (; piece < before + pieces_of(tensor); piece = atomic_fetch_add(&drawing->next, 1))
            draw_piece(drawing, tensor, piece - before);
        before += pieces_of(tensor);
    }
    return NULL;
}

static int64_t threads_for(const struct parameter_layout *layout)
{
    int64_t pieces = 0, most = device_available_cpus();
    for (unsigned t = 0; t < layout->tensor_count; t++)
        pieces += pieces_of(&layout->tensors[t]);
    most = most < THREADS_MAX ? most : THREADS_MAX;
    return pieces / PIECES_A_THREAD < most ? pieces / PIECES_A_THREAD : most;
}

void graph_initialise(const struct parameter_layout *layout, uint64_t seed, float *parameters)
{
    struct drawing drawing = {.layout = layout, .seed = seed, .parameters = parameters};
    pthread_t helpers[THREADS_MAX];
    int64_t threads = threads_for(layout), started = 0;
    while (started + 1 < threads && pthread_create(&helpers[started], NULL, draw, &drawing) == 0)
        started++;
    (void)draw(&drawing);
    for (int64_t i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
}
