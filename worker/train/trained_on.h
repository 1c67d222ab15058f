/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps with the weights what they were trained on: the manifests of checkpoints and the metadata of exports have the facts that
 * were measured on the training files (training_facts.h), and digests of the examples that data.standardize measures and of the labels that a CSV file's
 * classes have. With other files the same weights would mean something else.
 */
#ifndef COXSWAIN_TRAIN_TRAINED_ON_H
#define COXSWAIN_TRAIN_TRAINED_ON_H

#include "common/error.h"
#include "common/json.h"
#include "worker/data/dataset.h"

/* Zero-initialised: nothing is recorded, as in files of earlier releases. */
struct trained_on {
    struct dataset_digests digests;
    struct training_facts facts;
};

/* Sets members that are strings; none where nothing depends on the files. `training` may be NULL. */
void trained_on_describe(struct json *object, const struct dataset *training);

/* Reads a manifest's description of the model, or the metadata of an export. Release the result. */
void trained_on_read(struct trained_on *ret_trained_on, const struct json *object);
void trained_on_release(struct trained_on *trained_on);

/* ERROR_INVALID if a digest of the dataset, of either split, differs from the recorded one; one that is not recorded passes. `dataset` may be NULL. */
int trained_on_check(const struct trained_on *then, const struct dataset *dataset, struct error *error);

#endif
