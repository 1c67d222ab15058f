/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts between YAML and JSON values; the reader is the only wrapper around libyaml. Scalars resolve as in YAML 1.2's core schema, so
 * `no` and `on` stay strings. Aliases are expanded within the limits below. Merge keys, repeated keys, tags and complex keys are refused.
 */
#ifndef COXSWAIN_COMMON_YAML_H
#define COXSWAIN_COMMON_YAML_H

#include "common/json.h"

/* Parses a stream of `---` documents into a JSON array with one value for each document that is not empty. ERROR_INVALID with line and
 * column; ERROR_TOO_LARGE if the text has more than `ceiling` bytes or YAML_NODES_MAX values, or if all aliases together repeat more than
 * YAML_ALIAS_NODES_MAX values or `ceiling` bytes of text. */
#define YAML_NODES_MAX 1000000
#define YAML_ALIAS_NODES_MAX 10000
int yaml_parse(const char *text, size_t length, size_t ceiling, struct json **ret_documents, struct error *error);

/* Prints a value in block style, indented by two spaces, with keys in their order. Quotes strings that would be read as another type. */
int yaml_print(const struct json *value, struct buffer *out, struct error *error);

#endif
