/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the output of a credential plugin (exec_plugin.h): an ExecCredential of client.authentication.k8s.io, v1 or v1beta1, with a token,
 * a client certificate or both.
 */
#ifndef COXSWAIN_KUBE_EXEC_CREDENTIAL_H
#define COXSWAIN_KUBE_EXEC_CREDENTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define EXEC_CREDENTIAL_MAX (1024 * 1024)

/* A token, a certificate with its key, or both. Owns its strings; release it with exec_credential_release. */
struct exec_credential {
    char *token;
    char *client_cert_pem, *client_key_pem;
    int64_t expires_ms; /* Unix time; INT64_MAX: not given */
};

/* Returns whether `api_version` is client.authentication.k8s.io/v1 or v1beta1. */
bool exec_credential_version_is_known(const char *api_version);

/* Parses an ExecCredential. ERROR_INVALID, ERROR_CORRUPT or ERROR_TOO_LARGE when the text is not an ExecCredential of
 * `api_version`, or holds neither a token nor a certificate. */
int exec_credential_parse(const char *text, size_t length, const char *api_version,
                          struct exec_credential *ret_credential, struct error *error);
void exec_credential_release(struct exec_credential *credential);

#endif
