/* SPDX-License-Identifier: Apache-2.0
 *
 * What a save costs the training (the copy), and how fast the background writes,
 * for states of the size of LeNet with AdamW and of 400 MB, in TMPDIR or /tmp.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/checkpoint/checkpoint.h"

#define ROUNDS 7
#define TENSORS 12

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

static void fill(struct safetensors_tensor tensors[TENSORS], char names[TENSORS][16], float *values, size_t elements)
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

static int save_rounds(struct checkpoint_store *store, const struct safetensors_tensor *tensors, double *stalls,
                       double *writes, struct error *error)
{
    for (int round = 0; round < ROUNDS; round++) {
        const struct manifest manifest = {.step = round + 1, .workers = 1, .logical_shards = 1};
        enum checkpoint_start start;
        if (checkpoint_save(store, &manifest, tensors, TENSORS, &start, error) < 0 || checkpoint_wait(store, error) < 0)
            return -1;
        struct checkpoint_counts counts = checkpoint_store_counts(store);
        stalls[round] = (double)counts.last_stall_ns / 1e6;
        writes[round] = (double)counts.last_bytes / 1e6 / ((double)counts.last_save_ns / 1e9);
    }
    return 0;
}

static int measure(const char *label, size_t elements, struct error *error)
{
    SCOPED_FREE float *values = memory_allocate(elements, sizeof *values);
    struct safetensors_tensor tensors[TENSORS];
    char names[TENSORS][16];
    double stalls[ROUNDS], writes[ROUNDS];
    for (size_t i = 0; i < elements; i++)
        values[i] = (float)i;
    fill(tensors, names, values, elements);
    SCOPED_FREE char *directory =
        memory_format("%s/coxswain-bench-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (mkdtemp(directory) == NULL)
        return error_set_errno(error, "cannot create %s", directory);
    const struct checkpoint_options options = {.directory = directory, .job_uid = "", .keep = 2};
    struct checkpoint_store *store;
    int result = checkpoint_store_open(&options, &store, error);
    if (result == 0) {
        result = checkpoint_store_begin(store, false, error);
        if (result == 0)
            result = save_rounds(store, tensors, stalls, writes, error);
        checkpoint_store_free(store);
    }
    nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (result < 0)
        return -1;
    double first = stalls[0];
    qsort(stalls, ROUNDS, sizeof stalls[0], compare);
    qsort(writes, ROUNDS, sizeof writes[0], compare);
    printf("checkpoint %-12s %8.1f MB  stall %7.2f ms median, %7.2f ms first, %7.2f ms worst;  write+sync+verify %6.0f "
           "MB/s\n",
           label, (double)(elements * sizeof *values) / 1e6, stalls[ROUNDS / 2], first, stalls[ROUNDS - 1],
           writes[ROUNDS / 2]);
    return 0;
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
