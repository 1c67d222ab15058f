/* SPDX-License-Identifier: Apache-2.0
 *
 * Records with trained weights which data they were trained on, so that they are not used with other data, where the same
 * numbers would mean something else. The record is in the manifests of checkpoints and in the metadata of exports. It has
 * the facts that were measured on the training files (training_facts.h), and digests of the standardized examples and of
 * the labels and words of CSV files.
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

/* Writes the record as members of `object`, all of them strings. Writes nothing if the weights do not depend on such facts. `training`
 * may be NULL. */
void trained_on_describe(struct json *object, const struct dataset *training);

/* Reads the record from a manifest's description of the model, or from the metadata of an export. Release the result. */
void trained_on_read(struct trained_on *ret_trained_on, const struct json *object);
void trained_on_release(struct trained_on *trained_on);

/* Checks that `dataset`, either split, is the data that the weights were trained on. ERROR_INVALID if one of its digests differs from the
 * recorded one; a digest that was not recorded is not checked. `dataset` may be NULL. */
int trained_on_check(const struct trained_on *then, const struct dataset *dataset, struct error *error);

#endif
