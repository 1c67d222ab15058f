/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/gemm_library.h"

#include <stdatomic.h>

#include "common/extremes.h"
#include "worker/device/cpu/gemm_finish.h"
#include "worker/device/cpu/onednn.h"

/* Below these sizes our own kernel is as fast, because it need not copy its operand. */
#define ROWS_MIN 256
#define DEPTH_MIN 64
#define COLUMNS_MIN 64
/* Sums over a long batch, for which our kernel would copy its operand, too: the weight gradient of a wide layer. */
#define DEEP_ROWS_MIN 128
#define DEEP_COLUMNS_MIN 512
#define DEEP_DEPTH_MIN 1024
/* Sizes of a piece. A finished product that is added to another must fit a thread's scratch. */
#define PIECE_ROWS_MAX 256
#define PIECE_COLUMNS 512
#define DEEP_PIECE_COLUMNS 128
_Static_assert(PIECE_ROWS_MAX *PIECE_COLUMNS * sizeof(float) <= CPU_SCRATCH_BYTES, "a piece fits the scratch");

struct product {
    const struct gemm *gemm;
    int64_t rows, columns; /* of a piece */
    int64_t bands;         /* pieces along the rows */
    _Atomic bool failed;
};

static bool is_deep(const struct gemm *gemm)
{
    return gemm->a_k != 1 && gemm->m >= DEEP_ROWS_MIN && gemm->n >= DEEP_COLUMNS_MIN && gemm->k >= DEEP_DEPTH_MIN;
}

bool gemm_library_suits(const struct gemm_kernel *kernel, const struct gemm *gemm)
{
    bool tall = gemm->m >= ROWS_MIN && gemm->n >= COLUMNS_MIN && gemm->k >= DEPTH_MIN;
    return (tall || is_deep(gemm)) && onednn_computes_with(kernel->name);
}

static bool multiply_piece(const struct gemm *gemm, const struct gemm_block *block, float *to, int64_t to_row)
{
    bool a_transposed = gemm->a_k != 1, b_transposed = gemm->b_column != 1;
    struct onednn_matrix a = {gemm->a + block->row * gemm->a_row, a_transposed ? gemm->a_k : gemm->a_row, a_transposed};
    struct onednn_matrix b = {gemm->b + block->column * gemm->b_column, b_transposed ? gemm->b_column : gemm->b_k,
                              b_transposed};
    return onednn_multiply(block->rows, block->columns, gemm->k, &a, &b, to, to_row);
}

static void run_piece(const void *context, int64_t piece, void *scratch)
{
    struct product *product = (struct product *)context;
    const struct gemm *gemm = product->gemm;
    struct gemm_block block = {
        .row = piece % product->bands * product->rows,
        .column = piece / product->bands * product->columns,
    };
    block.rows = int64_min(gemm->m - block.row, product->rows);
    block.columns = int64_min(gemm->n - block.column, product->columns);
    float *in_place = gemm->c + block.row * gemm->c_row + block.column;
    float *to = gemm->accumulate ? scratch : in_place;
    int64_t to_row = gemm->accumulate ? block.columns : gemm->c_row;
    if (!multiply_piece(gemm, &block, to, to_row))
        atomic_store(&product->failed, true);
    else if (gemm->accumulate || gemm->bias || gemm->relu || gemm->mask)
        gemm_finish(gemm, &block, to, to_row);
}

/* Returns the rows of a piece. Each piece copies its rows of a and its columns of b: larger
 * pieces copy less, but there must be several for the threads. */
static int64_t rows_of_a_piece(const struct gemm *gemm)
{
    if (gemm->m >= 2048)
        return PIECE_ROWS_MAX;
    return gemm->m >= 512 && gemm->n >= 384 ? 128 : 64;
}

void gemm_library_run(const struct cpu_call *call, const struct gemm *gemm)
{
    struct product product = {.gemm = gemm, .rows = rows_of_a_piece(gemm)};
    product.columns = int64_min(gemm->n, gemm->m < ROWS_MIN ? DEEP_PIECE_COLUMNS : PIECE_COLUMNS);
    product.bands = (gemm->m + product.rows - 1) / product.rows;
    team_run(call->team, product.bands * ((gemm->n + product.columns - 1) / product.columns), run_piece, &product);
    if (atomic_load(&product.failed))
        error_set(call->error, ERROR_NO_SPACE, "oneDNN has no memory for a product of %lld x %lld x %lld",
                  (long long)gemm->m, (long long)gemm->n, (long long)gemm->k);
}
