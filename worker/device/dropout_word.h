/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which elements a dropout layer sets to zero: those whose random word is below a limit.
 * The word is a pure function of the run's seed, layer, step, the example's number in the global
 * batch and the element, computed by a counter-based generator (Philox). CPU code and CUDA kernels
 * compile the same function, so the choice depends neither on the device nor on the number of
 * workers.
 */
#ifndef COXSWAIN_DEVICE_DROPOUT_WORD_H
#define COXSWAIN_DEVICE_DROPOUT_WORD_H

#include "common/philox.h"
#include "worker/device/operations.h"

/* Returns the words of elements 4 block to 4 block + 3 of the operation's example number
 * `example`. */
static inline PHILOX_DEVICE struct philox_words dropout_words(const struct dropout *op, int64_t example, int64_t block)
{
    uint64_t number = (uint64_t)(op->first_example + example);
    uint32_t step = op->values != 0 ? op->values->pass : op->step;
    return philox(op->key, (uint64_t)op->layer << 32 | (uint64_t)block, (uint64_t)step << 32 | number);
}

/* Returns the limit below which a word drops its element. */
static inline PHILOX_DEVICE uint32_t dropout_limit(float rate)
{
    return (uint32_t)((double)rate * 4294967296.0);
}

#endif
