/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/gemm.h"

void cpu_dense_backward_data(const struct cpu_call *call, const struct dense_backward_data *op)
{
    gemm_run(call, &(struct gemm){
                       .m = op->m,
                       .n = op->k,
                       .k = op->n,
                       .a = op->dy,
                       .a_row = row_or_packed(op->dy_row, op->n),
                       .a_k = 1,
                       .b = op->weight,
                       .b_k = op->k,
                       .b_column = 1,
                       .c = op->dx,
                       .c_row = op->k,
                       .mask = op->relu_output,
                   });
    if (op->gelu_input)
        cpu_gelu_backward(call, &(struct gelu_backward){op->m * op->k, op->gelu_input, op->dx, op->dx});
}
