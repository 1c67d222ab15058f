/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements --generate: a language model continues a prompt and prints each token to standard
 * output. For models over bytes, prompt and result are text; for other models both are token
 * numbers, since a job contains no tokenizer.
 *
 * Once the context is full, its older half is dropped and the newer half is read again, so that a
 * text may have any length.
 */
#ifndef COXSWAIN_INFERENCE_GENERATE_H
#define COXSWAIN_INFERENCE_GENERATE_H

#include "worker/inference/sampling.h"
#include "worker/model/decoder.h"
#include "worker/train/trainer.h"

/* Parses token numbers separated by spaces or commas ("17 4 250"). ERROR_INVALID quotes what is not
 * a token. free() the result. */
int generate_parse_tokens(const char *text, int32_t **ret_tokens, int64_t *ret_count, struct error *error);

/* Called for each token, first those of the prompt. Returns -1 to stop. */
typedef int generate_emit(void *context, int32_t token, struct error *error);
struct continuation {
    struct decoder *decoder;
    int64_t vocabulary;
    struct sampling sampling;
    generate_emit *emit;
    void *context;
};
/* Generates `count` tokens after the prompt. Emits nothing before it has checked that the prompt
 * fits. */
int generate_tokens(const struct continuation *generation, const int32_t *prompt, int64_t prompt_count, int64_t count,
                    struct error *error);

/* Runs --generate. On failure *ret_code is the process's exit code. */
int generate_run(const struct arguments *arguments, const struct identity *identity, const struct job_document *job,
                 enum exit_code *ret_code, struct error *error);

#endif
