/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/trained_on.h"

#include <stdio.h>
#include <string.h>

#define STANDARDIZED "standardizedBy"
#define CLASSES "classLabels"

void trained_on_describe(struct json *object, const struct dataset *training)
{
    if (training == NULL)
        return;
    const struct dataset_digests digests = dataset_digests(training);
    if (digests.standardized[0] != '\0')
        json_set_string(object, STANDARDIZED, digests.standardized);
    if (digests.classes[0] != '\0')
        json_set_string(object, CLASSES, digests.classes);
}

static struct dataset_digests of_texts(const char *standardized, const char *classes)
{
    struct dataset_digests digests;
    snprintf(digests.standardized, sizeof digests.standardized, "%s", standardized ? standardized : "");
    snprintf(digests.classes, sizeof digests.classes, "%s", classes ? classes : "");
    return digests;
}

struct dataset_digests trained_on_read(const struct json *object)
{
    return of_texts(json_string_at(object, STANDARDIZED, NULL), json_string_at(object, CLASSES, NULL));
}

struct dataset_digests trained_on_read_file(const struct safetensors_file *file)
{
    return of_texts(safetensors_metadata(file, STANDARDIZED), safetensors_metadata(file, CLASSES));
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

int trained_on_check(const struct dataset_digests *then, const struct dataset *dataset, struct error *error)
{
    if (dataset == NULL)
        return 0;
    const struct dataset_digests now = dataset_digests(dataset);
    if (compare(then->classes, now.classes, "its labels are others, and so the classes have other numbers", error) < 0)
        return -1;
    return compare(then->standardized, now.standardized, "data.standardize would give other values", error);
}
