/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory.h"
#include "common/philox.h"
#include "common/vectorised.h"
#include "worker/data/dataset_format.h"

#define DEFAULT_EXAMPLES 10000

/* Keys of the patterns and of the noise upon them. */
enum { KEY_PATTERN = 1, KEY_NOISE = 2 };

/* As many values are drawn at a time as keep the processor's vectors busy. */
#define RUN 32

/* The first word of philox(key, element + j, example) as a number in [0, 1), for each j. Each word by itself in 32 bits: a product
 * of 64 would be taken apart. */
static inline __attribute__((always_inline)) void draw(uint64_t key, uint64_t element, uint64_t example, float *uniform)
{
    uint32_t a[RUN], b[RUN], c[RUN], d[RUN], key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
    for (unsigned j = 0; j < RUN; j++) {
        a[j] = (uint32_t)(element + j), b[j] = (uint32_t)((element + j) >> 32);
        c[j] = (uint32_t)example, d[j] = (uint32_t)(example >> 32);
    }
    for (int round = 0; round < 10; round++, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u)
        for (unsigned j = 0; j < RUN; j++) {
            uint32_t first = (uint32_t)((uint64_t)0xCD9E8D57u * c[j] >> 32) ^ b[j] ^ key0;
            uint32_t third = (uint32_t)((uint64_t)0xD2511F53u * a[j] >> 32) ^ d[j] ^ key1;
            b[j] = 0xCD9E8D57u * c[j], d[j] = 0xD2511F53u * a[j];
            a[j] = first, c[j] = third;
        }
    for (unsigned j = 0; j < RUN; j++)
        uniform[j] = (float)(int32_t)(a[j] >> 8) / 16777216.0f;
}

static int synthetic_open(const struct dataset_source *source, struct dataset **ret_dataset, struct error *error)
{
    int64_t count = source->spec->examples == FIELD_UNSET ? DEFAULT_EXAMPLES : source->spec->examples;
    if (count < 1)
        return error_set(error, ERROR_INVALID, "data.examples: %lld is below 1", (long long)count);
    struct dataset *dataset = memory_allocate(1, sizeof *dataset);
    dataset->kind = &dataset_synthetic;
    dataset->format = *source->format;
    dataset->count = count;
    snprintf(dataset->description, sizeof dataset->description, "synthetic examples");
    *ret_dataset = dataset;
    return 0;
}

static void synthetic_free(struct dataset *dataset)
{
    (void)dataset;
}

/* Counts on by a step that the example draws: what comes next can be learned from the two tokens before. */
static void read_tokens(const struct example_format *format, int64_t index, int32_t *tokens, int32_t *next)
{
    struct philox_words words = philox(KEY_PATTERN, 0, (uint64_t)index);
    int64_t start = words.word[0] % (uint64_t)format->classes, step = 1 + words.word[1] % 7;
    for (int64_t i = 0; i < format->input_elements; i++) {
        tokens[i] = (int32_t)((start + i * step) % format->classes);
        next[i] = (int32_t)((start + (i + 1) * step) % format->classes);
    }
}

/* Half the class's pattern, half noise. */
VECTORISED static void read_values(int64_t elements, uint64_t index, uint64_t class, float *values)
{
    for (int64_t i = 0; i < elements; i += RUN) {
        float pattern[RUN], noise[RUN];
        draw(KEY_PATTERN, (uint64_t)i, class, pattern);
        draw(KEY_NOISE, (uint64_t)i, index, noise);
        for (int64_t j = 0; j < RUN && i + j < elements; j++)
            values[i + j] = 0.5f * pattern[j] + 0.5f * noise[j];
    }
}

static int synthetic_read(const struct dataset *dataset, int64_t index, void *input, void *target, struct error *error)
{
    (void)error;
    const struct example_format *format = &dataset->format;
    if (format->input_type == ELEMENT_INT32) {
        read_tokens(format, index, input, target);
        return 0;
    }
    uint64_t classes = format->classes > 0 ? (uint64_t)format->classes : 10;
    uint64_t class = philox(KEY_NOISE, UINT64_MAX, (uint64_t)index).word[0] % classes;
    read_values(format->input_elements, (uint64_t)index, class, input);
    for (int64_t i = 0; i < format->target_elements; i++)
        if (format->target_type == ELEMENT_INT32)
            ((int32_t *)target)[i] = (int32_t) class;
        else
            ((float *)target)[i] = (float)class / (float)classes;
    return 0;
}

const struct dataset_kind dataset_synthetic = {.open = synthetic_open, .free = synthetic_free, .read = synthetic_read};
