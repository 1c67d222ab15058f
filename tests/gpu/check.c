/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/philox.h"
#include "worker/device/bfloat16.h"
#include "worker/device/float16.h"

static int failures;

void verdict(bool ok, const char *name, const char *format, ...)
{
    printf(ok ? "ok %s\n" : "not ok %s: ", name);
    if (!ok) {
        va_list arguments;
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        printf("\n");
        failures++;
    }
    fflush(stdout);
}

int verdicts_exit_status(void)
{
    return failures > 0;
}

void must(int result, const struct error *error)
{
    if (result == 0)
        return;
    printf("not ok gpu-test: %s\n", error->message);
    exit(1);
}

/* ---------------------------------------------------------------- sides */

void side_open(struct side *side, enum device_type type)
{
    struct error error = ERROR_INIT;
    *side = (struct side){.type = type};
    must(device_open(&(struct device_options){.type = type}, &side->device, &error), &error);
    must(device_stream_new(side->device, &side->stream, &error), &error);
}

void side_close(struct side *side)
{
    side_clear(side);
    device_stream_free(side->stream);
    device_close(side->device);
}

void side_clear(struct side *side)
{
    for (unsigned i = 0; i < side->buffer_count; i++)
        device_free(side->device, side->buffers[i]);
    side->buffer_count = side->output_count = 0;
}

static void *allocate(struct side *side, enum device_memory kind, int64_t bytes)
{
    struct error error = ERROR_INIT;
    void *memory = NULL;
    must(device_allocate(side->device, kind, (size_t)bytes, &memory, &error), &error);
    if (side->buffer_count == SIDE_BUFFERS_MAX)
        must(-1, &(struct error){.message = "a case has more buffers than SIDE_BUFFERS_MAX"});
    side->buffers[side->buffer_count++] = memory;
    return memory;
}

/* Copies through shared memory, as the worker always does. */
static void copy(struct side *side, void *to, const void *from, int64_t bytes)
{
    struct error error = ERROR_INIT;
    device_copy(side->stream, &(struct copy){bytes, from, to});
    must(device_stream_synchronise(side->stream, &error), &error);
}

void side_put(struct side *side, void *to, const void *from, int64_t bytes)
{
    struct error error = ERROR_INIT;
    void *shared = NULL;
    must(device_allocate(side->device, MEMORY_SHARED, (size_t)bytes, &shared, &error), &error);
    memcpy(shared, from, (size_t)bytes);
    copy(side, to, shared, bytes);
    device_free(side->device, shared);
}

void side_get(struct side *side, void *to, const void *from, int64_t bytes)
{
    struct error error = ERROR_INIT;
    void *shared = NULL;
    must(device_allocate(side->device, MEMORY_SHARED, (size_t)bytes, &shared, &error), &error);
    copy(side, shared, from, bytes);
    memcpy(to, shared, (size_t)bytes);
    device_free(side->device, shared);
}

#define SEEDS_MAX 128

/* Returns the first numbers of a seed. They are kept, since every case uses the same few seeds. */
static const float *first_numbers(int64_t count, uint32_t seed)
{
    static struct {
        float *numbers;
        int64_t count;
    } made[SEEDS_MAX];
    if (seed >= SEEDS_MAX)
        must(-1, &(struct error){.message = "a case has a seed beyond SEEDS_MAX"});
    if (made[seed].count < count) {
        made[seed].numbers = memory_resize(made[seed].numbers, (size_t)count, sizeof *made[seed].numbers);
        for (int64_t i = made[seed].count; i < count; i++)
            made[seed].numbers[i] = (float)(philox(seed, (uint64_t)i, 0).word[0] >> 8) / 8388608.0f - 1.0f;
        made[seed].count = count;
    }
    return made[seed].numbers;
}

static float *numbers(int64_t count, uint32_t seed)
{
    float *host = memory_allocate((size_t)count + 1, sizeof *host);
    if (count > 0)
        memcpy(host, first_numbers(count, seed), (size_t)count * sizeof *host);
    return host;
}

float *side_numbers(struct side *side, int64_t count, uint32_t seed)
{
    float *host = numbers(count, seed);
    float *memory = allocate(side, MEMORY_DEVICE, count * (int64_t)sizeof *host);
    side_put(side, memory, host, count * (int64_t)sizeof *host);
    free(host);
    return memory;
}

static float rounded(enum stored rounds, float x)
{
    return rounds == STORED_BFLOAT16 ? bfloat16_round(x) : rounds == STORED_FLOAT16 ? float16_round(x) : x;
}

/* Packs rounded numbers in place to two bytes each; unpack() does the reverse. */
static void pack(enum stored stored, float *host, int64_t count)
{
    uint16_t *to = (void *)host;
    for (int64_t i = 0; stored != STORED_FLOAT32 && i < count; i++) {
        uint32_t bits;
        memcpy(&bits, host + i, sizeof bits);
        uint16_t half = stored == STORED_FLOAT16 ? float16_pack(host[i]) : (uint16_t)(bits >> 16);
        memcpy(to + i, &half, sizeof half);
    }
}

static void unpack(enum stored stored, float *host, int64_t count)
{
    const uint16_t *from = (void *)host;
    for (int64_t i = count; stored != STORED_FLOAT32 && i-- > 0;) {
        uint16_t half;
        memcpy(&half, from + i, sizeof half);
        uint32_t bits = (uint32_t)half << 16;
        float value = float16_unpack(half);
        if (stored == STORED_BFLOAT16)
            memcpy(&value, &bits, sizeof value);
        host[i] = value;
    }
}

float *side_values(struct side *side, int64_t count, uint32_t seed)
{
    float *host = numbers(count, seed);
    for (int64_t i = 0; i < count; i++)
        host[i] = rounded(side->rounds, host[i]);
    pack(side->stored, host, count);
    float *memory = allocate(side, MEMORY_DEVICE, count * stored_bytes(side->stored));
    side_put(side, memory, host, count * stored_bytes(side->stored));
    free(host);
    return memory;
}

float *side_from(const struct side *side, float *values, int64_t element)
{
    return (void *)((char *)values + element * stored_bytes(side->stored));
}

int32_t *side_tokens(struct side *side, int64_t count, int64_t limit, uint32_t seed)
{
    int32_t *host = memory_allocate((size_t)count + 1, sizeof *host);
    for (int64_t i = 0; i < count; i++)
        host[i] = (int32_t)(philox(seed, (uint64_t)i, 0).word[0] % (uint32_t)limit);
    int32_t *memory = allocate(side, MEMORY_DEVICE, count * (int64_t)sizeof *host);
    side_put(side, memory, host, count * (int64_t)sizeof *host);
    free(host);
    return memory;
}

double *side_workspace(struct side *side, int64_t count)
{
    return allocate(side, MEMORY_DEVICE, count * (int64_t)sizeof(double));
}

static void *add_output(struct side *side, enum result_kind kind, int64_t count, void *memory)
{
    side->outputs[side->output_count++] = (struct output){kind, count, memory};
    return memory;
}

float *side_output(struct side *side, int64_t count)
{
    return add_output(side, RESULT_FLOATS, count, side_numbers(side, count, 77 + side->output_count));
}

float *side_output_values(struct side *side, int64_t count)
{
    return add_output(side, RESULT_VALUES, count, side_values(side, count, 77 + side->output_count));
}

double *side_output_doubles(struct side *side, int64_t count)
{
    return add_output(side, RESULT_DOUBLES, count, allocate(side, MEMORY_SHARED, count * (int64_t)sizeof(double)));
}

struct loss_sums *side_output_loss(struct side *side)
{
    return add_output(side, RESULT_LOSS, 1, allocate(side, MEMORY_SHARED, sizeof(struct loss_sums)));
}

/* ---------------------------------------------------------------- comparing */

/* One unit in the last place, because sums may be rounded twice. */
static const double last_place[] = {[STORED_FLOAT32] = 0, [STORED_BFLOAT16] = 1.0 / 256, [STORED_FLOAT16] = 1.0 / 2048};

double relative_error(const float *found, const float *expected, int64_t count)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = (double)found[i] - (double)expected[i];
        difference += d * d;
        norm += (double)expected[i] * (double)expected[i];
    }
    return norm > 0 ? sqrt(difference / norm) : sqrt(difference);
}

float *side_read(struct side *side, const struct output *output)
{
    float *host = memory_allocate((size_t)output->count + 1, sizeof *host);
    bool values = output->kind == RESULT_VALUES;
    enum stored stored = values ? side->stored : STORED_FLOAT32;
    side_get(side, host, output->memory, output->count * stored_bytes(stored));
    unpack(stored, host, output->count);
    for (int64_t i = 0; values && i < output->count; i++)
        host[i] = rounded(side->rounds, host[i]);
    return host;
}

static double error_of_output(struct side *found_side, const struct output *found, struct side *expected_side,
                              const struct output *expected, double forgiven)
{
    if (found->kind == RESULT_LOSS) {
        const struct loss_sums *a = found->memory, *b = expected->memory;
        bool counts = a->correct == b->correct && a->count == b->count;
        return counts ? fabs(a->loss - b->loss) / (1e-12 + fabs(b->loss)) : INFINITY;
    }
    if (found->kind == RESULT_DOUBLES) {
        double worst = 0;
        for (int64_t i = 0; i < found->count; i++) {
            double a = ((double *)found->memory)[i], b = ((double *)expected->memory)[i];
            worst = fmax(worst, fabs(a - b) / (1e-12 + fabs(b)));
        }
        return worst;
    }
    float *a = side_read(found_side, found), *b = side_read(expected_side, expected);
    bool same = memcmp(a, b, (size_t)found->count * sizeof *a) == 0;
    double result = same ? 0 : relative_error(a, b, found->count);
    if (found->kind == RESULT_VALUES && found_side->rounds && result <= forgiven)
        result = 0;
    free(a);
    free(b);
    return result;
}

/* Returns the largest error of all outputs, without rounded values whose error is at most `forgiven`. NaN counts as the largest. */
static double worst_error(struct side *found, struct side *expected, double forgiven)
{
    double worst = 0;
    for (unsigned i = 0; i < found->output_count; i++) {
        double e = error_of_output(found, &found->outputs[i], expected, &expected->outputs[i], forgiven);
        worst = e <= worst ? worst : e;
    }
    return worst;
}

static void run(struct side *side, side_case *function, const int64_t *sizes)
{
    struct error error = ERROR_INIT;
    function(side, sizes);
    must(device_stream_synchronise(side->stream, &error), &error);
}

void compare_sides(struct side *cpu, struct side *gpu, const char *name, side_case *function, const int64_t *sizes,
                   double tolerance)
{
    static const char *const words[] = {
        [STORED_FLOAT32] = "", [STORED_BFLOAT16] = " bfloat16", [STORED_FLOAT16] = " float16"};
    char text[128];
    snprintf(text, sizeof text, "%s%s %lld %lld %lld %lld", name, words[gpu->rounds], (long long)sizes[0],
             (long long)sizes[1], (long long)sizes[2], (long long)sizes[3]);
    run(cpu, function, sizes);
    run(gpu, function, sizes);
    struct side again = *gpu;
    again.buffer_count = again.output_count = 0;
    run(&again, function, sizes);
    double error = worst_error(gpu, cpu, last_place[gpu->rounds]), drift = worst_error(&again, gpu, 0);
    verdict(error <= tolerance && drift == 0, text, "off by %g (allowed %g); a second run by %g", error, tolerance,
            drift);
    side_clear(&again);
    side_clear(gpu);
    side_clear(cpu);
}
