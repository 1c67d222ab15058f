/* SPDX-License-Identifier: Apache-2.0
 *
 * Translates the names of our models' tensors to those of Hugging Face's GPT-2, for exports with
 * `export.names` and for initial weights. GPT-2's Conv1D layers hold their weights as [in, out],
 * the transpose of ours; `*ret_transposed` says for which tensors.
 */
#ifndef COXSWAIN_TRAIN_TENSOR_NAMES_H
#define COXSWAIN_TRAIN_TENSOR_NAMES_H

#include <stdbool.h>

#define FOREIGN_NAME_MAX 128

/* Finds the name in Hugging Face's GPT-2 of our tensor `own` ("h0.norm1.weight" is
 * "h.0.ln_1.weight"). Returns false if it has none. */
bool tensor_name_of_gpt2(const char *own, char foreign[FOREIGN_NAME_MAX], bool *ret_transposed);

/* Returns whether a tensor in a GPT-2 file is not one of our weights: attention masks and, if
 * `tied`, the output layer, which repeats the embedding. */
bool tensor_name_is_no_weight(const char *foreign, bool tied);

#endif
