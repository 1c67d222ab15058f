/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/preflight.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/comm/transfer.h"
#include "worker/device/device.h"

#define SIDE 256               /* of the matrices */
#define PRODUCTS 32            /* repetitions at most */
#define DEVICE_NS 1000000000LL /* how long the products may take, and how long the copies */
#define COPIES 8
#define COPY_BYTES ((size_t)32 << 20)
#define PIECE_BYTES ((size_t)4 << 20)
#define LINK_BYTES ((size_t)4 << 20)
#define LINK_ROUNDS 5
#define CHANNEL_PREFLIGHT 64900 /* beside those of the strategies (pipeline_parts.h) */
#define FAULT_SLEEP_NS 50000000L

/* ---- products */

/* Whole numbers from -127 to 127, which TensorFloat-32 and bfloat16 represent, too. The sum of SIDE products is below 2^24. */
static float element(unsigned seed, unsigned row, unsigned column)
{
    unsigned mixed = (seed * 7919U + row * 31U + column * 17U + 1U) * 2654435761U;
    return (float)((int)((mixed >> 12) % 255U) - 127);
}

/* The host's are MEMORY_SHARED, the others in the device's own memory. */
struct matrices {
    float *host, *x, *weight, *bias, *y;
    float *expected;
};

static int allocate_matrices(struct device *device, struct matrices *matrices, struct error *error)
{
    size_t bytes = SIDE * SIDE * sizeof(float);
    matrices->expected = memory_allocate(SIDE * SIDE, sizeof(float));
    return device_allocate(device, MEMORY_SHARED, bytes, (void **)&matrices->host, error) < 0 ||
                   device_allocate(device, MEMORY_DEVICE, bytes, (void **)&matrices->x, error) < 0 ||
                   device_allocate(device, MEMORY_DEVICE, bytes, (void **)&matrices->weight, error) < 0 ||
                   device_allocate(device, MEMORY_DEVICE, SIDE * sizeof(float), (void **)&matrices->bias, error) < 0 ||
                   device_allocate(device, MEMORY_DEVICE, bytes, (void **)&matrices->y, error) < 0
               ? -1
               : 0;
}

static void free_matrices(struct device *device, struct matrices *matrices)
{
    device_free(device, matrices->host);
    device_free(device, matrices->x);
    device_free(device, matrices->weight);
    device_free(device, matrices->bias);
    device_free(device, matrices->y);
    free(matrices->expected);
}

static int copy(struct device_stream *stream, const void *from, void *to, size_t bytes, struct error *error)
{
    device_copy(stream, &(struct copy){.bytes = (int64_t)bytes, .from = from, .to = to});
    return device_stream_synchronise(stream, error);
}

/* expected[i][j] = sum of x[i][k] weight[j][k] */
static int fill_matrices(struct device_stream *stream, struct matrices *matrices, struct error *error)
{
    float *const there[] = {matrices->x, matrices->weight};
    for (unsigned which = 0; which < 2; which++) {
        for (unsigned i = 0; i < SIDE * SIDE; i++)
            matrices->host[i] = element(which, i / SIDE, i % SIDE);
        if (copy(stream, matrices->host, there[which], SIDE * SIDE * sizeof(float), error) < 0)
            return -1;
    }
    for (unsigned i = 0; i < SIDE; i++)
        for (unsigned j = 0; j < SIDE; j++) {
            float sum = 0;
            for (unsigned k = 0; k < SIDE; k++)
                sum += element(0, i, k) * element(1, j, k); /* exact */
            matrices->expected[i * SIDE + j] = sum;
        }
    return 0;
}

static int multiply(struct device_stream *stream, const struct matrices *matrices, struct preflight_figures *figures,
                    struct error *error)
{
    const struct dense_forward product = {.m = SIDE,
                                          .n = SIDE,
                                          .k = SIDE,
                                          .x = matrices->x,
                                          .weight = matrices->weight,
                                          .bias = matrices->bias,
                                          .y = matrices->y};
    int64_t end_ns = clock_monotonic_ns() + DEVICE_NS;
    for (int i = 0; i < PRODUCTS && (i == 0 || clock_monotonic_ns() < end_ns); i++) {
        device_dense_forward(stream, &product);
        if (copy(stream, matrices->y, matrices->host, SIDE * SIDE * sizeof(float), error) < 0)
            return -1;
        for (unsigned at = 0; at < SIDE * SIDE; at++)
            figures->wrong_products += matrices->host[at] != matrices->expected[at];
    }
    return 0;
}

static int check_products(struct device *device, struct device_stream *stream, struct preflight_figures *figures,
                          struct error *error)
{
    struct matrices matrices = {0};
    int result = allocate_matrices(device, &matrices, error);
    if (result == 0)
        result = fill_matrices(stream, &matrices, error);
    if (result == 0)
        result = multiply(stream, &matrices, figures, error);
    free_matrices(device, &matrices);
    return result;
}

/* ---- copies */

static uint64_t pattern(size_t at, int pass)
{
    uint64_t word = (at + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return pass % 2 == 0 ? word : ~word;
}

static size_t count_wrong_bytes(const uint64_t *words, size_t count, int pass)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        for (uint64_t bits = words[i] ^ pattern(i, pass); bits != 0; bits >>= 8)
            wrong += (bits & 0xff) != 0;
    return wrong;
}

/* Copies in pieces, and keeps the best rate: another program seldom takes the processor away in the middle of each of them. */
static int copy_pieces(struct device_stream *stream, const char *from, char *to, bool slowly, double *rate,
                       struct error *error)
{
    for (size_t at = 0; at < COPY_BYTES; at += PIECE_BYTES) {
        int64_t begun_ns = clock_monotonic_ns();
        if (slowly)
            nanosleep(&(struct timespec){.tv_nsec = FAULT_SLEEP_NS}, NULL);
        if (copy(stream, from + at, to + at, PIECE_BYTES, error) < 0)
            return -1;
        int64_t took_ns = clock_monotonic_ns() - begun_ns;
        *rate = fmax(*rate, (double)PIECE_BYTES / ((double)(took_ns > 0 ? took_ns : 1) / 1e9));
    }
    return 0;
}

/* There and back, each pass with the inverse pattern of the one before. */
static int copy_pattern(struct device_stream *stream, uint64_t *host, void *there, bool slowly,
                        struct preflight_figures *figures, struct error *error)
{
    size_t words = COPY_BYTES / sizeof *host;
    int64_t end_ns = clock_monotonic_ns() + DEVICE_NS;
    double best = 0;
    for (int pass = 0; pass < COPIES && (pass < 2 || clock_monotonic_ns() < end_ns); pass++) {
        for (size_t i = 0; i < words; i++)
            host[i] = pattern(i, pass);
        if (copy_pieces(stream, (char *)host, there, slowly, &best, error) < 0)
            return -1;
        memset(host, 0, COPY_BYTES);
        if (copy(stream, there, host, COPY_BYTES, error) < 0)
            return -1;
        figures->wrong_bytes += (double)count_wrong_bytes(host, words, pass);
    }
    figures->copy_rate = figures->copy_rate > 0 ? fmin(figures->copy_rate, best) : best;
    return 0;
}

/* Too little memory is no fault: the copies are left out. */
static int check_copies(struct device *device, struct device_stream *stream, bool slowly,
                        struct preflight_figures *figures, struct error *error)
{
    void *host = NULL, *there = NULL;
    int result = 0;
    if (device_allocate(device, MEMORY_SHARED, COPY_BYTES, &host, NULL) == 0 &&
        device_allocate(device, MEMORY_DEVICE, COPY_BYTES, &there, NULL) == 0)
        result = copy_pattern(stream, host, there, slowly, figures, error);
    device_free(device, there);
    device_free(device, host);
    return result;
}

int preflight_measure(const struct strategy_device *devices, unsigned device_count, const char *fault,
                      struct preflight_figures *ret_figures, struct error *error)
{
    struct preflight_figures figures = {0};
    bool slowly = fault && strcmp(fault, "copies") == 0;
    for (unsigned i = 0; i < device_count; i++) {
        struct device_stream *stream;
        if (device_stream_new(devices[i].device, &stream, error) < 0)
            return -1;
        int result = check_products(devices[i].device, stream, &figures, error);
        if (result == 0)
            result = check_copies(devices[i].device, stream, slowly, &figures, error);
        device_stream_free(stream);
        if (result < 0)
            return error_wrap(error, "the pre-flight check");
    }
    figures.wrong_products += fault && strcmp(fault, "product") == 0;
    figures.wrong_bytes += fault && strcmp(fault, "memory") == 0;
    *ret_figures = figures;
    return 0;
}

/* ---- connections */

struct directions {
    unsigned char *bytes; /* sent, received */
    struct transfer sent;
};

/* Sends to one neighbour and receives from the other, so that every rank sends and receives once. Keeps the best rate. */
static int exchange(struct collective *group, unsigned to, unsigned from, struct directions *directions, double *rate,
                    struct error *error)
{
    if (collective_barrier(group, error) < 0)
        return -1;
    int64_t begun_ns = clock_monotonic_ns();
    transfer_send_start(group, to, CHANNEL_PREFLIGHT, directions->bytes, LINK_BYTES, &directions->sent);
    int received = transfer_receive(group, from, CHANNEL_PREFLIGHT, directions->bytes + LINK_BYTES, LINK_BYTES, error);
    int64_t took_ns = clock_monotonic_ns() - begun_ns;
    int sent = transfer_wait(group, &directions->sent, received < 0 ? NULL : error);
    if (received < 0 || sent < 0)
        return -1;
    if (!collective_shares_memory(group, from))
        *rate = fmax(*rate, (double)LINK_BYTES / ((double)(took_ns > 0 ? took_ns : 1) / 1e9));
    return 0;
}

int preflight_measure_links(struct collective *group, unsigned rank, unsigned size, struct preflight_figures *figures,
                            struct error *error)
{
    struct directions directions = {0};
    unsigned previous = (rank + size - 1) % size, next = (rank + 1) % size;
    int result = 0;
    if (group == NULL || size < 3)
        return 0;
    directions.bytes = memory_allocate(2, LINK_BYTES);
    collective_set_label(group, "the pre-flight check");
    for (int round = 0; round < LINK_ROUNDS && result == 0; round++) {
        result = exchange(group, next, previous, &directions, &figures->from_previous, error);
        if (result == 0)
            result = exchange(group, previous, next, &directions, &figures->from_next, error);
    }
    transfer_release(&directions.sent);
    free(directions.bytes);
    return result;
}

/* ---- the verdict */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The rates that a rank is judged by. */
enum rate_kind { RATE_COPIES, RATE_RECEIVED, RATE_SENT, RATE_KINDS };
static const char *const rate_words[RATE_KINDS] = {"copies memory", "receives", "sends"};

static double rate_of(const struct preflight_figures *figures, unsigned size, unsigned rank, enum rate_kind kind)
{
    const struct preflight_figures *own = &figures[rank];
    switch (kind) {
    case RATE_RECEIVED:
        return fmax(own->from_previous, own->from_next);
    case RATE_SENT:
        return fmax(figures[(rank + 1) % size].from_previous, figures[(rank + size - 1) % size].from_next);
    default:
        return own->copy_rate;
    }
}

/* The median of the rates that were measured; 0: fewer than three ranks have measured one. */
static double median_rate(const struct preflight_figures *figures, unsigned size, enum rate_kind kind)
{
    double rates[CREW_SIZE_MAX] = {0};
    unsigned count = 0;
    for (unsigned rank = 0; rank < size; rank++) {
        double rate = rate_of(figures, size, rank, kind);
        if (rate > 0)
            rates[count++] = rate;
    }
    qsort(rates, count, sizeof *rates, compare);
    return count < 3 ? 0 : rates[count / 2];
}

static bool is_slow(const struct preflight_figures *figures, unsigned size, unsigned rank, enum rate_kind kind)
{
    double rate = rate_of(figures, size, rank, kind);
    return rate > 0 && rate < median_rate(figures, size, kind) / PREFLIGHT_SHARE;
}

/* A rank whose both neighbours receive slowly seems to send slowly, and the other way round. */
static bool neighbours_explain(const struct preflight_figures *figures, unsigned size, unsigned rank,
                               enum rate_kind kind)
{
    enum rate_kind theirs = kind == RATE_SENT ? RATE_RECEIVED : RATE_SENT;
    return kind != RATE_COPIES && is_slow(figures, size, (rank + 1) % size, theirs) &&
           is_slow(figures, size, (rank + size - 1) % size, theirs);
}

bool preflight_judge(const struct preflight_figures *figures, unsigned size, unsigned rank,
                     char text[PREFLIGHT_TEXT_MAX])
{
    const struct preflight_figures *own = &figures[rank];
    if (own->wrong_products > 0) {
        snprintf(text, PREFLIGHT_TEXT_MAX, "computes wrong values: %.0f elements of products whose result is known",
                 own->wrong_products);
        return true;
    }
    if (own->wrong_bytes > 0) {
        snprintf(text, PREFLIGHT_TEXT_MAX, "has faulty memory: %.0f bytes read differ from what was written",
                 own->wrong_bytes);
        return true;
    }
    for (enum rate_kind kind = 0; kind < RATE_KINDS; kind++) {
        if (!is_slow(figures, size, rank, kind) || neighbours_explain(figures, size, rank, kind))
            continue;
        snprintf(text, PREFLIGHT_TEXT_MAX, "%s at %.0f MB/s, less than a quarter of the crew's median of %.0f MB/s",
                 rate_words[kind], rate_of(figures, size, rank, kind) / 1e6, median_rate(figures, size, kind) / 1e6);
        return true;
    }
    return false;
}
