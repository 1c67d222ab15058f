/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/column_sums.h"
#include "worker/device/cpu/gemm.h"

void cpu_dense_backward_weight(const struct cpu_call *call, const struct dense_backward_weight *op)
{
    gemm_run(call, &(struct gemm){
                       .m = op->n,
                       .n = op->k,
                       .k = op->m,
                       .a = op->dy,
                       .a_row = 1,
                       .a_k = row_or_packed(op->dy_row, op->n),
                       .b = op->x,
                       .b_k = op->k,
                       .b_column = 1,
                       .c = op->dweight,
                       .c_row = op->k,
                       .accumulate = op->accumulate,
                   });
    if (op->dbias)
        column_sums(call, op->dy, op->m, op->n, row_or_packed(op->dy_row, op->n), op->dbias, op->accumulate);
}
