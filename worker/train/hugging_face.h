/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the config.json that lets the transformers library load an exported GPT-2 from its folder
 * (AutoModelForCausalLM.from_pretrained). It looks for the weights in model.safetensors.
 */
#ifndef COXSWAIN_TRAIN_HUGGING_FACE_H
#define COXSWAIN_TRAIN_HUGGING_FACE_H

#include <stdbool.h>

#include "common/error.h"
#include "common/job/job_document.h"

#define HUGGING_FACE_CONFIG "config.json"

/* Whether an export to `path` has one: it has Hugging Face's names and file name, and the model is a gpt preset. */
bool hugging_face_has_config(const struct job_document *job, const char *path);

/* Writes the file beside the export at `path`, if it has one. */
int hugging_face_write_config(const struct job_document *job, const char *path, struct error *error);

#endif
