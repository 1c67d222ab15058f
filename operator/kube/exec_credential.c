/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/exec_credential.h"

#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/memory.h"
#include "operator/kube/credentials.h"

bool exec_credential_version_is_known(const char *api_version)
{
    return strcmp(api_version, "client.authentication.k8s.io/v1") == 0 ||
           strcmp(api_version, "client.authentication.k8s.io/v1beta1") == 0;
}

static int check_kind(const struct json *answer, const char *api_version, struct error *error)
{
    const char *kind = json_string_at(answer, "kind", ""), *version = json_string_at(answer, "apiVersion", "");
    if (strcmp(kind, "ExecCredential") != 0)
        return error_set(error, ERROR_INVALID, "its output is not an ExecCredential");
    if (strcmp(version, api_version) != 0)
        return error_set(error, ERROR_INVALID, "its answer is of '%.128s', and the kubeconfig asks for '%.128s'",
                         version, api_version);
    return 0;
}

static int check_pem(const char *pem, const char *name, struct error *error)
{
    return !pem || strstr(pem, "-----BEGIN ")
               ? 0
               : error_set(error, ERROR_INVALID, "its status.%s is not in PEM format", name);
}

static int read_status(const struct json *status, struct exec_credential *credential, struct error *error)
{
    const char *token = json_string_at(status, "token", NULL),
               *expires = json_string_at(status, "expirationTimestamp", "");
    const char *cert = json_string_at(status, "clientCertificateData", NULL);
    const char *key = json_string_at(status, "clientKeyData", NULL);
    if (!token && !cert && !key)
        return error_set(error, ERROR_INVALID,
                         "the credential plugin's answer has neither status.token nor status.clientCertificateData");
    if (token && !kube_token_is_valid(token))
        return error_set(error, ERROR_INVALID,
                         "its status.token is empty, or has characters that are not allowed in an HTTP header");
    if (!cert != !key)
        return error_set(error, ERROR_INVALID,
                         "clientCertificateData and clientKeyData belong together; one is missing");
    if (check_pem(cert, "clientCertificateData", error) < 0 || check_pem(key, "clientKeyData", error) < 0)
        return -1;
    credential->expires_ms = INT64_MAX;
    if (*expires && !clock_parse(expires, &credential->expires_ms))
        return error_set(error, ERROR_INVALID, "its status.expirationTimestamp '%.64s' is not a time", expires);
    credential->token = memory_copy_string(token);
    credential->client_cert_pem = memory_copy_string(cert);
    credential->client_key_pem = memory_copy_string(key);
    return 0;
}

int exec_credential_parse(const char *text, size_t length, const char *api_version,
                          struct exec_credential *ret_credential, struct error *error)
{
    SCOPED_JSON *answer = NULL;
    struct exec_credential credential = {.token = NULL};
    if (json_parse(text, length, EXEC_CREDENTIAL_MAX, &answer, error) < 0)
        return error_wrap(error, "its output is not JSON");
    if (check_kind(answer, api_version, error) < 0 ||
        read_status(json_member(answer, "status"), &credential, error) < 0)
        return -1;
    *ret_credential = credential;
    return 0;
}

void exec_credential_release(struct exec_credential *credential)
{
    free(credential->token);
    free(credential->client_cert_pem);
    free(credential->client_key_pem);
    *credential = (struct exec_credential){.token = NULL};
}
