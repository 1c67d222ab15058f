/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds fields of a role's pod template that a PodTemplateSpec does not have, such as misspelt
 * ones. The API server finds unknown fields in the template's spec when a pod is created strictly;
 * fields outside the spec are never sent to it and are found here. The executor calls this before
 * it creates pods. Before the job's first pod an unknown field is refused; later it only causes a
 * warning event.
 */
#ifndef COXSWAIN_CONTROLLER_TEMPLATE_FIELDS_H
#define COXSWAIN_CONTROLLER_TEMPLATE_FIELDS_H

#include "common/json.h"

/* Returns the first unknown field, such as "metadata.label"; NULL: there is none. Free with free().
 * `template` may be NULL. */
char *template_fields_unknown(const struct json *template);

#endif
