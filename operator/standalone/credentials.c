/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/credentials.h"

#include <string.h>

#include "common/base64.h"
#include "common/buffer.h"
#include "common/certificate.h"
#include "common/clock.h"
#include "common/contract/state_directory.h"
#include "common/memory.h"
#include "common/token.h"
#include "operator/standalone/private_file.h"

#define FILE_MAX 65536
#define DAY_S ((int64_t)24 * 3600)
#define VALID_DAYS 3650
#define RENEW_DAYS 30

/* ---- certificates ---- */

static int make_certificates(struct credentials *credentials, struct error *error)
{
    SCOPED(certificate_release) struct certificate authority = {0};
    int64_t now_s = clock_now_ms() / 1000;
    struct certificate_request request = {.common_name = "coxswain-standalone-ca",
                                          .is_authority = true,
                                          .from_s = now_s - 3600,
                                          .until_s = now_s + VALID_DAYS * DAY_S};
    if (certificate_make(&request, NULL, &authority, error) < 0)
        return -1;
    request.common_name = "coxswain-standalone";
    request.is_authority = false;
    request.names = "IP:127.0.0.1,DNS:localhost";
    request.extended_use = "serverAuth";
    struct certificate server;
    if (certificate_make(&request, &authority, &server, error) < 0)
        return -1;
    credentials->ca_pem = memory_copy_string(authority.certificate_pem);
    credentials->cert_pem = server.certificate_pem;
    credentials->key_pem = server.key_pem;
    return 0;
}

static bool is_usable(const char *pem)
{
    int64_t until_s;
    return certificate_end(pem, &until_s, NULL) == 0 && until_s - clock_now_ms() / 1000 >= RENEW_DAYS * DAY_S;
}

/* ---- files ---- */

static char *file_path(const char *directory, const char *name)
{
    return memory_format("%s/" STATE_CERTIFICATES "/%s", directory, name);
}

/* NULL when it is not there or cannot be read. */
static char *read_file(const char *directory, const char *name)
{
    SCOPED_FREE char *path = file_path(directory, name);
    SCOPED_BUFFER text = BUFFER_INIT(FILE_MAX);
    return buffer_read_file(&text, path, NULL) == 0 && text.length ? buffer_take(&text) : NULL;
}

static int write_file(const char *directory, const char *name, const char *text, struct error *error)
{
    SCOPED_FREE char *path = file_path(directory, name);
    return private_file_write(path, text, strlen(text), error);
}

static bool read_all(const char *directory, struct credentials *credentials)
{
    credentials->ca_pem = read_file(directory, "ca.crt");
    credentials->cert_pem = read_file(directory, "server.crt");
    credentials->key_pem = read_file(directory, "server.key");
    return credentials->ca_pem && credentials->cert_pem && credentials->key_pem && is_usable(credentials->cert_pem);
}

static int write_all(const char *directory, const struct credentials *credentials, struct error *error)
{
    SCOPED_FREE char *path = memory_format("%s/" STATE_CERTIFICATES, directory);
    if (private_directory_make(path, error) < 0)
        return -1;
    if (write_file(directory, "ca.crt", credentials->ca_pem, error) < 0 ||
        write_file(directory, "server.key", credentials->key_pem, error) < 0 ||
        write_file(directory, "token", credentials->token, error) < 0)
        return -1;
    return write_file(directory, "server.crt", credentials->cert_pem, error);
}

static int make_token(struct credentials *credentials, struct error *error)
{
    char token[TOKEN_LENGTH + 1];
    if (token_draw(token, error) < 0)
        return -1;
    credentials->token = memory_copy_string(token);
    return 0;
}

static int make_all(const char *directory, struct credentials *credentials, struct error *error)
{
    credentials_release(credentials);
    if (make_certificates(credentials, error) < 0 || make_token(credentials, error) < 0)
        return -1;
    return write_all(directory, credentials, error);
}

int credentials_load(const char *state_directory, struct credentials *ret_credentials, struct error *error)
{
    struct credentials credentials = {.token = read_file(state_directory, "token")};
    bool complete = read_all(state_directory, &credentials) && credentials.token;
    if (!complete && make_all(state_directory, &credentials, error) < 0) {
        credentials_release(&credentials);
        return -1;
    }
    *ret_credentials = credentials;
    return 0;
}

void credentials_release(struct credentials *credentials)
{
    free(credentials->ca_pem);
    free(credentials->cert_pem);
    free(credentials->key_pem);
    free(credentials->token);
    *credentials = (struct credentials){0};
}

static const char kubeconfig[] = "apiVersion: v1\n"
                                 "kind: Config\n"
                                 "current-context: coxswain\n"
                                 "clusters:\n"
                                 "- name: coxswain\n"
                                 "  cluster:\n"
                                 "    server: https://127.0.0.1:%u\n"
                                 "    certificate-authority-data: %s\n"
                                 "users:\n"
                                 "- name: coxswain\n"
                                 "  user:\n"
                                 "    token: %s\n"
                                 "contexts:\n"
                                 "- name: coxswain\n"
                                 "  context:\n"
                                 "    cluster: coxswain\n"
                                 "    namespace: default\n"
                                 "    user: coxswain\n";

int credentials_write_kubeconfig(const struct credentials *credentials, const char *state_directory, uint16_t port,
                                 struct error *error)
{
    SCOPED_FREE char *path = memory_format("%s/" STATE_KUBECONFIG, state_directory);
    SCOPED_FREE char *authority = base64_encode(credentials->ca_pem, strlen(credentials->ca_pem));
    SCOPED_FREE char *text = memory_format(kubeconfig, port, authority, credentials->token);
    return private_file_write(path, text, strlen(text), error);
}
