/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/rpc_parts.h"

static grpc_arg integer_argument(const char *key, int value)
{
    return (grpc_arg){.type = GRPC_ARG_INTEGER, .key = (char *)key, .value.integer = value};
}

/* A silent peer is noticed. */
unsigned rpc_client_arguments(grpc_arg arguments[CHANNEL_ARGUMENTS_MAX])
{
    unsigned n = 0;
    arguments[n++] = integer_argument(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, RPC_MESSAGE_MAX);
    arguments[n++] = integer_argument(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments[n++] = integer_argument(GRPC_ARG_KEEPALIVE_TIME_MS, RPC_KEEPALIVE_MS);
    arguments[n++] = integer_argument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, RPC_KEEPALIVE_MS);
    arguments[n++] = integer_argument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    return n;
}

unsigned rpc_server_arguments(grpc_arg arguments[CHANNEL_ARGUMENTS_MAX])
{
    unsigned n = 0;
    arguments[n++] = integer_argument(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, RPC_MESSAGE_MAX);
    arguments[n++] = integer_argument(GRPC_ARG_KEEPALIVE_TIME_MS, RPC_KEEPALIVE_MS);
    arguments[n++] = integer_argument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, RPC_KEEPALIVE_MS);
    arguments[n++] = integer_argument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, RPC_KEEPALIVE_MS / 2);
    return n;
}
