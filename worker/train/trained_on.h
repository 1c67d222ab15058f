/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps with the weights what they were trained on: in the manifests of checkpoints and in the metadata of exports are
 * digests of the examples that data.standardize measures and of the labels that a CSV file's classes have. With other
 * files the same weights would mean something else.
 */
#ifndef COXSWAIN_TRAIN_TRAINED_ON_H
#define COXSWAIN_TRAIN_TRAINED_ON_H

#include "common/error.h"
#include "common/json.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/data/dataset.h"

/* Sets members that are strings; none where nothing depends on the files. `training` may be NULL. */
void trained_on_describe(struct json *object, const struct dataset *training);

/* What is not told, as by earlier releases, is empty. */
struct dataset_digests trained_on_read(const struct json *object);
struct dataset_digests trained_on_read_file(const struct safetensors_file *file);

/* ERROR_INVALID if a digest of the dataset, of either split, is another one than `then`; what is not told passes. `dataset` may be NULL. */
int trained_on_check(const struct dataset_digests *then, const struct dataset *dataset, struct error *error);

#endif
