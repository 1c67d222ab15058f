/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads CIFAR-10's binary files, for the data format cifar10 (dataset_cifar10.c). A record is one byte of
 * label and 32 x 32 bytes each of red, green and blue. A file is a sequence of records and nothing else.
 * Reads bytes in memory; the caller maps the file.
 */
#ifndef COXSWAIN_DATA_CIFAR10_H
#define COXSWAIN_DATA_CIFAR10_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define CIFAR10_PIXELS (32 * 32)
#define CIFAR10_CHANNELS 3
#define CIFAR10_VALUES (CIFAR10_PIXELS * CIFAR10_CHANNELS)
#define CIFAR10_RECORD (1 + CIFAR10_VALUES)

/* Returns the number of records in a file of `length` bytes. ERROR_CORRUPT if it is 0 or not
 * whole. */
int cifar10_count(size_t length, int64_t *ret_records, struct error *error);

/* Return the label of the record at `record`, and its pixels, channel by channel, as numbers in [0,
 * 1]. */
uint8_t cifar10_label(const uint8_t *record);
void cifar10_pixels(const uint8_t *record, float values[CIFAR10_VALUES]);

#endif
