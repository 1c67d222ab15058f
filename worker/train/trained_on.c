/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/trained_on.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STANDARDIZED "standardizedBy"
#define CLASSES "classLabels"
#define WORDS "columnWords"

void trained_on_describe(struct json *object, const struct dataset *training)
{
    if (training == NULL)
        return;
    const struct dataset_digests digests = dataset_digests(training);
    if (digests.standardized[0] != '\0')
        json_set_string(object, STANDARDIZED, digests.standardized);
    if (digests.classes[0] != '\0')
        json_set_string(object, CLASSES, digests.classes);
    if (digests.words[0] != '\0')
        json_set_string(object, WORDS, digests.words);
    training_facts_write(dataset_facts(training), object);
}

void trained_on_read(struct trained_on *ret_trained_on, const struct json *object)
{
    struct dataset_digests *digests = &ret_trained_on->digests;
    snprintf(digests->standardized, sizeof digests->standardized, "%s", json_string_at(object, STANDARDIZED, ""));
    snprintf(digests->classes, sizeof digests->classes, "%s", json_string_at(object, CLASSES, ""));
    snprintf(digests->words, sizeof digests->words, "%s", json_string_at(object, WORDS, ""));
    training_facts_read(&ret_trained_on->facts, object);
    ret_trained_on->facts.standardization.digest = (uint32_t)strtoul(digests->standardized, NULL, 16);
}

void trained_on_release(struct trained_on *trained_on)
{
    training_facts_release(&trained_on->facts);
}

static int compare(const char *then, const char *now, const char *what, struct error *error)
{
    if (then[0] == '\0' || now[0] == '\0' || strcmp(then, now) == 0)
        return 0;
    return error_set(error, ERROR_INVALID,
                     "the training data has changed since these weights were trained: %s; put the files back, or train "
                     "again",
                     what);
}

int trained_on_check(const struct trained_on *then, const struct dataset *dataset, struct error *error)
{
    if (dataset == NULL)
        return 0;
    const struct dataset_digests *old = &then->digests, now = dataset_digests(dataset);
    if (compare(old->classes, now.classes, "its labels are others, and so the classes have other numbers", error) < 0)
        return -1;
    if (compare(old->words, now.words, "its columns have other words, which the model would take for one another",
                error) < 0)
        return -1;
    return compare(old->standardized, now.standardized, "data.standardize would give other values", error);
}
