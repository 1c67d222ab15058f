/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/fused_product.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/device/cuda/cuda_device.h"

/* All that a plan depends on; without gaps, for memcmp. */
struct fused_key {
    int64_t m, n, k, a_row, b_row, c_row;
    int32_t a_transposed, b_transposed, tf32, operands, result, epilogue;
};

struct fused_plan {
    struct fused_plan *next;
    struct fused_key key;
    bool possible;
    cublasLtMatmulDesc_t job;
    cublasLtMatrixLayout_t left, right, result;
    cublasLtMatmulAlgo_t algorithm;
};

/* What lies so far apart counts as aligned to whatever an algorithm may ask for. */
#define ALIGNMENT_MAX ((size_t)16)
/* A multiple that cuBLASLt asks of rows that a GELU keeps or reads. */
#define GELU_COLUMNS 8

/* What an algorithm is told of a matrix is what its shape says: some rows of one that is aligned lie so, wherever they begin. So
 * parts of a batch, or of a model, are summed in the order of the whole. */
static size_t alignment_of_rows(int64_t row, int32_t stored)
{
    const size_t bytes = (size_t)(row * stored_bytes((enum stored)stored)) | ALIGNMENT_MAX;
    return bytes & -bytes;
}

static int64_t columns_of_b(const struct cuda_product *product)
{
    return product->b_transposed ? product->k : product->n;
}

static size_t bytes_apart(size_t bytes)
{
    return (bytes + ALIGNMENT_MAX - 1) / ALIGNMENT_MAX * ALIGNMENT_MAX;
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

static struct fused_key key_of(const struct fused_product *job)
{
    const struct cuda_product *product = &job->product;
    uint32_t epilogue = job->bias ? CUBLASLT_EPILOGUE_BIAS : 0;
    if (job->gelu == FUSED_GELU)
        epilogue |= CUBLASLT_EPILOGUE_GELU_AUX;
    else if (job->gelu == FUSED_GELU_BACKWARD)
        epilogue |= CUBLASLT_EPILOGUE_DGELU;
    return (struct fused_key){.m = product->m,
                              .n = product->n,
                              .k = product->k,
                              .a_row = row_or_packed(product->a_row, product->a_transposed ? product->m : product->k),
                              .b_row = row_or_packed(product->b_row, product->b_transposed ? product->k : product->n),
                              .c_row = row_or_packed(product->c_row, product->n),
                              .a_transposed = product->a_transposed,
                              .b_transposed = product->b_transposed,
                              .tf32 = product->tf32,
                              .operands = product->operands,
                              .result = product->result,
                              .epilogue = (int32_t)epilogue};
}

static cudaDataType type_of(int32_t stored)
{
    return stored == STORED_BFLOAT16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* ---------------------------------------------------------------- plans */

static bool set(const struct cuda_call *call, struct fused_plan *plan, cublasLtMatmulDescAttributes_t attribute,
                const void *value, size_t bytes)
{
    const struct cublas *cublas = &call->owner->device->cublas;
    return cublas_check(call, "cublasLtMatmulDescSetAttribute",
                        cublas->cublasLtMatmulDescSetAttribute(plan->job, attribute, value, bytes));
}

static bool set_pointers(const struct cuda_call *call, struct fused_plan *plan, const struct fused_product *job)
{
    if (job->bias && !set(call, plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &job->bias, sizeof job->bias))
        return false;
    return job->gelu == FUSED_NO_GELU ||
           set(call, plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &job->gelu_input, sizeof job->gelu_input);
}

/* The heuristics look at the places of bias and GELU's input themselves: they see ones that are aligned, and no better, for the
 * plan is another layer's as well. Nobody follows them. */
static bool set_alignment(const struct cuda_call *call, struct fused_plan *plan, const struct fused_product *job)
{
    struct fused_product alike = {.gelu = job->gelu, .gelu_input = (void *)(uintptr_t)ALIGNMENT_MAX};
    if (job->bias)
        alike.bias = (void *)(uintptr_t)ALIGNMENT_MAX;
    return set_pointers(call, plan, &alike);
}

/* cuBLAS counts down columns: what it sees of row-major matrices are their transposes, and c^T = b^T a^T. So the bias, which it
 * adds to each column, is one of our rows. */
static bool describe(const struct cuda_call *call, struct fused_plan *plan, const struct fused_product *job)
{
    const struct cublas *cublas = &call->owner->device->cublas;
    const struct fused_key *key = &plan->key;
    const cublasOperation_t left = key->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t right = key->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasComputeType_t compute = key->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const uint32_t epilogue = (uint32_t)key->epilogue;
    const int64_t left_rows = key->b_transposed ? key->k : key->n, left_columns = key->b_transposed ? key->n : key->k;
    const int64_t right_rows = key->a_transposed ? key->m : key->k, right_columns = key->a_transposed ? key->k : key->m;
    return cublas_check(call, "cublasLtMatmulDescCreate",
                        cublas->cublasLtMatmulDescCreate(&plan->job, compute, CUDA_R_32F)) &&
           set(call, plan, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof left) &&
           set(call, plan, CUBLASLT_MATMUL_DESC_TRANSB, &right, sizeof right) &&
           set(call, plan, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue) &&
           (job->gelu == FUSED_NO_GELU ||
            set(call, plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &key->n, sizeof key->n)) &&
           set_alignment(call, plan, job) &&
           cublas_check(call, "cublasLtMatrixLayoutCreate",
                        cublas->cublasLtMatrixLayoutCreate(&plan->left, type_of(key->operands), (uint64_t)left_rows,
                                                           (uint64_t)left_columns, key->b_row)) &&
           cublas_check(call, "cublasLtMatrixLayoutCreate",
                        cublas->cublasLtMatrixLayoutCreate(&plan->right, type_of(key->operands), (uint64_t)right_rows,
                                                           (uint64_t)right_columns, key->a_row)) &&
           cublas_check(call, "cublasLtMatrixLayoutCreate",
                        cublas->cublasLtMatrixLayoutCreate(&plan->result, type_of(key->result), (uint64_t)key->n,
                                                           (uint64_t)key->m, key->c_row));
}

/* Partial sums, if any, are float32 in the work space, and added in a step of its own. */
static bool prefer(const struct cuda_call *call, const struct fused_plan *plan, cublasLtMatmulPreference_t preference)
{
    const struct cublas *cublas = &call->owner->device->cublas;
    const size_t room = CUDA_SCRATCH_BYTES;
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const struct fused_key *key = &plan->key;
    const uint32_t left = (uint32_t)alignment_of_rows(key->b_row, key->operands);
    const uint32_t right = (uint32_t)alignment_of_rows(key->a_row, key->operands);
    const uint32_t result = (uint32_t)alignment_of_rows(key->c_row, key->result);
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        const void *value;
        size_t bytes;
    } wishes[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &left, sizeof left},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &right, sizeof right},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &result, sizeof result},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &result, sizeof result},
    };
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++)
        if (!cublas_check(call, "cublasLtMatmulPreferenceSetAttribute",
                          cublas->cublasLtMatmulPreferenceSetAttribute(preference, wishes[i].attribute, wishes[i].value,
                                                                       wishes[i].bytes)))
            return false;
    return true;
}

/* There is another way to such a product, which has not failed. */
static bool is_refused(cublasStatus_t status)
{
    const bool refused = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE;
    if (refused)
        (void)cudaGetLastError();
    return refused;
}

/* The first that the heuristics have. None is no failure. */
static void choose(const struct cuda_call *call, struct fused_plan *plan)
{
    const struct cublas *cublas = &call->owner->device->cublas;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    memset(&found, 0, sizeof found);
    if (!cublas_check(call, "cublasLtMatmulPreferenceCreate", cublas->cublasLtMatmulPreferenceCreate(&preference)))
        return;
    if (prefer(call, plan, preference)) {
        const cublasStatus_t status =
            cublas->cublasLtMatmulAlgoGetHeuristic(call->owner->fused, plan->job, plan->left, plan->right, plan->result,
                                                   plan->result, preference, 1, &found, &count);
        if (!is_refused(status))
            cublas_check(call, "cublasLtMatmulAlgoGetHeuristic", status);
        plan->possible = status == CUBLAS_STATUS_SUCCESS && count > 0 && found.state == CUBLAS_STATUS_SUCCESS;
        plan->algorithm = found.algo;
    }
    (void)cublas->cublasLtMatmulPreferenceDestroy(preference);
}

static struct fused_plan *find_plan(const struct cuda_call *call, const struct fused_product *job)
{
    struct cuda_stream *stream = call->owner;
    const struct fused_key key = key_of(job);
    struct fused_plan *plan = stream->plans;
    while (plan && memcmp(&plan->key, &key, sizeof key) != 0)
        plan = plan->next;
    if (plan)
        return plan;
    plan = memory_allocate(1, sizeof *plan);
    *plan = (struct fused_plan){.next = stream->plans, .key = key};
    stream->plans = plan;
    if (describe(call, plan, job))
        choose(call, plan);
    return plan;
}

void fused_plans_free(struct cuda_stream *stream)
{
    const struct cublas *cublas = &stream->device->cublas;
    while (stream->plans) {
        struct fused_plan *plan = stream->plans;
        stream->plans = plan->next;
        if (plan->result)
            (void)cublas->cublasLtMatrixLayoutDestroy(plan->result);
        if (plan->right)
            (void)cublas->cublasLtMatrixLayoutDestroy(plan->right);
        if (plan->left)
            (void)cublas->cublasLtMatrixLayoutDestroy(plan->left);
        if (plan->job)
            (void)cublas->cublasLtMatmulDescDestroy(plan->job);
        free(plan);
    }
    if (stream->fused)
        (void)cublas->cublasLtDestroy(stream->fused);
    stream->fused = NULL;
}

/* ---------------------------------------------------------------- products */

static cublasStatus_t launch(const struct cuda_stream *stream, const struct fused_plan *plan,
                             const struct cuda_product *product)
{
    const float one = 1, nought = 0;
    return stream->device->cublas.cublasLtMatmul(
        stream->fused, plan->job, &one, product->b, plan->left, product->a, plan->right, &nought, product->c,
        plan->result, product->c, plan->result, &plan->algorithm, stream->scratch, CUDA_SCRATCH_BYTES, stream->stream);
}

static const void *aligned(const struct cuda_call *call, const void *from, size_t bytes, size_t alignment, size_t place)
{
    void *to = (char *)call->patches + place;
    if ((uintptr_t)from % alignment == 0)
        return from;
    cuda_copy(call, &(struct copy){(int64_t)bytes, from, to});
    return to;
}

/* A weight and its bias lie among all parameters, of the whole model or of a part of it: a copy of them lies as the algorithm was
 * told. Convolutions alone need that memory for something else. */
static struct fused_product align(const struct cuda_call *call, const struct fused_product *given)
{
    struct fused_product job = *given;
    struct cuda_product *product = &job.product;
    product->b = aligned(call, product->b, (size_t)(product->n * product->k * stored_bytes(product->operands)),
                         alignment_of_rows(columns_of_b(product), (int32_t)product->operands), 0);
    if (job.bias)
        job.bias = aligned(call, job.bias, (size_t)(product->n * stored_bytes(product->result)), ALIGNMENT_MAX,
                           bytes_of_b(product));
    return job;
}

/* False: it is refused. */
static bool multiply(const struct cuda_call *call, struct fused_plan *plan, const struct fused_product *given)
{
    if (!plan->possible)
        return false;
    const struct fused_product job = align(call, given);
    if (!set_pointers(call, plan, &job))
        return true;
    const cublasStatus_t status = launch(call->owner, plan, &job.product);
    plan->possible = !is_refused(status);
    if (plan->possible)
        cublas_check(call, "cublasLtMatmul", status);
    return plan->possible;
}

bool cuda_multiply_fused(const struct cuda_call *call, const struct fused_product *job)
{
    struct cuda_stream *stream = call->owner;
    struct cuda_device *device = stream->device;
    if (!device->cublas.lt || !is_fit(job))
        return false;
    if (!stream->fused && !cublas_check(call, "cublasLtCreate", device->cublas.cublasLtCreate(&stream->fused)))
        return true;
    const bool finished = multiply(call, find_plan(call, job), job);
    atomic_fetch_add(finished ? &device->finished_products : &device->refused_products, 1);
    return finished;
}
