/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums the columns of x[rows,columns], for the bias gradients of dense layers on the CPU; rows
 * begin `row` floats apart. Each column is summed in the order of its rows, so that the bits do not
 * depend on the number of threads.
 */
#ifndef COXSWAIN_DEVICE_CPU_COLUMN_SUMS_H
#define COXSWAIN_DEVICE_CPU_COLUMN_SUMS_H

#include "worker/device/cpu/cpu.h"

void column_sums(const struct cpu_call *call, const float *x, int64_t rows, int64_t columns, int64_t row, float *sums,
                 bool accumulate);

#endif
