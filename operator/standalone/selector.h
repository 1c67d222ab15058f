/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses and matches the label and field selectors of lists and watches for the embedded API server.
 *   labels: "a=b,c==d,e!=f,g in (x,y),h notin (z),i,!j,k>3,l<5"
 *   fields: "metadata.name=a,status.phase!=Running"
 * All requirements must hold. An absent label satisfies !=, notin and !.
 */
#ifndef COXSWAIN_STANDALONE_SELECTOR_H
#define COXSWAIN_STANDALONE_SELECTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/json.h"
#include "operator/standalone/resource.h"

#define SELECTOR_TEXT_MAX 16384
#define SELECTOR_REQUIREMENTS_MAX 256

struct selector_requirement;

struct selector {
    struct selector_requirement *requirements;
    size_t count;
};

/* Parses a label selector. NULL or "" selects everything. ERROR_INVALID quotes the text at a syntax error. */
int selector_parse_labels(const char *text, struct selector *ret_selector, struct error *error);
/* Parses a field selector. Allows the fields that a real API server allows: metadata.name,
 * metadata.namespace and those of the type. */
int selector_parse_fields(const struct resource *resource, const char *text, struct selector *ret_selector,
                          struct error *error);
void selector_release(struct selector *selector);

/* `labels`: the object's metadata.labels, or NULL. */
bool selector_matches_labels(const struct selector *selector, const struct json *labels);
bool selector_matches_fields(const struct selector *selector, const struct json *object);

#endif
