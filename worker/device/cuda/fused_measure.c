/* SPDX-License-Identifier: Apache-2.0
 *
 * Each algorithm is launched once to warm up and then several times in a row, and
 * the median counts. Their time is the GPU's: a slow host takes none off.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/device/cuda/cuda_failure.h"
#include "worker/device/cuda/fused_plan.h"

#define CANDIDATES_MAX 8
#define LAUNCHES 5
/* What all together may take; products that come later go by the heuristics. */
#define SEARCH_MS_MAX 2000.0
/* Another than the heuristics' has to be so much quicker: within that it is chance, and bits would follow it. */
#define CHANCE 0.98f

static int compare(const void *one, const void *other)
{
    const float a = *(const float *)one, b = *(const float *)other;
    return (a > b) - (a < b);
}

static float median(float *times)
{
    qsort(times, LAUNCHES, sizeof *times, compare);
    return times[LAUNCHES / 2];
}

/* False: it is refused, or the stream has failed. */
static bool queue(const struct cuda_call *call, const struct fused_plan *plan, const struct cuda_product *product,
                  const cublasLtMatmulAlgo_t *algorithm, cudaEvent_t *marks)
{
    for (int i = 0; i <= LAUNCHES; i++) { /* the first is the warm one */
        const cublasStatus_t status = fused_plan_launch(call->owner, plan, product, algorithm);
        if (fused_is_refused(status) || !cublas_check(call, "cublasLtMatmul", status))
            return false;
        cuda_stream_note(call->owner, cudaEventRecord(marks[i], call->stream), "cudaEventRecord");
    }
    return true;
}

/* Milliseconds of one launch; INFINITY where there is no such time. */
static float time_launches(const struct cuda_call *call, const struct fused_plan *plan,
                           const struct cuda_product *product, const cublasLtMatmulAlgo_t *algorithm,
                           cudaEvent_t *marks)
{
    float times[LAUNCHES];
    const bool queued = queue(call, plan, product, algorithm, marks);
    const cudaError_t result = cudaStreamSynchronize(call->stream);
    cuda_stream_note(call->owner, result, "cudaStreamSynchronize");
    if (!queued || result != cudaSuccess)
        return INFINITY;
    for (int i = 0; i < LAUNCHES; i++) {
        const cudaError_t told = cudaEventElapsedTime(&times[i], marks[i], marks[i + 1]);
        cuda_stream_note(call->owner, told, "cudaEventElapsedTime");
        if (told != cudaSuccess)
            return INFINITY;
        call->owner->search->ms += (double)times[i];
    }
    return median(times);
}

/* The number of the quickest; -1: all were refused. */
static int choose(const struct cuda_call *call, const struct fused_plan *plan, const struct cuda_product *product,
                  const cublasLtMatmulHeuristicResult_t *found, int count, cudaEvent_t *marks)
{
    int chosen = -1;
    float best = INFINITY;
    for (int i = 0; i < count; i++) {
        if (found[i].state != CUBLAS_STATUS_SUCCESS || found[i].workspaceSize > CUDA_SCRATCH_BYTES)
            continue;
        const float ms = time_launches(call, plan, product, &found[i].algo, marks);
        if (ms < (chosen == 0 ? best * CHANCE : best)) {
            best = ms;
            chosen = i;
        }
    }
    return chosen;
}

static bool make_marks(const struct cuda_call *call, cudaEvent_t marks[LAUNCHES + 1])
{
    memset(marks, 0, (LAUNCHES + 1) * sizeof *marks);
    for (int i = 0; i <= LAUNCHES; i++) {
        const cudaError_t result = cudaEventCreateWithFlags(&marks[i], cudaEventDefault);
        cuda_stream_note(call->owner, result, "cudaEventCreateWithFlags");
        if (result != cudaSuccess)
            return false;
    }
    return true;
}

static void free_marks(cudaEvent_t marks[LAUNCHES + 1])
{
    for (int i = 0; i <= LAUNCHES; i++)
        if (marks[i])
            (void)cudaEventDestroy(marks[i]);
}

static void note(struct algorithm_search *search, const struct fused_plan *plan, const cublasLtMatmulAlgo_t *algorithm)
{
    struct algorithm_choice choice;
    memcpy(choice.product, &plan->key, sizeof choice.product);
    memcpy(choice.algorithm, algorithm->data, sizeof choice.algorithm);
    (void)algorithm_record_add(&search->record, &choice);
}

void fused_plan_measure(const struct cuda_call *call, struct fused_plan *plan, const struct fused_product *job)
{
    struct algorithm_search *search = call->owner->search;
    cublasLtMatmulHeuristicResult_t found[CANDIDATES_MAX];
    cudaEvent_t marks[LAUNCHES + 1];
    if (algorithm_record_find(&search->record, (const int64_t *)&plan->key))
        return;
    if (search->ms >= SEARCH_MS_MAX || search->record.count == ALGORITHM_CHOICES_MAX) {
        search->left_out++;
        return;
    }
    const int count = fused_plan_candidates(call, plan, CANDIDATES_MAX, found);
    const bool ready = fused_plan_point(call, plan, job);
    const int chosen = make_marks(call, marks) && ready ? choose(call, plan, &job->product, found, count, marks) : -1;
    free_marks(marks);
    if (chosen < 0)
        return;
    note(search, plan, &found[chosen].algo);
    search->others += chosen > 0;
}

/* ---------------------------------------------------------------- as a device */

void cuda_search_begin(struct device_stream *base, struct algorithm_search *search)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    memcpy(search->record.device, stream->device->name, sizeof stream->device->name);
    fused_library_name(stream->device, search->record.library);
    stream->search = search;
}

void cuda_search_end(struct device_stream *base)
{
    ((struct cuda_stream *)base)->search = NULL;
}

int cuda_take_algorithms(struct device *base, const struct algorithm_record *record, struct error *error)
{
    struct cuda_device *device = (struct cuda_device *)base;
    const struct algorithm_record none = {0};
    const struct algorithm_record *taken = record ? record : &none;
    if (!device->cublas.lt || algorithm_record_equal(taken, &device->algorithms))
        return 0;
    if (record && fused_record_check(device, record, error) < 0)
        return -1;
    algorithm_record_release(&device->algorithms);
    algorithm_record_copy(taken, &device->algorithms);
    device->algorithms_turn++;
    return 0;
}
