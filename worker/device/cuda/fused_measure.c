/* SPDX-License-Identifier: Apache-2.0
 *
 * Each algorithm is launched once to warm up and then in several batches; their
 * median counts. An event behind each launch would be a part of what it times: it
 * stands behind a batch.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/device/cuda/cuda_failure.h"
#include "worker/device/cuda/fused_plan.h"

#define CANDIDATES_MAX 8
#define BATCHES 3
#define LAUNCHES 4 /* in each */
#define MARKS (BATCHES + 2)
/* When no other algorithm is tried; products that come later go by the heuristics. */
#define SEARCH_MS_MAX 2000.0
/* Another than the heuristics' has to be quicker by both: within that it is chance, and bits would follow it. Of a small product
 * the GPU may have done one launch before the host has made the next, which takes it some microseconds, now more, now less. */
#define CHANCE 0.98f
#define CHANCE_MS 0.002f

static int compare(const void *one, const void *other)
{
    const float a = *(const float *)one, b = *(const float *)other;
    return (a > b) - (a < b);
}

static float median(float *times)
{
    qsort(times, BATCHES, sizeof *times, compare);
    return times[BATCHES / 2];
}

static void mark(const struct cuda_call *call, cudaEvent_t event)
{
    cuda_stream_note(call->owner, cudaEventRecord(event, call->stream), "cudaEventRecord");
}

/* False: it is refused, or the stream has failed. */
static bool launch(const struct cuda_call *call, const struct fused_plan *plan, const struct cuda_product *product,
                   const cublasLtMatmulAlgo_t *algorithm, int times)
{
    for (int i = 0; i < times; i++) {
        const cublasStatus_t status = fused_plan_launch(call->owner, plan, product, algorithm);
        if (fused_is_refused(status) || !cublas_check(call, "cublasLtMatmul", status))
            return false;
    }
    return true;
}

static bool queue(const struct cuda_call *call, const struct fused_plan *plan, const struct cuda_product *product,
                  const cublasLtMatmulAlgo_t *algorithm, cudaEvent_t marks[MARKS])
{
    mark(call, marks[0]);
    for (int i = 1; i < MARKS; i++) {
        if (!launch(call, plan, product, algorithm, i == 1 ? 1 : LAUNCHES)) /* the first is the warm one */
            return false;
        mark(call, marks[i]);
    }
    return true;
}

static bool read_time(const struct cuda_call *call, cudaEvent_t from, cudaEvent_t to, float *ret_ms)
{
    const cudaError_t result = cudaEventElapsedTime(ret_ms, from, to);
    cuda_stream_note(call->owner, result, "cudaEventElapsedTime");
    return result == cudaSuccess;
}

/* Milliseconds of one launch; INFINITY where there is no such time. */
static float time_launches(const struct cuda_call *call, const struct fused_plan *plan,
                           const struct cuda_product *product, const cublasLtMatmulAlgo_t *algorithm,
                           cudaEvent_t marks[MARKS])
{
    float times[BATCHES], all;
    const bool queued = queue(call, plan, product, algorithm, marks);
    const cudaError_t result = cudaStreamSynchronize(call->stream);
    cuda_stream_note(call->owner, result, "cudaStreamSynchronize");
    if (!queued || result != cudaSuccess || !read_time(call, marks[0], marks[MARKS - 1], &all))
        return INFINITY;
    call->owner->search->ms += (double)all;
    for (int i = 0; i < BATCHES; i++)
        if (!read_time(call, marks[i + 1], marks[i + 2], &times[i]))
            return INFINITY;
    return median(times) / LAUNCHES;
}

static bool is_over(const struct algorithm_search *search)
{
    return search->ms >= SEARCH_MS_MAX;
}

static bool is_quicker(float ms, float best, bool than_first)
{
    return than_first ? ms < best * CHANCE && ms < best - CHANCE_MS : ms < best;
}

/* The number of the quickest, of those that there was time for; -1: all were refused. */
static int choose(const struct cuda_call *call, const struct fused_plan *plan, const struct cuda_product *product,
                  const cublasLtMatmulHeuristicResult_t *found, int count, cudaEvent_t marks[MARKS])
{
    int chosen = -1;
    float best = INFINITY;
    for (int i = 0; i < count && !is_over(call->owner->search); i++) {
        if (found[i].state != CUBLAS_STATUS_SUCCESS || found[i].workspaceSize > CUDA_SCRATCH_BYTES)
            continue;
        const float ms = time_launches(call, plan, product, &found[i].algo, marks);
        if (is_quicker(ms, best, chosen == 0)) {
            best = ms;
            chosen = i;
        }
    }
    return chosen;
}

static bool make_marks(const struct cuda_call *call, cudaEvent_t marks[MARKS])
{
    memset(marks, 0, MARKS * sizeof *marks);
    for (int i = 0; i < MARKS; i++) {
        const cudaError_t result = cudaEventCreateWithFlags(&marks[i], cudaEventDefault);
        cuda_stream_note(call->owner, result, "cudaEventCreateWithFlags");
        if (result != cudaSuccess)
            return false;
    }
    return true;
}

static void free_marks(cudaEvent_t marks[MARKS])
{
    for (int i = 0; i < MARKS; i++)
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
    cudaEvent_t marks[MARKS];
    if (plan->searched)
        return;
    plan->searched = true;
    if (is_over(search) || search->record.count == ALGORITHM_CHOICES_MAX) {
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

static void name_record(const struct cuda_device *device, struct algorithm_record *record)
{
    memcpy(record->device, device->name, sizeof device->name);
    fused_library_name(device, record->library);
}

void cuda_search_begin(struct device_stream *base, struct algorithm_search *search)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    name_record(stream->device, &search->record);
    for (struct fused_plan *plan = stream->plans; plan; plan = plan->next)
        plan->searched = false;
    stream->search = search;
}

void cuda_search_end(struct device_stream *base)
{
    ((struct cuda_stream *)base)->search = NULL;
}

int cuda_take_algorithms(struct device *base, const struct algorithm_record *record, struct error *error)
{
    struct cuda_device *device = (struct cuda_device *)base;
    struct algorithm_record none = {0};
    if (device->measures) /* none is what has been measured, too */
        name_record(device, &none);
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
