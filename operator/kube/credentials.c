/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/credentials.h"

#include <string.h>

#include "common/buffer.h"
#include "common/json.h"
#include "common/memory.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

void kube_config_release(struct kube_config *config)
{
    char *owned[] = {config->server,     config->name_space,      config->context_name,   config->source,
                     config->ca_pem,     config->client_cert_pem, config->client_key_pem, config->token,
                     config->token_file, config->tls_server_name, config->ca_file,        config->proxy};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        free(owned[i]);
    json_free(config->exec);
    json_free(config->impersonation);
    *config = (struct kube_config){0};
}

void kube_config_copy(const struct kube_config *config, struct kube_config *ret_copy)
{
    *ret_copy = (struct kube_config){
        .server = memory_copy_string(config->server),
        .name_space = memory_copy_string(config->name_space),
        .context_name = memory_copy_string(config->context_name),
        .source = memory_copy_string(config->source),
        .ca_pem = memory_copy_string(config->ca_pem),
        .ca_file = memory_copy_string(config->ca_file),
        .client_cert_pem = memory_copy_string(config->client_cert_pem),
        .client_key_pem = memory_copy_string(config->client_key_pem),
        .token = memory_copy_string(config->token),
        .token_file = memory_copy_string(config->token_file),
        .exec = config->exec ? json_copy(config->exec) : NULL,
        .impersonation = config->impersonation ? json_copy(config->impersonation) : NULL,
        .proxy = memory_copy_string(config->proxy),
        .tls_server_name = memory_copy_string(config->tls_server_name),
        .insecure_skip_tls_verify = config->insecure_skip_tls_verify,
    };
}

static int read_file(const char *path, char **ret_text, struct error *error)
{
    SCOPED_BUFFER text = BUFFER_INIT(KUBE_CONFIG_MAX);
    if (buffer_read_file(&text, path, error) < 0)
        return -1;
    *ret_text = buffer_take(&text);
    return 0;
}

int kube_authority_read(const char *path, char **ret_pem, struct error *error)
{
    SCOPED_FREE char *text = NULL;
    if (read_file(path, &text, error) < 0)
        return error_wrap(error, "authority");
    if (strstr(text, "-----BEGIN ") == NULL)
        return error_set(error, ERROR_INVALID, "%s holds no certificate", path);
    *ret_pem = text;
    text = NULL;
    return 0;
}

/* RFC 6750: a token is made of visible ASCII; anything else could end the header line. */
bool kube_token_is_valid(const char *text)
{
    for (const char *at = text; *at; at++) {
        if (*at <= ' ' || *at > '~')
            return false;
    }
    return text[0] != '\0';
}

int kube_token_read(const char *path, char **ret_token, struct error *error)
{
    static const char space[] = " \t\r\n";
    SCOPED_FREE char *text = NULL;
    if (read_file(path, &text, error) < 0)
        return error_wrap(error, "token");
    const char *start = text + strspn(text, space);
    SCOPED_FREE char *token = memory_copy_bytes(start, strcspn(start, space));
    if (!kube_token_is_valid(token) || start[strlen(token) + strspn(start + strlen(token), space)] != '\0')
        return error_set(error, ERROR_INVALID, "%s does not hold one bearer token", path);
    *ret_token = token;
    token = NULL;
    return 0;
}

int kube_config_load_in_cluster(const char *directory, const char *host, const char *port,
                                struct kube_config *ret_config, struct error *error)
{
    if (host == NULL || port == NULL || host[0] == '\0' || port[0] == '\0')
        return error_set(error, ERROR_NOT_FOUND,
                         "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
    SCOPED(kube_config_release) struct kube_config config = {0};
    SCOPED_FREE char *name_space = memory_format("%s/namespace", directory);
    bool is_ipv6 = strchr(host, ':') != NULL;
    config.server = memory_format(is_ipv6 ? "https://[%s]:%s" : "https://%s:%s", host, port);
    config.source = memory_copy_string("in-cluster");
    config.token_file = memory_format("%s/token", directory);
    config.ca_file = memory_format("%s/ca.crt", directory);
    if (kube_token_read(config.token_file, &config.token, error) < 0 ||
        read_file(config.ca_file, &config.ca_pem, error) < 0)
        return error_wrap(error, "service account");
    if (read_file(name_space, &config.name_space, NULL) < 0)
        config.name_space = memory_copy_string("default");
    config.name_space[strcspn(config.name_space, " \t\r\n")] = '\0';
    *ret_config = config;
    config = (struct kube_config){0};
    return 0;
}

int kube_config_load(const char *path, const char *context, struct kube_config *ret_config, struct error *error)
{
    if (path)
        return kube_config_load_files(path, context, ret_config, error);
    const char *paths = getenv("KUBECONFIG");
    if (paths && paths[0])
        return kube_config_load_files(paths, context, ret_config, error);
    SCOPED_FREE char *token = memory_format("%s/token", SERVICE_ACCOUNT);
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    if (host && access(token, R_OK) == 0)
        return kube_config_load_in_cluster(SERVICE_ACCOUNT, host, getenv("KUBERNETES_SERVICE_PORT"), ret_config, error);
    const char *home = getenv("HOME");
    SCOPED_FREE char *standard = memory_format("%s/.kube/config", home ? home : "");
    if (access(standard, F_OK) == 0)
        return kube_config_load_files(standard, context, ret_config, error);
    return error_set(error, ERROR_NOT_FOUND,
                     "no cluster is configured: give --kubeconfig, set KUBECONFIG, or create %s", standard);
}
