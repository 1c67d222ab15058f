/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads user impersonation: turns `as`, `as-uid`, `as-groups` and `as-user-extra` of a
 * kubeconfig's user into the request headers that the API server expects.
 */
#ifndef COXSWAIN_KUBE_IMPERSONATION_H
#define COXSWAIN_KUBE_IMPERSONATION_H

#include "common/error.h"
#include "common/json.h"

/* Returns a list of headers, "Impersonate-User: jane" and so on, to be freed with json_free; NULL when the user does not
 * impersonate anyone. A header with an empty value is written "Impersonate-Group;". ERROR_INVALID when a value cannot
 * stand in a header, when groups are given without a user, or when a field has another type than in kubectl. */
int impersonation_read(const struct json *user, struct json **ret_headers, struct error *error);

#endif
