/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs for tests, written as YAML in the test itself.
 */
#ifndef COXSWAIN_TESTS_JOB_MANIFEST_H
#define COXSWAIN_TESTS_JOB_MANIFEST_H

#include <criterion/criterion.h>
#include <string.h>

#include "common/yaml.h"

static inline struct json *manifest_value(const char *yaml)
{
    struct error error = ERROR_INIT;
    struct json *documents = NULL;
    cr_assert(yaml_parse(yaml, strlen(yaml), 1024 * 1024, &documents, &error) == 0, "%s: %s", yaml, error.message);
    struct json *value = json_detach(documents, json_first(documents));
    json_free(documents);
    return value;
}

static inline void expect_printed(const struct json *value, const char *text)
{
    SCOPED_BUFFER out = BUFFER_INIT(1024 * 1024);
    cr_assert(json_print(value, &out, NULL) == 0);
    cr_expect_str_eq(buffer_text(&out), text);
}

#endif
