/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/column_sums.h"
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
