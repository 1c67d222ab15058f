/* SPDX-License-Identifier: Apache-2.0
 *
 * A narrow row is a warp's. A wide one, of a vocabulary, is a block's: it is read
 * once, into shared memory where that has room for it, 16 bytes at a time, and each
 * thread comes back to what it has read itself.
 */
#include <limits.h>
#include <math.h>

#include "worker/device/cuda/quick_math.cuh"
#include "worker/device/cuda/stored.cuh"
#include "worker/device/cuda/warp.cuh"

#define WIDE_CLASSES 2048
#define WIDE_THREADS 512
#define WIDE_WARPS (WIDE_THREADS / WARP)
#define AT_ONCE 4 /* reads that a thread has under way */

/* e to the power of x, which is not positive. Values that are rounded to two bytes afterwards do not need full precision. */
template <typename Stored> static __device__ inline float power(float x)
{
    return sizeof(Stored) == 2 ? quick_power(x * LOG2_E) : expf(x);
}

/* A target outside 0..classes-1 is reported once per row. */
static __device__ bool is_bad(const struct softmax_cross_entropy &op, int target, bool tells, struct cuda_fault *fault)
{
    const bool bad = target < 0 || target >= op.classes;
    if (bad && tells)
        report_fault(fault, CUDA_FAULT_TARGET, target, op.classes);
    return bad;
}

/* Workspace of a row: its loss, and 1 when the largest logit (the first of equals) is the target. */
static __device__ void store_loss(const struct softmax_cross_entropy &op, int64_t row, float sum, float maximum,
                                  float wanted, bool correct)
{
    op.workspace[row * 2] = log((double)sum) + (double)maximum - (double)wanted;
    op.workspace[row * 2 + 1] = correct;
}

static __device__ float gradient_scale(const struct softmax_cross_entropy &op)
{
    return op.values ? op.scale * op.values->loss_scale : op.scale;
}

/* ---------------------------------------------------------------- a warp a row */

/* `dlogits` may be `logits`: each lane writes only what it alone has read. */
template <typename Stored> static __global__ void each_row(struct softmax_cross_entropy op, struct cuda_fault *fault)
{
    EACH_ROW(row, lane, op.rows);
    const int classes = (int)op.classes, target = op.targets[row];
    const int64_t place = row * op.row;
    const values<Stored> logits = values<Stored>(op.logits) + place;
    const float wanted = is_bad(op, target, lane == 0, fault) ? 0 : logits[target];
    float maximum = -INFINITY, sum = 0;
    for (int j = lane; j < classes; j += WARP)
        maximum = fmaxf(maximum, logits[j]);
    maximum = warp_maximum(maximum);
    int first = INT_MAX;
    for (int j = lane; j < classes; j += WARP) {
        sum += power<Stored>(logits[j] - maximum);
        if (logits[j] == maximum)
            first = min(first, j);
    }
    sum = warp_sum(sum);
    first = warp_minimum(first);
    if (lane == 0)
        store_loss(op, row, sum, maximum, wanted, first == target);
    if (!op.dlogits)
        return;
    const values<Stored> dlogits = values<Stored>(op.dlogits) + place;
    const float scale = gradient_scale(op), share = scale / sum;
    __syncwarp(); /* all have read the target's logit, which one of them is about to overwrite */
    for (int j = lane; j < classes; j += WARP)
        dlogits.put(j, power<Stored>(logits[j] - maximum) * share - (j == target ? scale : 0.0f));
}

/* ---------------------------------------------------------------- a block a row */

/* The elements behind the last whole pack have a thread each. */
template <typename Stored, bool ALIGNED> struct wide_row {
    typedef element_pack<Stored> pack;
    const Stored *logits;
    Stored *dlogits;
    pack *kept; /* in shared memory; NULL: it is read again */
    int classes, packs;

    __device__ pack read(int number) const
    {
        return read_pack<ALIGNED>(logits + (int64_t)number * pack::LENGTH, pack::LENGTH);
    }
    __device__ pack again(int number) const
    {
        return kept ? kept[number] : read(number);
    }
    /* The class that the thread has behind the packs, if it is one. */
    __device__ int last() const
    {
        return packs * pack::LENGTH + (int)threadIdx.x;
    }
};

/* That of the whole block, by warps in order. `places` has one for each warp, and is used for nothing else. */
static __device__ inline float block_maximum(float x, float *places)
{
    x = warp_maximum(x);
    if (threadIdx.x % WARP == 0)
        places[threadIdx.x / WARP] = x;
    __syncthreads();
    for (int warp = 0; warp < WIDE_WARPS; warp++)
        x = fmaxf(x, places[warp]);
    return x;
}

static __device__ inline float block_sum(float x, float *places)
{
    x = warp_sum(x);
    if (threadIdx.x % WARP == 0)
        places[threadIdx.x / WARP] = x;
    __syncthreads();
    x = 0;
    for (int warp = 0; warp < WIDE_WARPS; warp++)
        x += places[warp];
    return x;
}

/* Reads COUNT packs, all before the first is used. */
template <int COUNT, typename Stored, bool ALIGNED>
static __device__ inline float take_packs(const wide_row<Stored, ALIGNED> &row, int first, float maximum)
{
    element_pack<Stored> some[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; k++)
        some[k] = row.read(first + k * WIDE_THREADS);
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        if (row.kept)
            row.kept[first + k * WIDE_THREADS] = some[k];
#pragma unroll
        for (int i = 0; i < some[k].LENGTH; i++)
            maximum = fmaxf(maximum, widen(some[k].at[i]));
    }
    return maximum;
}

template <typename Stored, bool ALIGNED>
static __device__ float read_row(const wide_row<Stored, ALIGNED> &row, float maximum)
{
    int at = (int)threadIdx.x;
    for (; at + (AT_ONCE - 1) * WIDE_THREADS < row.packs; at += AT_ONCE * WIDE_THREADS)
        maximum = take_packs<AT_ONCE>(row, at, maximum);
    for (; at < row.packs; at += WIDE_THREADS)
        maximum = take_packs<1>(row, at, maximum);
    return maximum;
}

template <typename Stored, bool ALIGNED>
static __device__ float sum_powers(const wide_row<Stored, ALIGNED> &row, float maximum, float sum)
{
#pragma unroll 2
    for (int number = (int)threadIdx.x; number < row.packs; number += WIDE_THREADS) {
        const element_pack<Stored> some = row.again(number);
#pragma unroll
        for (int i = 0; i < some.LENGTH; i++)
            sum += power<Stored>(widen(some.at[i]) - maximum);
    }
    return sum;
}

/* Whether a logit before the target is as large as the largest, which it is itself. */
template <typename Stored, bool ALIGNED>
static __device__ bool is_earlier(const wide_row<Stored, ALIGNED> &row, float last, float maximum, int target,
                                  float *places)
{
    bool found = row.last() < target && last == maximum;
    for (int number = (int)threadIdx.x; number < row.packs; number += WIDE_THREADS) {
        const element_pack<Stored> some = row.again(number);
#pragma unroll
        for (int i = 0; i < some.LENGTH; i++)
            found |= number * some.LENGTH + i < target && widen(some.at[i]) == maximum;
    }
    return block_maximum(found ? 1 : 0, places) > 0;
}

/* `target` is -1 where it is none. */
template <typename Stored, bool ALIGNED>
static __device__ void write_row(const wide_row<Stored, ALIGNED> &row, float last, float maximum, float share,
                                 int target, float at_target)
{
    const int length = element_pack<Stored>::LENGTH;
#pragma unroll 2
    for (int number = (int)threadIdx.x; number < row.packs; number += WIDE_THREADS) {
        element_pack<Stored> some = row.again(number);
#pragma unroll
        for (int i = 0; i < length; i++)
            narrow(power<Stored>(widen(some.at[i]) - maximum) * share, &some.at[i]);
        write_pack<ALIGNED>(row.dlogits + (int64_t)number * length, some, length);
        if (target >= 0 && number == target / length)
            narrow(at_target, row.dlogits + target);
    }
    if (row.last() < row.classes)
        narrow(row.last() == target ? at_target : power<Stored>(last - maximum) * share, row.dlogits + row.last());
}

/* `dlogits` may be `logits`: each thread writes only what it alone has read, but for the target, which is read before. */
template <typename Stored, bool ALIGNED>
static __global__ void __launch_bounds__(WIDE_THREADS, 2)
    each_wide_row(struct softmax_cross_entropy op, bool is_kept, struct cuda_fault *fault)
{
    typedef element_pack<Stored> pack;
    extern __shared__ __align__(16) float shared[];
    __shared__ float maxima[WIDE_WARPS], sums[WIDE_WARPS], earlier[WIDE_WARPS];
    const int64_t number = blockIdx.x, place = number * op.row;
    const int target = op.targets[number], classes = (int)op.classes;
    const bool bad = is_bad(op, target, threadIdx.x == 0, fault);
    const wide_row<Stored, ALIGNED> row = {values<Stored>(op.logits).start + place,
                                           values<Stored>(op.dlogits).start + place, is_kept ? (pack *)shared : NULL,
                                           classes, classes / pack::LENGTH};
    const float wanted = bad ? 0 : widen(row.logits[target]);
    const float last = row.last() < classes ? widen(row.logits[row.last()]) : -INFINITY;
    const float maximum = block_maximum(read_row(row, last), maxima);
    const float sum = block_sum(sum_powers(row, maximum, power<Stored>(last - maximum)), sums);
    const bool correct = !bad && wanted == maximum && !is_earlier(row, last, maximum, target, earlier);
    if (threadIdx.x == 0)
        store_loss(op, number, sum, maximum, wanted, correct);
    if (!op.dlogits)
        return;
    const float scale = gradient_scale(op), share = scale / sum;
    write_row(row, last, maximum, share, bad ? -1 : target, power<Stored>(wanted - maximum) * share - scale);
}

template <typename Stored> static void launch_wide(const struct cuda_call *call, const struct softmax_cross_entropy &op)
{
    const size_t bytes = (size_t)op.classes * sizeof(Stored) / VALUE_BYTES * VALUE_BYTES;
    const bool is_kept = bytes + 3 * WIDE_WARPS * sizeof(float) <= call->shared_bytes;
    auto kernel = are_aligned(op.logits, op.dlogits) && op.row * sizeof(Stored) % VALUE_BYTES == 0
                      ? each_wide_row<Stored, true>
                      : each_wide_row<Stored, false>;
    const cudaError_t result =
        is_kept ? cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes) : cudaSuccess;
    if (result != cudaSuccess)
        cuda_call_fail(call, result, "cudaFuncSetAttribute");
    else
        launch_kernel(call, (unsigned)op.rows, WIDE_THREADS, is_kept ? bytes : 0, kernel, op, is_kept, call->fault);
}

void cuda_softmax_cross_entropy(const struct cuda_call *call, const struct softmax_cross_entropy *op)
{
    struct softmax_cross_entropy rows = *op;
    rows.row = row_or_packed(op->row, op->classes);
    if (op->classes < WIDE_CLASSES)
        launch_rows(call, op->rows, KERNEL_FOR(call, each_row), rows, call->fault);
    else if (op->rows > 0)
        BY_STORED(call, launch_wide, call, rows);
    if (op->sums)
        cuda_loss_sums(call, op->workspace - 2 * op->earlier, op->earlier + op->rows, true, op->sums);
}
