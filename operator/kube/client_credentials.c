/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "operator/kube/client_parts.h"

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

void kube_client_renew_credentials(struct kube_client *client)
{
    client->credentials_read_ns = clock_monotonic_ns();
    token_renew(client);
    authority_renew(client);
}

const char *kube_client_token(struct kube_client *client)
{
    if (clock_monotonic_ns() - client->credentials_read_ns >= client->options.token_refresh_ms * NS_PER_MS)
        kube_client_renew_credentials(client);
    return client->config.token;
}
