/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the call by which the embedded API server gets a pod's log from the node, for GET …/pods/<name>/log. The server parses and
 * validates the query; the node reads the log and answers the request. If the node's function fails, it has not answered, and the server
 * sends the error.
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
    int64_t since_ms;    /* from sinceSeconds or sinceTime, in Unix milliseconds; 0: from the beginning */
};

/* Answers the exchange with text/plain, at once or as a stream (follow). When it fails it has not
 * answered, and the server sends `error` (ERROR_NOT_FOUND, ERROR_INVALID …) as a Status. `pod` and
 * `query` are valid during the call. */
typedef int pod_log_hook(void *context, const struct json *pod, const struct pod_log_query *query,
                         struct http_exchange *exchange, struct error *error);

#endif
