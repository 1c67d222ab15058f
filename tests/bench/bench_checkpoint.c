/* SPDX-License-Identifier: Apache-2.0
 *
 * What a save costs the training, and how fast the background writes, for states
 * of the size of LeNet with AdamW and of 400 MB, in TMPDIR or /tmp. After a save
 * comes the next step's work (matrix products, as many as a transformer with such
 * a state has for 512 tokens), then the fence: the wait is what the save and the
 * fence take of the caller, the slowdown is how much longer the products take
 * beside the copying and writing. Before each save as many bytes go to the same disk as plainly as can be, written and synced: the
 * background's rate is held against that one's. With BENCH_CHECKPOINT_S3 (the value of COXSWAIN_CHECKPOINT_S3) the saves end when they
 * are committed in that bucket (tests/s3/bench).
 */
#include <dnnl.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/file.h"

#define ROUNDS 7
#define TENSORS 12
#define TOKENS 512
#define SIDE 1024 /* of the products */

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *position)
{
    (void)status, (void)type, (void)position;
    return remove(path);
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void fill(struct safetensors_tensor tensors[TENSORS], char names[TENSORS][16], const float *values,
                 size_t elements)
{
    for (unsigned i = 0; i < TENSORS; i++) {
        snprintf(names[i], sizeof names[i], "tensor%u", i);
        size_t first = elements * i / TENSORS, end = elements * (i + 1) / TENSORS;
        tensors[i] = (struct safetensors_tensor){.name = names[i],
                                                 .dtype = SAFETENSORS_F32,
                                                 .shape = {(int64_t)(end - first)},
                                                 .rank = 1,
                                                 .data = values + first,
                                                 .bytes = (end - first) * sizeof *values};
    }
}

static void multiply(int times)
{
    static float left[SIDE * SIDE], right[SIDE * SIDE], product[SIDE * SIDE];
    for (int i = 0; i < times; i++)
        dnnl_sgemm('N', 'N', SIDE, SIDE, SIDE, 1, left, SIDE, right, SIDE, 0, product, SIDE);
}

/* A third of the state are parameters; each costs six operations a token, forwards and backwards. */
static int products_of_a_step(size_t elements)
{
    double operations = 6.0 * (double)elements / 3 * TOKENS;
    return 1 + (int)(operations / (2.0 * SIDE * SIDE * SIDE));
}

static double milliseconds_of(int products)
{
    int64_t started = clock_monotonic_ns();
    multiply(products);
    return (double)(clock_monotonic_ns() - started) / 1e6;
}

struct rounds {
    double waits[ROUNDS], alone[ROUNDS], beside[ROUNDS]; /* ms */
    double writes[ROUNDS], raw[ROUNDS], share[ROUNDS];   /* MB/s, MB/s, of the one in the other */
    double checks[ROUNDS];                               /* ms */
};

/* Measures the disk's write rate in MB/s. */
static int write_plainly(const char *directory, const void *bytes, size_t length, double *ret_rate, struct error *error)
{
    SCOPED_FREE char *path = file_path_join(directory, "raw");
    SCOPED_CLOSE int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int64_t started = clock_monotonic_ns();
    if (descriptor < 0)
        return error_set_errno(error, "cannot create %s", path);
    if (file_write_all(descriptor, bytes, length, error) < 0)
        return -1;
    if (fsync(descriptor) < 0)
        return error_set_errno(error, "cannot sync %s", path);
    *ret_rate = (double)length / 1e6 / ((double)(clock_monotonic_ns() - started) / 1e9);
    unlink(path);
    return 0;
}

static int save_rounds(struct checkpoint_store *store, const char *directory, const float *values, size_t elements,
                       struct rounds *rounds, struct error *error)
{
    int products = products_of_a_step(elements);
    struct safetensors_tensor tensors[TENSORS];
    char names[TENSORS][16];
    fill(tensors, names, values, elements);
    for (int round = 0; round < ROUNDS; round++) {
        const struct manifest manifest = {.step = round + 1, .workers = 1, .logical_shards = 1};
        enum checkpoint_start start;
        if (write_plainly(directory, values, elements * sizeof *values, &rounds->raw[round], error) < 0)
            return -1;
        rounds->alone[round] = milliseconds_of(products);
        if (checkpoint_save(store, &manifest, tensors, TENSORS, &start, error) < 0)
            return -1;
        rounds->beside[round] = milliseconds_of(products);
        checkpoint_fence(store);
        if (checkpoint_wait(store, error) < 0)
            return -1;
        struct checkpoint_counts counts = checkpoint_store_counts(store);
        rounds->waits[round] = (double)counts.last_stall_ns / 1e6;
        rounds->writes[round] = (double)counts.last_bytes / 1e6 / ((double)counts.last_save_ns / 1e9);
        rounds->checks[round] = (double)counts.last_check_ns / 1e6;
        rounds->share[round] = rounds->writes[round] / rounds->raw[round];
    }
    return 0;
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

static void print_rounds(const char *label, size_t bytes, struct rounds *rounds)
{
    double first = rounds->waits[0], wait = median(rounds->waits), alone = median(rounds->alone);
    double beside = median(rounds->beside);
    printf(
        "checkpoint %-12s %8.1f MB  wait %6.2f ms median, %6.2f first, %6.2f worst;  step %5.0f ms, %+5.0f ms beside "
        "the save (%+.0f %%);  copy+write+sync+commit %5.0f MB/s, %.2f of plain write+sync (%.0f MB/s); read back in "
        "%.0f ms\n",
        label, (double)bytes / 1e6, wait, first, rounds->waits[ROUNDS - 1], alone, beside - alone,
        100 * (beside / alone - 1), median(rounds->writes), median(rounds->share), median(rounds->raw),
        median(rounds->checks));
}

static int measure_in(const char *directory, const char *label, size_t elements, struct error *error)
{
    SCOPED_FREE float *values = memory_allocate(elements, sizeof *values);
    struct rounds rounds;
    for (size_t i = 0; i < elements; i++)
        values[i] = (float)i;
    const struct checkpoint_options options = {
        .directory = directory, .bucket = getenv("BENCH_CHECKPOINT_S3"), .job_uid = "", .keep = 2};
    struct checkpoint_store *store;
    if (checkpoint_store_open(&options, &store, error) < 0)
        return -1;
    int result = checkpoint_store_begin(store, false, error);
    checkpoint_expect(store, elements * sizeof *values);
    if (result == 0)
        result = save_rounds(store, directory, values, elements, &rounds, error);
    checkpoint_store_free(store);
    if (result == 0)
        print_rounds(label, elements * sizeof *values, &rounds);
    return result;
}

static int measure(const char *label, size_t elements, struct error *error)
{
    const char *temporary = getenv("TMPDIR");
    SCOPED_FREE char *directory = memory_format("%s/coxswain-bench-XXXXXX", temporary ? temporary : "/tmp");
    if (mkdtemp(directory) == NULL)
        return error_set_errno(error, "cannot create %s", directory);
    int result = measure_in(directory, label, elements, error);
    nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return result;
}

int main(void)
{
    struct error error = ERROR_INIT;
    if (measure("LeNet+AdamW", 3 * 450000, &error) < 0 || measure("400 MB", 100000000, &error) < 0) {
        fprintf(stderr, "bench_checkpoint: %s\n", error.message);
        return 1;
    }
    return 0;
}
