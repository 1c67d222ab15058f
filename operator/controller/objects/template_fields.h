/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of a role's template that a PodTemplateSpec does not have. Those of its spec
 * the API server finds; what lies around it never gets there.
 */
#ifndef COXSWAIN_CONTROLLER_TEMPLATE_FIELDS_H
#define COXSWAIN_CONTROLLER_TEMPLATE_FIELDS_H

#include "common/json.h"

/* The first of them, as "metadata.label"; NULL: there is none. Free with free(). `template` NULL: no template. */
char *template_fields_unknown(const struct json *template);

#endif
