/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the shape of an example in the files with the one that the model takes, for the data formats whose files say
 * a shape (IDX, NPY, CIFAR10). Examples are copied as they are, so 32x32x3 values would be scrambled pixels to a model
 * that takes 3x32x32, though there are as many.
 */
#ifndef COXSWAIN_DATA_VALUE_ORDER_H
#define COXSWAIN_DATA_VALUE_ORDER_H

#include "common/error.h"
#include "worker/model/example_format.h"

/* `stored` has as many values as `wanted`. ERROR_INVALID, unless one shape is the other with neighbouring dimensions
 * joined, which leaves the values in their order: 784 or 28x28 for 28x28x1, but not 28x28 for 14x56. `what` names the
 * values in the message ("images"). */
int value_order_check(const char *what, const struct example_shape *stored, const struct example_shape *wanted,
                      struct error *error);

#endif
