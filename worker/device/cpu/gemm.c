/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/gemm.h"

#include "worker/device/cpu/gemm_finish.h"
#include "worker/device/cpu/gemm_library.h"
#include "worker/device/cpu/pack.h"

/* Sums of one panel's chunk. */
#define TILE_FLOATS (GEMM_CHUNK * GEMM_COLUMNS_MAX)

static int64_t panels_of(const struct gemm_kernel *kernel, int64_t columns)
{
    return (columns + kernel->columns - 1) / kernel->columns;
}

static int vectors_for(const struct gemm_kernel *kernel, int64_t columns)
{
    return (int)((columns + kernel->vector - 1) / kernel->vector);
}

/* Whether full tiles may be written straight into c: nothing is left to do to them. */
static bool goes_direct(const struct gemm_kernel *kernel, const struct gemm *gemm, const struct gemm_block *block)
{
    return !gemm->bias && !gemm->relu && !gemm->mask && !gemm->accumulate && block->columns % kernel->vector == 0;
}

/* Rows of a block of a, as a tile reads them: element (row, k) is at start[row * row_stride + k * k_stride]. */
struct rows {
    const float *start;
    int64_t row_stride, k_stride;
};

/* A transposed a costs a cache line for every six elements; where sums are long its block is packed first, and used for
 * several panels, since it comes from far away. */
static bool packs_rows(const struct gemm *gemm)
{
    return gemm->a_row == 1 && gemm->a_k != 1 && gemm->k > GEMM_DEPTH;
}

static struct rows rows_of(const struct gemm *gemm, const struct gemm_block *block, int64_t k, int64_t depth,
                           float *packed)
{
    const float *start = gemm->a + block->row * gemm->a_row + k * gemm->a_k;
    if (!packs_rows(gemm))
        return (struct rows){start, gemm->a_row, gemm->a_k};
    pack_rows(start, gemm->a_k, depth, block->rows, packed, GEMM_CHUNK);
    return (struct rows){packed, 1, GEMM_CHUNK};
}

static void multiply_block(const struct gemm_kernel *kernel, const struct gemm *gemm, const struct gemm_block *block,
                           const struct rows *rows, int64_t depth, bool accumulate, const float *panel, float *tiles)
{
    int vectors = vectors_for(kernel, block->columns);
    bool direct = goes_direct(kernel, gemm, block);
    struct gemm_tile tile = {
        .a_inner = rows->k_stride,
        .b = panel,
        .b_inner = kernel->columns,
        .inner = depth,
        .outer = 1,
        .accumulate = accumulate,
    };
    for (int64_t r = 0; r < block->rows; r += GEMM_ROWS) {
        for (int64_t i = 0; i < GEMM_ROWS; i++)
            tile.a[i] = rows->start + (r + i < block->rows ? r + i : block->rows - 1) * rows->row_stride;
        bool in_place = direct && r + GEMM_ROWS <= block->rows;
        tile.c = in_place ? gemm->c + (block->row + r) * gemm->c_row + block->column : tiles + r * kernel->columns;
        tile.c_row = in_place ? gemm->c_row : kernel->columns;
        kernel->tile[vectors - 1](&tile);
    }
}

/* The rows that are not in c yet. */
static void finish_block(const struct gemm_kernel *kernel, const struct gemm *gemm, const struct gemm_block *block,
                         const float *tiles)
{
    int64_t done = goes_direct(kernel, gemm, block) ? block->rows / GEMM_ROWS * GEMM_ROWS : 0;
    struct gemm_block rest = {block->row + done, block->rows - done, block->column, block->columns};
    gemm_finish(gemm, &rest, tiles + done * kernel->columns, kernel->columns);
}

/* Sums are cut into blocks of equal depth, at most GEMM_DEPTH, in whole groups of 8. */
static int64_t depth_step(int64_t k)
{
    int64_t blocks = k > 0 ? (k + GEMM_DEPTH - 1) / GEMM_DEPTH : 1;
    return k > 0 ? ((k + blocks - 1) / blocks + 7) / 8 * 8 : GEMM_DEPTH;
}

static void pack_panel(const struct gemm_kernel *kernel, const struct gemm *gemm, const struct gemm_block *block,
                       int64_t k, int64_t depth, float *panel)
{
    const float *b = gemm->b + k * gemm->b_k + block->column * gemm->b_column;
    if (gemm->b_column == 1)
        pack_rows(b, gemm->b_k, depth, block->columns, panel, kernel->columns);
    else
        pack_transposed(b, gemm->b_column, depth, block->columns, panel, kernel->columns);
}

/* Panel `number` of a block. */
static struct gemm_block panel_of(const struct gemm_kernel *kernel, const struct gemm_block *block, int64_t number)
{
    int64_t from = number * kernel->columns, left = block->columns - from;
    return (struct gemm_block){block->row, block->rows, block->column + from,
                               left < kernel->columns ? left : kernel->columns};
}

static void run_block(const struct gemm_kernel *kernel, const struct gemm *gemm, const struct gemm_block *block,
                      void *scratch)
{
    float *packed = scratch, *panel = packed + GEMM_DEPTH * GEMM_CHUNK, *tiles = panel + GEMM_DEPTH * GEMM_COLUMNS_MAX;
    int64_t step = depth_step(gemm->k), panels = panels_of(kernel, block->columns);
    for (int64_t k = 0; k < gemm->k || k == 0; k += step) {
        int64_t depth = gemm->k - k < step ? gemm->k - k : step;
        struct rows rows = rows_of(gemm, block, k, depth, packed);
        for (int64_t p = 0; p < panels; p++) {
            struct gemm_block part = panel_of(kernel, block, p);
            pack_panel(kernel, gemm, &part, k, depth, panel);
            multiply_block(kernel, gemm, &part, &rows, depth, k > 0, panel, tiles + p * TILE_FLOATS);
        }
    }
    for (int64_t p = 0; p < panels; p++) {
        struct gemm_block part = panel_of(kernel, block, p);
        finish_block(kernel, gemm, &part, tiles + p * TILE_FLOATS);
    }
}

/* How c is cut into blocks. Unlike a sum over a batch this may follow the number of threads: no element of c is touched
 * by two blocks, and each is summed in the same order in any. */
struct partition {
    const struct gemm_kernel *kernel;
    const struct gemm *gemm;
    int64_t chunk, chunks;  /* of rows */
    int64_t width, columns; /* of a block, and blocks side by side */
};

static struct partition partition_of(const struct gemm_kernel *kernel, const struct gemm *gemm, int64_t wanted)
{
    struct partition partition = {.kernel = kernel, .gemm = gemm};
    partition.width = (packs_rows(gemm) ? GEMM_PANELS : 1) * kernel->columns;
    partition.columns = (gemm->n + partition.width - 1) / partition.width;
    int64_t chunks = (gemm->m + GEMM_CHUNK - 1) / GEMM_CHUNK;
    while (chunks * partition.columns < wanted && gemm->m / (chunks * 2) >= 4 * GEMM_ROWS)
        chunks *= 2;
    int64_t rows = (gemm->m + chunks - 1) / chunks;
    partition.chunk = (rows + GEMM_ROWS - 1) / GEMM_ROWS * GEMM_ROWS;
    partition.chunks = (gemm->m + partition.chunk - 1) / partition.chunk;
    return partition;
}

static void run_piece(const void *context, int64_t piece, void *scratch)
{
    const struct partition *partition = context;
    const struct gemm *gemm = partition->gemm;
    struct gemm_block block = {
        .row = piece % partition->chunks * partition->chunk,
        .column = piece / partition->chunks * partition->width,
    };
    block.rows = gemm->m - block.row < partition->chunk ? gemm->m - block.row : partition->chunk;
    block.columns = gemm->n - block.column < partition->width ? gemm->n - block.column : partition->width;
    run_block(partition->kernel, gemm, &block, scratch);
}

void gemm_run(const struct cpu_call *call, const struct gemm *gemm)
{
    if (gemm->m == 0 || gemm->n == 0)
        return;
    if (gemm_library_suits(call->kernel, gemm)) {
        gemm_library_run(call, gemm);
        return;
    }
    int threads = team_threads(call->team);
    struct partition partition = partition_of(call->kernel, gemm, threads > 1 ? 4 * threads : 1);
    team_run(call->team, partition.chunks * partition.columns, run_piece, &partition);
}

void gemm_serial(const struct gemm_kernel *kernel, const struct gemm *gemm, void *scratch)
{
    if (gemm->m == 0 || gemm->n == 0)
        return;
    struct partition partition = partition_of(kernel, gemm, 1);
    for (int64_t piece = 0; piece < partition.chunks * partition.columns; piece++)
        run_piece(&partition, piece, scratch);
}
