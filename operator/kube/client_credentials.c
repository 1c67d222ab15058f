/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "operator/kube/client_parts.h"
#include "operator/kube/exec_plugin.h"

/* A plugin whose credentials are refused is not run for each request. */
#define PLUGIN_REST_MS 5000

int kube_plugin_ask(struct kube_config *config, bool allowed, int64_t *ret_expires_ms, struct error *error)
{
    struct exec_credential credential;
    const char *user = json_string_at(config->exec, "user", "");
    if (!config->exec) {
        *ret_expires_ms = INT64_MAX;
        return 0;
    }
    if (!allowed)
        return error_set(error, ERROR_UNSUPPORTED,
                         "user '%s': 'exec' is not supported here; use a token, a tokenFile or a client certificate",
                         user);
    if (exec_plugin_run(json_member(config->exec, "plugin"), json_member(config->exec, "cluster"), 0, &credential,
                        error) < 0)
        return error_wrap(error, "user '%s'", user);
    free(config->token);
    free(config->client_cert_pem);
    free(config->client_key_pem);
    config->token = credential.token;
    config->client_cert_pem = credential.client_cert_pem;
    config->client_key_pem = credential.client_key_pem;
    *ret_expires_ms = credential.expires_ms;
    return 0;
}

/* One that fails keeps the old credentials, and has said why on stderr. */
static void plugin_renew(struct kube_client *client)
{
    int64_t refresh_ms = client->options.token_refresh_ms,
            rest_ms = refresh_ms < PLUGIN_REST_MS ? refresh_ms : PLUGIN_REST_MS;
    if (!client->config.exec || clock_monotonic_ns() - client->plugin_run_ns < rest_ms * NS_PER_MS)
        return;
    int asked = kube_plugin_ask(&client->config, true, &client->expires_ms, NULL);
    client->plugin_run_ns = clock_monotonic_ns();
    if (asked == 0)
        http_client_set_identity(client->http, client->config.client_cert_pem, client->config.client_key_pem);
}

/* A token that cannot be read keeps the old one: it may still be good, and 401 tells. */
static void token_renew(struct kube_client *client)
{
    char *token;
    if (client->config.token_file == NULL || kube_token_read(client->config.token_file, &token, NULL) < 0)
        return;
    free(client->config.token);
    client->config.token = token;
}

/* Likewise; a new one is for connections to come. */
static void authority_renew(struct kube_client *client)
{
    char *pem;
    if (client->config.ca_file == NULL || kube_authority_read(client->config.ca_file, &pem, NULL) < 0)
        return;
    if (strcmp(pem, client->config.ca_pem) != 0)
        http_client_set_trust(client->http, pem);
    free(client->config.ca_pem);
    client->config.ca_pem = pem;
}

static void files_renew(struct kube_client *client)
{
    client->credentials_read_ns = clock_monotonic_ns();
    token_renew(client);
    authority_renew(client);
}

void kube_client_renew_credentials(struct kube_client *client)
{
    files_renew(client);
    plugin_renew(client);
}

const char *kube_client_token(struct kube_client *client)
{
    if (clock_monotonic_ns() - client->credentials_read_ns >= client->options.token_refresh_ms * NS_PER_MS)
        files_renew(client);
    if (clock_now_ms() >= client->expires_ms)
        plugin_renew(client);
    return client->config.token;
}
