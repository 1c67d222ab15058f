/* SPDX-License-Identifier: Apache-2.0
 *
 * The next token, chosen among a model's logits: a pure function of them, the
 * settings, and the token's number (Philox keyed by the seed), so that equal
 * seeds give equal texts.
 */
#ifndef COXSWAIN_INFERENCE_SAMPLING_H
#define COXSWAIN_INFERENCE_SAMPLING_H

#include <stdint.h>

struct sampling {
    double temperature; /* what the logits are divided by; 0: always the most probable token */
    int64_t top_k;      /* among so many of the most probable tokens; 0: among all */
    uint64_t seed;
};

/* Of equal logits the first counts as the more probable. `number`: of the token, from 0. */
int32_t sampling_choose(const struct sampling *sampling, const float *logits, int64_t count, int64_t number);

#endif
