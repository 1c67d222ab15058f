/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/fused_plan.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

size_t fused_row_alignment(int64_t row, enum stored stored)
{
    const size_t bytes = (size_t)(row * stored_bytes(stored)) | FUSED_ALIGNMENT_MAX;
    return bytes & -bytes;
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
                              .epilogue = epilogue};
}

static bool adds_bias(const struct fused_key *key)
{
    return key->epilogue & CUBLASLT_EPILOGUE_BIAS;
}

/* Or goes back behind one: either has a matrix of its own. */
static bool takes_gelu(const struct fused_key *key)
{
    return key->epilogue & CUBLASLT_EPILOGUE_GELU_AUX & CUBLASLT_EPILOGUE_DGELU;
}

static cudaDataType type_of(int64_t stored)
{
    return stored == STORED_BFLOAT16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* ---------------------------------------------------------------- descriptions */

static bool set(const struct cuda_call *call, struct fused_plan *plan, cublasLtMatmulDescAttributes_t attribute,
                const void *value, size_t bytes)
{
    const struct cublas *cublas = &call->owner->device->cublas;
    return cublas_check(call, "cublasLtMatmulDescSetAttribute",
                        cublas->cublasLtMatmulDescSetAttribute(plan->job, attribute, value, bytes));
}

static bool point(const struct cuda_call *call, struct fused_plan *plan, const void *bias, const void *gelu_input)
{
    if (adds_bias(&plan->key) && !set(call, plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias))
        return false;
    return !takes_gelu(&plan->key) ||
           set(call, plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &gelu_input, sizeof gelu_input);
}

bool fused_plan_point(const struct cuda_call *call, struct fused_plan *plan, const struct fused_product *job)
{
    return point(call, plan, job->bias, job->gelu_input);
}

/* The heuristics look at the places of bias and GELU's input themselves: they see ones that are aligned, and no better, for the
 * plan is another layer's as well. Nobody follows them. */
static bool set_alignment(const struct cuda_call *call, struct fused_plan *plan)
{
    const void *alike = (const void *)(uintptr_t)FUSED_ALIGNMENT_MAX;
    return point(call, plan, alike, alike);
}

/* cuBLAS counts down columns: what it sees of row-major matrices are their transposes, and c^T = b^T a^T. So the bias, which it
 * adds to each column, is one of our rows. */
static bool describe(const struct cuda_call *call, struct fused_plan *plan)
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
           (!takes_gelu(key) || set(call, plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &key->n, sizeof key->n)) &&
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

static uint32_t row_alignment(int64_t row, int64_t stored)
{
    return (uint32_t)fused_row_alignment(row, (enum stored)stored);
}

/* Partial sums, if any, are float32 in the work space, and added in a step of its own. */
static bool prefer(const struct cuda_call *call, const struct fused_plan *plan, cublasLtMatmulPreference_t preference)
{
    const struct cublas *cublas = &call->owner->device->cublas;
    const size_t room = CUDA_SCRATCH_BYTES;
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const struct fused_key *key = &plan->key;
    const uint32_t left = row_alignment(key->b_row, key->operands);
    const uint32_t right = row_alignment(key->a_row, key->operands);
    const uint32_t result = row_alignment(key->c_row, key->result);
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

bool fused_is_refused(cublasStatus_t status)
{
    const bool refused = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE;
    if (refused)
        (void)cudaGetLastError();
    return refused;
}

/* ---------------------------------------------------------------- algorithms */

/* Takes the first algorithm that the heuristics name. That there is none is no failure. */
static void choose_algorithm(const struct cuda_call *call, struct fused_plan *plan)
{
    const struct cublas *cublas = &call->owner->device->cublas;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    memset(&found, 0, sizeof found);
    if (!set_alignment(call, plan) ||
        !cublas_check(call, "cublasLtMatmulPreferenceCreate", cublas->cublasLtMatmulPreferenceCreate(&preference)))
        return;
    if (prefer(call, plan, preference)) {
        const cublasStatus_t status =
            cublas->cublasLtMatmulAlgoGetHeuristic(call->owner->fused, plan->job, plan->left, plan->right, plan->result,
                                                   plan->result, preference, 1, &found, &count);
        plan->possible = !fused_is_refused(status) && cublas_check(call, "cublasLtMatmulAlgoGetHeuristic", status) &&
                         count > 0 && found.state == CUBLAS_STATUS_SUCCESS;
        plan->algorithm = found.algo;
    }
    (void)cublas->cublasLtMatmulPreferenceDestroy(preference);
}

/* ---------------------------------------------------------------- a stream's */

static void close_plan(const struct cublas *cublas, struct fused_plan *plan)
{
    if (plan->result)
        (void)cublas->cublasLtMatrixLayoutDestroy(plan->result);
    if (plan->right)
        (void)cublas->cublasLtMatrixLayoutDestroy(plan->right);
    if (plan->left)
        (void)cublas->cublasLtMatrixLayoutDestroy(plan->left);
    if (plan->job)
        (void)cublas->cublasLtMatmulDescDestroy(plan->job);
}

struct fused_plan *fused_plan_find(const struct cuda_call *call, const struct fused_product *job)
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
    if (describe(call, plan))
        choose_algorithm(call, plan);
    return plan;
}

bool fused_prepare(const struct cuda_call *call)
{
    struct cuda_stream *stream = call->owner;
    return stream->fused || cublas_check(call, "cublasLtCreate", stream->device->cublas.cublasLtCreate(&stream->fused));
}

void fused_plans_free(struct cuda_stream *stream)
{
    while (stream->plans) {
        struct fused_plan *plan = stream->plans;
        stream->plans = plan->next;
        close_plan(&stream->device->cublas, plan);
        free(plan);
    }
    if (stream->fused)
        (void)stream->device->cublas.cublasLtDestroy(stream->fused);
    stream->fused = NULL;
}

cublasStatus_t fused_plan_launch(const struct cuda_stream *stream, const struct fused_plan *plan,
                                 const struct cuda_product *product)
{
    const float one = 1, nought = 0;
    return stream->device->cublas.cublasLtMatmul(
        stream->fused, plan->job, &one, product->b, plan->left, product->a, plan->right, &nought, product->c,
        plan->result, product->c, plan->result, &plan->algorithm, stream->scratch, CUDA_SCRATCH_BYTES, stream->stream);
}
