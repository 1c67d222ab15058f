/* SPDX-License-Identifier: Apache-2.0
 *
 * What a credential plugin answers: an ExecCredential of client.authentication.k8s.io, v1 or v1beta1. Pure.
 */
#ifndef COXSWAIN_KUBE_EXEC_CREDENTIAL_H
#define COXSWAIN_KUBE_EXEC_CREDENTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define EXEC_CREDENTIAL_MAX (1024 * 1024)

/* Owns its strings; release with exec_credential_release. A token, a certificate with its key, or both. */
struct exec_credential {
    char *token;
    char *client_cert_pem, *client_key_pem;
    int64_t expires_ms; /* Unix time; INT64_MAX: it does not say */
};

/* The two versions there are; no plugin in use speaks v1alpha1 alone. */
bool exec_credential_version_is_known(const char *api_version);

/* ERROR_INVALID, ERROR_CORRUPT or ERROR_TOO_LARGE when it is no ExecCredential of that version with something to show. */
int exec_credential_parse(const char *text, size_t length, const char *api_version,
                          struct exec_credential *ret_credential, struct error *error);
void exec_credential_release(struct exec_credential *credential);

#endif
