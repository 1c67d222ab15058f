/* SPDX-License-Identifier: Apache-2.0
 *
 * Channels and servers in the clear, or with the crew's certificates on both
 * sides. A server asks anew what to present for each connection; a channel lives
 * as long as one stream. What is connected stays so when certificates change.
 */
#include <grpc/grpc_security.h>

#include "worker/comm/crew_certificates.h"
#include "worker/comm/rpc_parts.h"

/* gRPC copies the texts. */
grpc_channel_credentials *rpc_client_credentials(void)
{
    if (!crew_certificates_are_set())
        return grpc_insecure_credentials_create();
    struct crew_identity identity;
    crew_identity_now(&identity);
    grpc_ssl_pem_key_cert_pair pair = {.private_key = identity.key_pem, .cert_chain = identity.certificate_pem};
    grpc_channel_credentials *credentials = grpc_ssl_credentials_create_ex(identity.trusted_pem, &pair, NULL, NULL);
    crew_identity_release(&identity);
    return credentials;
}

static grpc_ssl_certificate_config_reload_status reload(void *context, grpc_ssl_server_certificate_config **ret_config)
{
    (void)context;
    struct crew_identity identity;
    crew_identity_now(&identity);
    grpc_ssl_pem_key_cert_pair pair = {.private_key = identity.key_pem, .cert_chain = identity.certificate_pem};
    *ret_config = grpc_ssl_server_certificate_config_create(identity.trusted_pem, &pair, 1);
    crew_identity_release(&identity);
    return *ret_config ? GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW : GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_FAIL;
}

grpc_server_credentials *rpc_server_credentials(void)
{
    if (!crew_certificates_are_set())
        return grpc_insecure_server_credentials_create();
    return grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, reload, NULL));
}
