/* SPDX-License-Identifier: Apache-2.0
 *
 * Server-side apply of the embedded API server: merges a manager's configuration into an object, and removes the fields that the manager
 * applied before and now leaves out, unless another manager owns them too. metadata.managedFields records which manager owns which field.
 * If another manager owns a field with another value, the request is refused with 409 unless it has `force`. Unlike with a real API server,
 * only apply makes an owner: a field set by an update or a patch has none.
 */
#ifndef COXSWAIN_STANDALONE_APPLY_H
#define COXSWAIN_STANDALONE_APPLY_H

#include "operator/standalone/resource.h"

struct apply_request {
    const struct resource *resource;
    const char *manager;
    const char *subresource; /* "status" or "" */
    bool force;              /* take ownership of fields from other managers */
};

/* Applies `config` to `object`, a copy of the stored object ({} for a new one), and returns its new
 * managedFields. Refuses with 409 when another manager owns a field with another value and `force`
 * is not set. */
struct json *apply_configuration(const struct apply_request *request, const struct json *config, struct json *object,
                                 struct json **ret_managed_fields);

#endif
