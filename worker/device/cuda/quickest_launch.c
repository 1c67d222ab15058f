/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/quickest_launch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES 3
#define LAUNCHES 4 /* in each */
#define MARKS (BATCHES + 2)
/* Of each kind: when no other algorithm is tried; what comes later goes by what is taken first. */
#define SEARCH_MS_MAX 2000.0
/* Another than the first has to be quicker by both: within that it is chance, and bits would follow it. Of a small one
 * the GPU may have done one launch before the host has made the next, which takes it some microseconds, now more, now less. */
#define CHANCE 0.98f
#define CHANCE_MS 0.002f

struct trial {
    const struct cuda_call *call;
    quickest_way *launch;
    const void *context;
    double *ms;
    cudaEvent_t marks[MARKS];
};

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

static void mark(const struct trial *trial, int number)
{
    cuda_stream_note(trial->call->owner, cudaEventRecord(trial->marks[number], trial->call->stream), "cudaEventRecord");
}

static bool launch(const struct trial *trial, int way, int times)
{
    for (int i = 0; i < times; i++)
        if (!trial->launch(trial->call, trial->context, way))
            return false;
    return true;
}

static bool queue(const struct trial *trial, int way)
{
    mark(trial, 0);
    for (int i = 1; i < MARKS; i++) {
        if (!launch(trial, way, i == 1 ? 1 : LAUNCHES)) /* the first is the warm one */
            return false;
        mark(trial, i);
    }
    return true;
}

static bool read_time(const struct trial *trial, int from, int to, float *ret_ms)
{
    const cudaError_t result = cudaEventElapsedTime(ret_ms, trial->marks[from], trial->marks[to]);
    cuda_stream_note(trial->call->owner, result, "cudaEventElapsedTime");
    return result == cudaSuccess;
}

/* Milliseconds of one launch; INFINITY where there is no such time. */
static float time_launches(const struct trial *trial, int way)
{
    float times[BATCHES], all;
    const bool queued = queue(trial, way);
    const cudaError_t result = cudaStreamSynchronize(trial->call->stream);
    cuda_stream_note(trial->call->owner, result, "cudaStreamSynchronize");
    if (!queued || result != cudaSuccess || !read_time(trial, 0, MARKS - 1, &all))
        return INFINITY;
    *trial->ms += (double)all;
    for (int i = 0; i < BATCHES; i++)
        if (!read_time(trial, i + 1, i + 2, &times[i]))
            return INFINITY;
    return median(times) / LAUNCHES;
}

static bool is_quicker(float ms, float best, bool than_first)
{
    return than_first ? ms < best * CHANCE && ms < best - CHANCE_MS : ms < best;
}

static int choose(const struct trial *trial, int count)
{
    int chosen = -1;
    float best = INFINITY;
    for (int i = 0; i < count && *trial->ms < SEARCH_MS_MAX; i++) {
        const float ms = time_launches(trial, i);
        if (is_quicker(ms, best, chosen == 0)) {
            best = ms;
            chosen = i;
        }
    }
    return chosen;
}

static bool make_marks(struct trial *trial)
{
    for (int i = 0; i < MARKS; i++) {
        const cudaError_t result = cudaEventCreateWithFlags(&trial->marks[i], cudaEventDefault);
        cuda_stream_note(trial->call->owner, result, "cudaEventCreateWithFlags");
        if (result != cudaSuccess)
            return false;
    }
    return true;
}

static void free_marks(struct trial *trial)
{
    for (int i = 0; i < MARKS; i++)
        if (trial->marks[i])
            (void)cudaEventDestroy(trial->marks[i]);
}

int quickest_launch(const struct cuda_call *call, int count, quickest_way *way, const void *context, double *ms)
{
    struct trial trial = {.call = call, .launch = way, .context = context, .ms = ms};
    const int chosen = make_marks(&trial) ? choose(&trial, count) : -1;
    free_marks(&trial);
    return chosen;
}

bool quickest_is_over(const struct algorithm_search *search, enum algorithm_kind kind)
{
    return search->tallies[kind].ms >= SEARCH_MS_MAX || search->record.count == ALGORITHM_CHOICES_MAX;
}

void quickest_note(struct algorithm_search *search, const struct algorithm_choice *choice, bool is_first)
{
    struct algorithm_tally *tally = &search->tallies[choice->kind];
    (void)algorithm_record_add(&search->record, choice);
    tally->measured++;
    tally->others += !is_first;
}
