/* SPDX-License-Identifier: Apache-2.0
 *
 * As whom somebody acts who may act as others: `as`, `as-uid`, `as-groups` and
 * `as-user-extra` of a kubeconfig's user, in the headers that tell the API server.
 */
#ifndef COXSWAIN_KUBE_IMPERSONATION_H
#define COXSWAIN_KUBE_IMPERSONATION_H

#include "common/error.h"
#include "common/json.h"

/* A list of "Impersonate-User: jane" and so on, "Impersonate-Group;" where the value is empty, free with json_free; NULL where
 * the user is himself. ERROR_INVALID for what cannot stand in a header, for groups without a user, and for what is of another
 * type than kubectl reads. */
int impersonation_read(const struct json *user, struct json **ret_headers, struct error *error);

#endif
