/* SPDX-License-Identifier: Apache-2.0
 *
 * Sweeps and trials for tests, written as YAML in the test itself.
 */
#ifndef COXSWAIN_TESTS_SWEEP_SCENE_H
#define COXSWAIN_TESTS_SWEEP_SCENE_H

#include <criterion/criterion.h>

#include "common/job/training_sweep.h"
#include "common/yaml.h"

#define SWEEP_HEAD                                                                                                     \
    "metadata: {name: s, namespace: n, uid: u, resourceVersion: '7', generation: 1}\n"                                 \
    "spec:\n"                                                                                                          \
    "  template:\n"                                                                                                    \
    "    coxswain:\n"                                                                                                  \
    "      strategy: {type: OneDevice}\n"                                                                              \
    "      model: {preset: mlp}\n"                                                                                     \
    "      data: {format: Synthetic, examples: 1000}\n"                                                                \
    "      training: {steps: 10, batchSize: 100, optimizer: {type: SGD}}\n"

static inline struct json *yaml_value(const char *yaml)
{
    struct error error = ERROR_INIT;
    struct json *documents = NULL;
    cr_assert(yaml_parse(yaml, strlen(yaml), 1024 * 1024, &documents, &error) == 0, "%s: %s", yaml, error.message);
    struct json *value = json_detach(documents, json_first(documents));
    json_free(documents);
    return value;
}

/* Release with training_sweep_release. */
static inline struct training_sweep sweep_of(const struct json *object)
{
    struct training_sweep sweep;
    struct error error = ERROR_INIT;
    cr_assert(training_sweep_parse(object, &sweep, &error) == 0, "%s", error.message);
    return sweep;
}

static inline struct training_sweep sweep_from(const char *yaml)
{
    SCOPED_JSON *object = yaml_value(yaml);
    return sweep_of(object);
}

#endif
