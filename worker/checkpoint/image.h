/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens one committed checkpoint directory for reading, and verifies that it is whole: the manifest parses,
 * and every file has the size and digest that the manifest lists. Used to resume training, to evaluate, and
 * to use a trained model. Never modifies the directory.
 */
#ifndef COXSWAIN_CHECKPOINT_IMAGE_H
#define COXSWAIN_CHECKPOINT_IMAGE_H

#include "worker/checkpoint/checkpoint.h"

/* Verifies the manifest and the size and digest of every file. `directory` is the checkpoint's own
 * directory. ERROR_CORRUPT or ERROR_INVALID if the checkpoint is damaged, ERROR_NOT_FOUND if the
 * manifest or a file is missing. The caller releases *ret_manifest here and below (manifest_release). */
int checkpoint_image_verify(const char *directory, const struct checkpoint_name *name, struct manifest *ret_manifest,
                            struct error *error);

/* Verifies a checkpoint, then opens its files. Release it with checkpoint_image_release. */
int checkpoint_image_open(const char *directory, const struct checkpoint_name *name, struct checkpoint_image *ret_image,
                          struct error *error);

/* Opens a checkpoint for its tensors' names, types and shapes alone: verifies the manifest, and the size and header of every file, and reads
 * no numbers. So it takes no longer for a large checkpoint; damage among the numbers is not found. Release it with
 * checkpoint_image_release. */
int checkpoint_image_open_headers(const char *directory, const struct checkpoint_name *name,
                                  struct checkpoint_image *ret_image, struct error *error);

/* Returns whether the last component of a path is a checkpoint's name, and parses that name. Trailing slashes are ignored. */
bool checkpoint_image_is_at(const char *directory, struct checkpoint_name *ret_name);

/* Reads the manifest of the checkpoint in its own directory. Does not look at the tensors. */
int checkpoint_image_manifest(const char *directory, struct manifest *ret_manifest, struct error *error);

/* Calls safetensors_check for every file. To be called after reading tensors. */
int checkpoint_image_check(const struct checkpoint_image *image, struct error *error);

/* Reads the manifest of the newest checkpoint in a job's directory whose manifest is readable. Does
 * not look at the tensors. ERROR_NOT_FOUND if there is none. */
int checkpoint_newest_manifest(const char *directory, struct manifest *ret_manifest, struct error *error);

#endif
