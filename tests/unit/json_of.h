/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_TESTS_JSON_OF_H
#define COXSWAIN_TESTS_JSON_OF_H

#include <criterion/criterion.h>
#include <string.h>

#include "common/json.h"

/* Parses a text of up to 1 MiB that must be JSON. Free the value with json_free. */
static inline struct json *json_of(const char *text)
{
    struct json *value = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(json_parse(text, strlen(text), 1 << 20, &value, &error), 0, "%s: %s", text, error.message);
    return value;
}

#endif
