/* SPDX-License-Identifier: Apache-2.0
 *
 * One committed checkpoint directory: is it whole, and what is in it.
 */
#ifndef COXSWAIN_CHECKPOINT_IMAGE_H
#define COXSWAIN_CHECKPOINT_IMAGE_H

#include "worker/checkpoint/checkpoint.h"

/* Checks manifest, sizes and digests without opening the tensors. `directory` is the checkpoint's own. */
int checkpoint_image_verify(const char *directory, const struct checkpoint_name *name, struct manifest *ret_manifest,
                            struct error *error);

/* Verifies, then opens. */
int checkpoint_image_open(const char *directory, const struct checkpoint_name *name, struct checkpoint_image *ret_image,
                          struct error *error);

/* To be asked after reading tensors: safetensors_check of every file. */
int checkpoint_image_check(const struct checkpoint_image *image, struct error *error);

/* The manifest of the newest checkpoint in a job's directory that has a readable one; its tensors are not looked at.
 * ERROR_NOT_FOUND when there is none. */
int checkpoint_newest_manifest(const char *directory, struct manifest *ret_manifest, struct error *error);

#endif
