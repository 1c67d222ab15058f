/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "operator/kube/client_parts.h"
#include "operator/kube/exec_plugin.h"

/* Shortest time between two runs of a plugin, so that refused credentials do not run it for each request. */
#define PLUGIN_PAUSE_MS 5000
/* Longest pause after failures; the pause doubles, because a run blocks the loop. */
#define PLUGIN_PAUSE_MAX_MS 300000

static const char *user_of(const struct kube_config *config)
{
    return json_string_at(config->exec, "user", "");
}

int kube_plugin_reject(const struct kube_config *config, struct error *error)
{
    return config->exec
               ? error_set(error, ERROR_UNSUPPORTED,
                           "user '%s': 'exec' is not supported here; use a token, a tokenFile or a client certificate",
                           user_of(config))
               : 0;
}

int kube_plugin_load(struct kube_config *config, int64_t timeout_ms, int cancel, int64_t *ret_expires_ms,
                     struct error *error)
{
    struct exec_credential credential;
    if (!config->exec) {
        *ret_expires_ms = INT64_MAX;
        return 0;
    }
    if (exec_plugin_run(json_member(config->exec, "plugin"), json_member(config->exec, "cluster"), timeout_ms, cancel,
                        &credential, error) < 0)
        return error_wrap(error, "user '%s'", user_of(config));
    free(config->token);
    free(config->client_cert_pem);
    free(config->client_key_pem);
    config->token = credential.token;
    config->client_cert_pem = credential.client_cert_pem;
    config->client_key_pem = credential.client_key_pem;
    *ret_expires_ms = credential.expires_ms;
    return 0;
}

static int64_t plugin_pause_ms(const struct kube_client *client)
{
    int64_t refresh_ms = client->options.token_refresh_ms,
            least_ms = refresh_ms < PLUGIN_PAUSE_MS ? refresh_ms : PLUGIN_PAUSE_MS;
    return client->plugin_pause_ms > least_ms ? client->plugin_pause_ms : least_ms;
}

/* If the plugin fails, the old credentials stay in use; the error of a 401 then says why the plugin failed. */
static void plugin_renew(struct kube_client *client)
{
    int64_t rest_ms = plugin_pause_ms(client), longer_ms = 2 * rest_ms;
    if (!client->config.exec || clock_monotonic_ns() - client->plugin_run_ns < rest_ms * NS_PER_MS)
        return;
    struct error failure = ERROR_INIT;
    kube_plugin_load(&client->config, EXEC_PLUGIN_TIMEOUT_MS, event_loop_signals(client->loop), &client->expires_ms,
                     &failure);
    client->plugin_failure = failure;
    client->plugin_run_ns = clock_monotonic_ns();
    client->plugin_pause_ms = failure.kind == ERROR_NONE        ? 0
                              : longer_ms < PLUGIN_PAUSE_MAX_MS ? longer_ms
                                                                : PLUGIN_PAUSE_MAX_MS;
    if (failure.kind == ERROR_NONE)
        http_client_set_identity(client->http, client->config.client_cert_pem, client->config.client_key_pem);
}

/* If the file cannot be read, the old token stays in use. */
static void token_renew(struct kube_client *client)
{
    char *token;
    if (client->config.token_file == NULL || kube_token_read(client->config.token_file, &token, NULL) < 0)
        return;
    free(client->config.token);
    client->config.token = token;
}

/* If the file cannot be read, the old CA stays in use. A new CA applies to new connections. */
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
