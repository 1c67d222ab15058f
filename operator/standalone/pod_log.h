/* SPDX-License-Identifier: Apache-2.0
 *
 * GET …/pods/<name>/log: the query as the node needs it, and the hook through
 * which the node answers. The server parses and validates; the node finds the
 * bytes.
 */
#ifndef COXSWAIN_STANDALONE_POD_LOG_H
#define COXSWAIN_STANDALONE_POD_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/http_server.h"
#include "common/json.h"

struct pod_log_query {
    const char *container; /* never NULL: the server has resolved the default and checked that it exists */
    bool follow, previous, timestamps;
    int64_t tail_lines;  /* -1: all */
    int64_t limit_bytes; /* -1: no limit */
    int64_t since_ms;    /* Unix milliseconds, 0: from the beginning (from sinceSeconds or sinceTime) */
};

/* Answers the exchange itself, at once (http_exchange_respond, text/plain) or with a stream (follow). Returns -1 with
 * `error` filled when it has not answered (ERROR_NOT_FOUND, ERROR_INVALID …): the server then sends a Status.
 * `pod` and `query` are valid during the call. */
typedef int pod_log_hook(void *context, const struct json *pod, const struct pod_log_query *query,
                         struct http_exchange *exchange, struct error *error);

#endif
