/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds fields of a role's template that a PodTemplateSpec does not have. The API server finds
 * unknown fields in the template's spec; fields outside the spec are never sent to it.
 */
#ifndef COXSWAIN_CONTROLLER_TEMPLATE_FIELDS_H
#define COXSWAIN_CONTROLLER_TEMPLATE_FIELDS_H

#include "common/json.h"

/* Returns the first unknown field, such as "metadata.label"; NULL: there is none. Free with free().
 * `template` may be NULL. */
char *template_fields_unknown(const struct json *template);

#endif
