/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/cuda.h"

void cuda_dense_backward_weight(const struct cuda_call *call, const struct dense_backward_weight *op)
{
    struct cuda_product product = {op->n, op->k,          op->m,        op->dy,         op->x, op->dweight, true,
                                   false, op->accumulate, call->stored, STORED_FLOAT32, op->dy_row,     0, 0,          op->tf32};
    cuda_multiply(call, &product);
    if (op->dbias)
        cuda_column_sums(call, op->dy, op->m, op->n, row_or_packed(op->dy_row, op->n), op->dbias, op->accumulate);
}
