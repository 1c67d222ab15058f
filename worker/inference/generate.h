/* SPDX-License-Identifier: Apache-2.0
 *
 * --generate: a language model goes on with a prompt, on standard output, token
 * by token. Of models over bytes prompt and result are text; of others both are
 * numbers, since no tokenizer is part of a job.
 *
 * Once the context is full, its older half is forgotten and the newer half read
 * again, so that a text may be of any length.
 */
#ifndef COXSWAIN_INFERENCE_GENERATE_H
#define COXSWAIN_INFERENCE_GENERATE_H

#include "worker/inference/sampling.h"
#include "worker/model/decoder.h"
#include "worker/train/trainer.h"

/* "17 4 250", also with commas, as tokens; ERROR_INVALID shows what is none. free() the result. */
int generate_parse_tokens(const char *text, int32_t **ret_tokens, int64_t *ret_count, struct error *error);

/* Chooses `count` tokens behind the prompt. `emit` gets the prompt's, once that is known to fit, then each at once; with -1 it ends
 * it all. */
typedef int generate_emit(void *context, int32_t token, struct error *error);
struct continuation {
    struct decoder *decoder;
    int64_t vocabulary;
    struct sampling sampling;
    generate_emit *emit;
    void *context;
};
int generate_tokens(const struct continuation *generation, const int32_t *prompt, int64_t prompt_count, int64_t count,
                    struct error *error);

int generate_run(const struct arguments *arguments, const struct identity *identity, const struct job_document *job,
                 enum exit_code *ret_code, struct error *error);

#endif
