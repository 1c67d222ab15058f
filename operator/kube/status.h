/* SPDX-License-Identifier: Apache-2.0
 *
 * What an API server says when it refuses: metav1.Status becomes an `error`.
 *
 * | HTTP, reason              | kind                                                       |
 * |---------------------------|------------------------------------------------------------|
 * | 400, 422                  | INVALID, each cause as "field: message"                    |
 * | 401, 403                  | FORBIDDEN                                                  |
 * | 403 "exceeded quota"      | NO_SPACE (kube_status_is_quota)                            |
 * | 404                       | NOT_FOUND                                                  |
 * | 405, 406, 415             | UNSUPPORTED                                                |
 * | 409 AlreadyExists         | ALREADY_EXISTS                                             |
 * | 409 other                 | CONFLICT                                                   |
 * | 410                       | EXPIRED                                                    |
 * | 413                       | TOO_LARGE                                                  |
 * | 504 Timeout               | TIMEOUT                                                    |
 * | all others                | UNAVAILABLE                                                |
 *
 * 400, 413 and 422 without such a document are of somebody else on the way: UNAVAILABLE.
 * An ERROR event of a watch carries the same document, its HTTP status in `code`.
 */
#ifndef COXSWAIN_KUBE_STATUS_H
#define COXSWAIN_KUBE_STATUS_H

#include <stdbool.h>

#include "common/error.h"
#include "common/json.h"

/* `status` may be NULL (no body, or no JSON); then `http_status` alone decides. Returns -1. */
int kube_status_to_error(int http_status, const struct json *status, struct error *error);

/* Whether a ResourceQuota refused it: 403 whose message says "exceeded quota" (the admission plugin gives no reason of
 * its own). */
bool kube_status_is_quota(int http_status, const struct json *status);

/* status.details.retryAfterSeconds in milliseconds, -1 when absent. */
int64_t kube_status_retry_after_ms(const struct json *status);

#endif
