/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the next token from a model's logits. The choice is a pure function of the logits, the
 * settings and the token's number (Philox keyed by the seed), so that equal seeds give equal texts.
 */
#ifndef COXSWAIN_INFERENCE_SAMPLING_H
#define COXSWAIN_INFERENCE_SAMPLING_H

#include <stdint.h>

struct sampling {
    double temperature; /* divides the logits; 0: always the most probable token */
    int64_t top_k;      /* choose among the k most probable tokens; 0: among all */
    uint64_t seed;
};

/* Returns the token. Among equal logits, the first counts as more probable. `number` counts the
 * tokens from 0. */
int32_t sampling_choose(const struct sampling *sampling, const float *logits, int64_t count, int64_t number);

#endif
