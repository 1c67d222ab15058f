/* SPDX-License-Identifier: Apache-2.0
 *
 * What other programs call the tensors of our models: Hugging Face's GPT-2, whose
 * Conv1D layers hold their weights as [in, out], the transpose of ours.
 */
#ifndef COXSWAIN_TRAIN_TENSOR_NAMES_H
#define COXSWAIN_TRAIN_TENSOR_NAMES_H

#include <stdbool.h>

#define FOREIGN_NAME_MAX 128

/* The name that Hugging Face's GPT-2 gives to our tensor ("h0.norm1.weight" is "h.0.ln_1.weight"); false when it has none. */
bool tensor_name_of_gpt2(const char *own, char foreign[FOREIGN_NAME_MAX], bool *ret_transposed);

/* Whether a tensor of a file of GPT-2 is no weight of ours: masks, and the output that is the embedding once more. */
bool tensor_name_is_no_weight(const char *foreign, bool tied);

#endif
