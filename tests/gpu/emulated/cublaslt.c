/* SPDX-License-Identifier: Apache-2.0
 *
 * libcublasLt.so.0, as strict as the manual: an algorithm is valid only for the shapes, types, epilogue and alignments with which it was
 * requested, and needs the workspace that it names. The request determines the order of its sums. A GELU's rows are multiples of eight,
 * and its matrix is aligned to 16 bytes.
 *
 * With EMULATED_LT=none it finds no algorithm; with EMULATED_LT=refuses it fails to run the ones that it finds, and CUDA keeps that as an
 * error. What can only be a mistake of the worker aborts, since the worker would hide it by another path.
 */
#include <cublasLt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/emulated/graph.h"
#include "tests/gpu/emulated/product.h"
#include "tests/gpu/emulated/stream.h"

struct cublasLtContext {
    int nothing;
};
struct cublasLtMatmulDescOpaque {
    cublasComputeType_t compute;
    cublasOperation_t a_operation, b_operation;
    uint32_t epilogue;
    const void *bias;
    void *aux;
    int64_t aux_stride;
};
struct cublasLtMatrixLayoutOpaque {
    cudaDataType type;
    int64_t rows, columns, stride;
};
struct cublasLtMatmulPreferenceOpaque {
    size_t workspace_bytes;
    uint32_t schemes, alignments[3]; /* of A, of B, and of C and D */
};

/* The contents of an algorithm's bytes. */
struct algorithm {
    int64_t m, n, k;
    uint32_t epilogue, compute, types, workspace_bytes;
    uint8_t alignments[8]; /* of A, B, C and D, the bias, and a GELU's matrix; 0: absent */
    uint32_t first;        /* index of the term with which a sum begins */
};
_Static_assert(sizeof(struct algorithm) <= sizeof(cublasLtMatmulAlgo_t), "an algorithm is 64 bytes");

static cublasStatus_t made(const void *memory)
{
    return memory ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = calloc(1, sizeof **handle);
    return made(*handle);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---------------------------------------------------------------- descriptions */

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *job, cublasComputeType_t compute, cudaDataType scale)
{
    if (scale != CUDA_R_32F)
        return CUBLAS_STATUS_INVALID_VALUE;
    *job = calloc(1, sizeof **job);
    if (*job) {
        (*job)->compute = compute;
        (*job)->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    }
    return made(*job);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t job)
{
    free(job);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t take(void *to, size_t wanted, const void *value, size_t bytes)
{
    if (bytes != wanted)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t job, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return take(&job->a_operation, sizeof job->a_operation, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return take(&job->b_operation, sizeof job->b_operation, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return take(&job->epilogue, sizeof job->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return take(&job->bias, sizeof job->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        return take(&job->aux, sizeof job->aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        return take(&job->aux_stride, sizeof job->aux_stride, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t stride)
{
    if (rows == 0 || columns == 0 || stride < (int64_t)rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    *layout = calloc(1, sizeof **layout);
    if (*layout)
        **layout = (struct cublasLtMatrixLayoutOpaque){type, (int64_t)rows, (int64_t)columns, stride};
    return made(*layout);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

/* The manual's defaults: no work space, any scheme, 256 bytes. */
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    *preference = calloc(1, sizeof **preference);
    if (*preference)
        **preference = (struct cublasLtMatmulPreferenceOpaque){0, 7, {256, 256, 256}};
    return made(*preference);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

/* C and D have the same alignment. */
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t bytes)
{
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return take(&preference->workspace_bytes, sizeof preference->workspace_bytes, value, bytes);
    if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        return take(&preference->schemes, sizeof preference->schemes, value, bytes);
    uint32_t *alignment = &preference->alignments[attribute == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES   ? 0
                                                  : attribute == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES ? 1
                                                                                                            : 2];
    return take(alignment, sizeof *alignment, value, bytes);
}

/* ---------------------------------------------------------------- products */

static int64_t rows_of(cublasLtMatrixLayout_t layout, cublasOperation_t operation)
{
    return operation == CUBLAS_OP_N ? layout->rows : layout->columns;
}

static int64_t columns_of(cublasLtMatrixLayout_t layout, cublasOperation_t operation)
{
    return operation == CUBLAS_OP_N ? layout->columns : layout->rows;
}

static bool types_fit(cublasLtMatmulDesc_t job, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                      cublasLtMatrixLayout_t d)
{
    if (a->type != b->type)
        return false;
    if (a->type == CUDA_R_32F)
        return d->type == CUDA_R_32F &&
               (job->compute == CUBLAS_COMPUTE_32F || job->compute == CUBLAS_COMPUTE_32F_FAST_TF32);
    return job->compute == CUBLAS_COMPUTE_32F && (d->type == a->type || d->type == CUDA_R_32F);
}

static bool keeps_gelu(uint32_t epilogue)
{
    return epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
           epilogue == CUBLASLT_EPILOGUE_DGELU;
}

static _Noreturn void mistake(const char *what)
{
    fprintf(stderr, "cublasLt: %s\n", what);
    abort();
}

static bool is_set(const char *value)
{
    const char *setting = getenv("EMULATED_LT");
    return setting && strcmp(setting, value) == 0;
}

static cublasStatus_t check(cublasLtMatmulDesc_t job, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                            cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d)
{
    const bool adds = job->epilogue == CUBLASLT_EPILOGUE_BIAS || job->epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    const bool known = adds || keeps_gelu(job->epilogue) || job->epilogue == CUBLASLT_EPILOGUE_DEFAULT;
    if (rows_of(a, job->a_operation) != d->rows || columns_of(a, job->a_operation) != rows_of(b, job->b_operation) ||
        columns_of(b, job->b_operation) != d->columns || c->rows != d->rows || c->columns != d->columns ||
        c->type != d->type || !known || (adds && !job->bias))
        mistake("matrices, epilogue and bias do not fit each other");
    if (keeps_gelu(job->epilogue) && (!job->aux || job->aux_stride % 8 != 0 || job->aux_stride < d->rows))
        mistake("a GELU's matrix is missing, or its rows do not come in eights");
    return types_fit(job, a, b, d) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

static struct algorithm algorithm_for(cublasLtMatmulDesc_t job, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t d)
{
    const int64_t k = columns_of(a, job->a_operation);
    return (struct algorithm){.m = d->rows,
                              .n = d->columns,
                              .k = k,
                              .epilogue = job->epilogue,
                              .compute = (uint32_t)job->compute,
                              .types = (uint32_t)a->type << 8 | (uint32_t)d->type,
                              .workspace_bytes = k > 64 ? 4096 : 0};
}

/* An alignment above 128 bytes makes no difference. */
static uint8_t alignment_of(uint64_t place)
{
    const uint64_t bits = place | 128;
    return (uint8_t)(bits & -bits);
}

/* Another alignment or epilogue gives another algorithm, with sums that begin with another term. */
static void note_alignments(struct algorithm *algorithm, cublasLtMatmulDesc_t job,
                            cublasLtMatmulPreference_t preference)
{
    for (int i = 0; i < 3; i++)
        algorithm->alignments[i] = alignment_of(preference->alignments[i]);
    algorithm->alignments[3] = job->bias ? alignment_of((uintptr_t)job->bias) : 0;
    algorithm->alignments[4] = job->aux ? alignment_of((uintptr_t)job->aux) : 0;
    for (int i = 0; i < 5; i++)
        algorithm->first = algorithm->first * 3 + algorithm->alignments[i];
    algorithm->first = (uint32_t)((algorithm->first + algorithm->epilogue) % (uint64_t)algorithm->k);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t job,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *found, int *ret_count)
{
    const cublasStatus_t status = check(job, a, b, c, d);
    *ret_count = 0;
    if (!handle || wanted < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    struct algorithm algorithm = algorithm_for(job, a, d);
    note_alignments(&algorithm, job, preference);
    if (is_set("none") || (keeps_gelu(job->epilogue) && (uintptr_t)job->aux % 16 != 0) ||
        algorithm.workspace_bytes > preference->workspace_bytes)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    memset(found, 0, sizeof *found);
    memcpy(&found->algo, &algorithm, sizeof algorithm);
    found->workspaceSize = algorithm.workspace_bytes;
    *ret_count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

/* Returns whether the algorithm is for these shapes, types and epilogue, with any alignments. */
static bool is_for(const struct algorithm *algorithm, cublasLtMatmulDesc_t job, cublasLtMatrixLayout_t a,
                   cublasLtMatrixLayout_t d)
{
    struct algorithm expected = algorithm_for(job, a, d);
    memcpy(expected.alignments, algorithm->alignments, sizeof expected.alignments);
    expected.first = algorithm->first;
    return memcmp(algorithm, &expected, sizeof expected) == 0;
}

static bool lies_so(const void *pointer, uint64_t alignment)
{
    return (uintptr_t)pointer % alignment == 0;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t job, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                              const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    struct algorithm algorithm;
    const cublasStatus_t status = check(job, a_layout, b_layout, c_layout, d_layout);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    memcpy(&algorithm, algo, sizeof algorithm);
    if (!handle || c != d || !is_for(&algorithm, job, a_layout, d_layout))
        mistake("the algorithm is for something else");
    if (!lies_so(a, algorithm.alignments[0]) || !lies_so(b, algorithm.alignments[1]) ||
        !lies_so(d, algorithm.alignments[2]) || (job->bias && !lies_so(job->bias, algorithm.alignments[3])) ||
        (job->aux && !lies_so(job->aux, algorithm.alignments[4])) || workspace_bytes < algorithm.workspace_bytes ||
        !lies_so(workspace, 256))
        mistake("something is not aligned as the algorithm was told, or the work space is too small");
    if (is_set("refuses")) {
        (void)emulated_fail(cudaErrorInvalidValue);
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    const bool adds = job->epilogue & CUBLASLT_EPILOGUE_BIAS;
    const struct product product = {.m = algorithm.m,
                                    .n = algorithm.n,
                                    .k = algorithm.k,
                                    .a_stride = a_layout->stride,
                                    .b_stride = b_layout->stride,
                                    .c_stride = d_layout->stride,
                                    .a_operation = job->a_operation,
                                    .b_operation = job->b_operation,
                                    .alpha = *(const float *)alpha,
                                    .beta = *(const float *)beta,
                                    .c = d,
                                    .a = a,
                                    .b = b,
                                    .operands = a_layout->type,
                                    .result = d_layout->type,
                                    .tf32 = job->compute == CUBLAS_COMPUTE_32F_FAST_TF32,
                                    .bias = adds ? job->bias : NULL,
                                    .aux = job->aux,
                                    .aux_stride = job->aux_stride,
                                    .gelu = (job->epilogue & ~(uint32_t)CUBLASLT_EPILOGUE_BIAS) ==
                                            CUBLASLT_EPILOGUE_GELU_AUX,
                                    .gelu_backward = job->epilogue == CUBLASLT_EPILOGUE_DGELU,
                                    .workspace = workspace,
                                    .workspace_bytes = algorithm.workspace_bytes,
                                    .first = algorithm.first};
    return emulated_multiply(stream, &product);
}
