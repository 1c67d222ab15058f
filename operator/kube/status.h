/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns the API server's error document, metav1.Status, into an `error`.
 *
 * | HTTP, reason              | kind                                                       |
 * |---------------------------|------------------------------------------------------------|
 * | 400, 422                  | INVALID, each cause as "field: message"                    |
 * | 401, 403                  | FORBIDDEN                                                  |
 * | 403 "exceeded quota"      | NO_SPACE                                                   |
 * | 404                       | NOT_FOUND                                                  |
 * | 405, 406, 415             | UNSUPPORTED                                                |
 * | 409 AlreadyExists         | ALREADY_EXISTS                                             |
 * | 409 other                 | CONFLICT                                                   |
 * | 410                       | EXPIRED                                                    |
 * | 413                       | TOO_LARGE                                                  |
 * | 504 Timeout               | TIMEOUT                                                    |
 * | all others                | UNAVAILABLE                                                |
 *
 * A 400, 413 or 422 without such a document comes from a proxy, not the API server: UNAVAILABLE.
 * An ERROR event of a watch has the same document, with the HTTP status in `code`.
 */
#ifndef COXSWAIN_KUBE_STATUS_H
#define COXSWAIN_KUBE_STATUS_H

#include <stdint.h>

#include "common/error.h"
#include "common/json.h"

/* Fills `error` and returns -1. If `status` is NULL (no body, or not JSON), `http_status` alone decides. */
int kube_status_to_error(int http_status, const struct json *status, struct error *error);

/* Returns status.details.retryAfterSeconds in milliseconds, -1 when absent. */
int64_t kube_status_retry_after_ms(const struct json *status);

#endif
