/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of the columns of x[rows,columns] (bias gradients), whose rows lie `row` apart, rows in order within
 * pieces of columns: the same bits for any number of threads.
 */
#ifndef COXSWAIN_DEVICE_CPU_COLUMN_SUMS_H
#define COXSWAIN_DEVICE_CPU_COLUMN_SUMS_H

#include "worker/device/cpu/cpu.h"

void column_sums(const struct cpu_call *call, const float *x, int64_t rows, int64_t columns, int64_t row, float *sums,
                 bool accumulate);

#endif
