/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the config.json that lets the transformers library load an exported GPT-2 from its folder
 * (AutoModelForCausalLM.from_pretrained). It looks for the weights in model.safetensors.
 */
#ifndef COXSWAIN_TRAIN_HUGGING_FACE_H
#define COXSWAIN_TRAIN_HUGGING_FACE_H

#include "common/error.h"
#include "common/job/job_document.h"

/* Writes the file beside the export at `path`, unless the export has other names or another file name, or the model is no gpt preset. */
int hugging_face_write_config(const struct job_document *job, const char *path, struct error *error);

#endif
