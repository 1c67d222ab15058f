/* SPDX-License-Identifier: Apache-2.0
 *
 * YAML to and from JSON values: the one wrapper around libyaml. Scalars resolve
 * as in YAML 1.2's core schema (so `no` and `on` stay strings), which is what
 * kubectl's manifests mean in practice. Aliases are expanded within the limits below;
 * merge keys, repeated keys, tags and complex keys are refused with line and column.
 */
#ifndef COXSWAIN_COMMON_YAML_H
#define COXSWAIN_COMMON_YAML_H

#include "common/json.h"

/* A stream of `---` documents becomes a JSON array with one value each; empty documents are left out.
 * ERROR_INVALID names line and column; ERROR_TOO_LARGE beyond `ceiling` bytes or YAML_NODES_MAX values, and if all aliases together
 * repeat more than YAML_ALIAS_NODES_MAX values, or more than `ceiling` bytes of text. */
#define YAML_NODES_MAX 1000000
#define YAML_ALIAS_NODES_MAX 10000
int yaml_parse(const char *text, size_t length, size_t ceiling, struct json **ret_documents, struct error *error);

/* Block style, two spaces, keys in their order; strings are quoted where they would read as something else. */
int yaml_print(const struct json *value, struct buffer *out, struct error *error);

#endif
