/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/rpc_log.h"

#include <grpc/support/log.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"

void rpc_log_escape(const char *text, char ret_escaped[RPC_LOG_MAX])
{
    size_t length = 0;
    for (; *text != '\0' && length + sizeof "\\x00…" < RPC_LOG_MAX; text++) {
        unsigned char byte = (unsigned char)*text;
        bool plain = byte >= ' ' && byte < 0x7f && byte != '\\';
        length += (size_t)snprintf(ret_escaped + length, RPC_LOG_MAX - length, plain ? "%c" : "\\x%02x", byte);
    }
    snprintf(ret_escaped + length, RPC_LOG_MAX - length, "%s", *text != '\0' ? "…" : "");
}

static void write_line(gpr_log_func_args *line)
{
    char text[RPC_LOG_MAX];
    rpc_log_escape(line->message, text);
    if (line->severity == GPR_LOG_SEVERITY_ERROR)
        log_warning("gRPC reports an error", "message", text, NULL);
    else
        log_debug("gRPC", "message", text, NULL);
}

void rpc_log_set_up(void)
{
    gpr_set_log_function(write_line);
}
