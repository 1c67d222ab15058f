/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the config.json that lets the transformers library load an exported GPT-2 from its folder
 * (AutoModelForCausalLM.from_pretrained). That library looks for the weights in model.safetensors.
 */
#ifndef COXSWAIN_TRAIN_HUGGING_FACE_H
#define COXSWAIN_TRAIN_HUGGING_FACE_H

#include <stdbool.h>

#include "common/error.h"
#include "common/job/job_document.h"

#define HUGGING_FACE_CONFIG "config.json"

/* Returns whether an export to `path` gets a config.json: its tensors have Hugging Face's names, the file is model.safetensors, and the model
 * is a gpt preset. */
bool hugging_face_has_config(const struct job_document *job, const char *path);

/* Writes config.json beside the export at `path`. Does nothing if hugging_face_has_config is false. */
int hugging_face_write_config(const struct job_document *job, const char *path, struct error *error);

#endif
