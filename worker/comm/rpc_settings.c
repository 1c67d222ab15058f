/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/contract/environment.h"
#include "common/memory.h"
#include "worker/comm/crew_certificates.h"
#include "worker/comm/rpc_parts.h"

static grpc_arg string_argument(const char *key, const char *value)
{
    return (grpc_arg){.type = GRPC_ARG_STRING, .key = (char *)key, .value.string = (char *)value};
}

static grpc_arg integer_argument(const char *key, int value)
{
    return (grpc_arg){.type = GRPC_ARG_INTEGER, .key = (char *)key, .value.integer = value};
}

/* No look-ups, no shared state between channels, and a silent peer is noticed. */
unsigned rpc_client_arguments(grpc_arg arguments[CHANNEL_ARGUMENTS_MAX])
{
    unsigned n = 0;
    arguments[n++] = integer_argument(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, RPC_MESSAGE_MAX);
    arguments[n++] = integer_argument(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
    arguments[n++] = integer_argument(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments[n++] = integer_argument(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments[n++] = integer_argument(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments[n++] = integer_argument(GRPC_ARG_KEEPALIVE_TIME_MS, RPC_KEEPALIVE_MS);
    arguments[n++] = integer_argument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, RPC_KEEPALIVE_MS);
    arguments[n++] = integer_argument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    arguments[n++] = integer_argument(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
    if (crew_certificates_are_set())
        arguments[n++] = string_argument(GRPC_SSL_TARGET_NAME_OVERRIDE_ARG, CREW_TLS_NAME);
    return n;
}

unsigned rpc_server_arguments(grpc_arg arguments[CHANNEL_ARGUMENTS_MAX])
{
    unsigned n = 0;
    arguments[n++] = integer_argument(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, RPC_MESSAGE_MAX);
    arguments[n++] = integer_argument(GRPC_ARG_KEEPALIVE_TIME_MS, RPC_KEEPALIVE_MS);
    arguments[n++] = integer_argument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, RPC_KEEPALIVE_MS);
    arguments[n++] = integer_argument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, RPC_KEEPALIVE_MS / 2);
    arguments[n++] = integer_argument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    return n;
}

char *rpc_format_target(const char *scheme, const char *address, uint16_t port)
{
    if (address == NULL || *address == '\0')
        return memory_format("%s0.0.0.0:%u", scheme, port);
    if (strchr(address, ':') != NULL)
        return memory_format("%s[%s]:%u", *scheme ? "ipv6:" : "", address, port);
    return memory_format("%s%s:%u", scheme, address, port);
}
