/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluates the JSONPath expressions in CustomResourceDefinitions: printer columns and the paths of the scale subresource. Supported:
 * ".a.b", "['a.b']", ".a\.b", "[0]", "[-1]", "[*]", ".*", and filters such as "[?(@.type=="Ready")].status" with == and !=.
 */
#ifndef COXSWAIN_STANDALONE_JSON_PATH_H
#define COXSWAIN_STANDALONE_JSON_PATH_H

#include <stdbool.h>

#include "common/json.h"

/* Longer expressions find nothing. */
#define JSON_PATH_TEXT_MAX 4096

/* Called for each value in document order; returns false to stop. */
typedef bool json_path_visitor(void *context, const struct json *value);
/* Visits every value that `path` selects. Returns false when the expression is malformed. */
bool json_path_visit(const struct json *root, const char *path, json_path_visitor *visit, void *context);
/* Returns the first value that `path` selects, or NULL. */
const struct json *json_path_first(const struct json *root, const char *path);

#endif
