/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/fused_product.h"

#include "worker/device/cuda/cuda_device.h"
#include "worker/device/cuda/fused_plan.h"

/* A multiple that cuBLASLt asks of rows that a GELU keeps or reads. */
#define GELU_COLUMNS 8

static int64_t columns_of_b(const struct cuda_product *product)
{
    return product->b_transposed ? product->k : product->n;
}

static size_t bytes_apart(size_t bytes)
{
    return (bytes + FUSED_ALIGNMENT_MAX - 1) / FUSED_ALIGNMENT_MAX * FUSED_ALIGNMENT_MAX;
}

static size_t bytes_of_b(const struct cuda_product *product)
{
    return bytes_apart((size_t)(product->n * product->k * stored_bytes(product->operands)));
}

static size_t bytes_of_bias(const struct fused_product *job)
{
    return bytes_apart((size_t)(job->product.n * stored_bytes(job->product.result)));
}

/* By its shape and type alone. */
static bool is_fit(const struct fused_product *job)
{
    const struct cuda_product *product = &job->product;
    return product->operands != STORED_FLOAT16 && product->m > 0 && product->n > 0 && product->k > 0 &&
           (job->gelu == FUSED_NO_GELU || product->n % GELU_COLUMNS == 0) &&
           bytes_of_b(product) + bytes_of_bias(job) <= CUDA_PATCHES_BYTES;
}

static const void *aligned(const struct cuda_call *call, const void *from, size_t bytes, size_t alignment, size_t place)
{
    void *to = (char *)call->patches + place;
    if ((uintptr_t)from % alignment == 0)
        return from;
    cuda_copy(call, &(struct copy){(int64_t)bytes, from, to});
    return to;
}

/* A weight and its bias are at any address among the parameters of the whole model or of a part. If they are not aligned as the algorithm
 * was told, the product reads a copy, in memory that only convolutions need otherwise. */
static struct fused_product align(const struct cuda_call *call, const struct fused_product *given)
{
    struct fused_product job = *given;
    struct cuda_product *product = &job.product;
    product->b = aligned(call, product->b, (size_t)(product->n * product->k * stored_bytes(product->operands)),
                         fused_row_alignment(columns_of_b(product), product->operands), 0);
    if (job.bias)
        job.bias = aligned(call, job.bias, (size_t)(product->n * stored_bytes(product->result)), FUSED_ALIGNMENT_MAX,
                           bytes_of_b(product));
    return job;
}

/* False: it is refused. */
static bool multiply(const struct cuda_call *call, struct fused_plan *plan, const struct fused_product *given)
{
    if (!plan->possible)
        return false;
    const struct fused_product job = align(call, given);
    if (!fused_plan_point(call, plan, &job))
        return true;
    const cublasStatus_t status = fused_plan_launch(call->owner, plan, &job.product);
    plan->possible = !fused_is_refused(status);
    if (plan->possible)
        cublas_check(call, "cublasLtMatmul", status);
    return plan->possible;
}

bool cuda_multiply_fused(const struct cuda_call *call, const struct fused_product *job)
{
    struct cuda_device *device = call->owner->device;
    if (!device->cublas.lt || !is_fit(job))
        return false;
    if (!fused_prepare(call))
        return true;
    const bool finished = multiply(call, fused_plan_find(call, job), job);
    atomic_fetch_add(finished ? &device->finished_products : &device->refused_products, 1);
    return finished;
}
