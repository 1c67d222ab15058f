/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/gemm.h"

void cpu_dense_forward(const struct cpu_call *call, const struct dense_forward *op)
{
    gemm_run(call, &(struct gemm){
                       .m = op->m,
                       .n = op->n,
                       .k = op->k,
                       .a = op->x,
                       .a_row = op->k,
                       .a_k = 1,
                       .b = op->weight,
                       .b_k = 1,
                       .b_column = op->k,
                       .c = op->y,
                       .c_row = row_or_packed(op->y_row, op->n),
                       .bias = op->bias,
                       .relu = op->activation == ACTIVATION_RELU,
                   });
    if (op->gelu)
        cpu_gelu_forward(call, &(struct gelu_forward){op->m * op->n, op->y, op->gelu});
}
