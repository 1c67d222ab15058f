/* SPDX-License-Identifier: Apache-2.0
 *
 * Server-side apply: what a manager says of an object is laid over it; what the
 * manager said before and says no more goes, unless another manager says it too.
 * Who said what stands in metadata.managedFields. Only those who apply are
 * remembered: a field that was changed by an update or a patch belongs to nobody.
 */
#ifndef COXSWAIN_STANDALONE_APPLY_H
#define COXSWAIN_STANDALONE_APPLY_H

#include "operator/standalone/resource.h"

struct apply_request {
    const struct resource *resource;
    const char *manager;
    const char *subresource; /* "status" or "" */
    bool force;              /* take fields over from other managers */
};

/* Applies `config` to `*object` (a copy of what is stored; a new object starts as {}) and makes its new managedFields. A
 * refusal (409 when another manager holds a different value of a field, and `force` is not set), or NULL. */
struct json *apply_configuration(const struct apply_request *request, const struct json *config, struct json *object,
                                 struct json **ret_managed_fields);

#endif
