/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/status.h"

#include <string.h>

static const struct {
    int http_status;
    const char *reason; /* NULL: any */
    enum error_kind kind;
} kinds[] = {
    {400, NULL, ERROR_INVALID},
    {401, NULL, ERROR_FORBIDDEN},
    {403, NULL, ERROR_FORBIDDEN},
    {404, NULL, ERROR_NOT_FOUND},
    {405, NULL, ERROR_UNSUPPORTED},
    {406, NULL, ERROR_UNSUPPORTED},
    {409, "AlreadyExists", ERROR_ALREADY_EXISTS},
    {409, NULL, ERROR_CONFLICT},
    {410, NULL, ERROR_EXPIRED},
    {413, NULL, ERROR_TOO_LARGE},
    {415, NULL, ERROR_UNSUPPORTED},
    {422, NULL, ERROR_INVALID},
    {429, NULL, ERROR_UNAVAILABLE},
    {504, NULL, ERROR_TIMEOUT},
};

static enum error_kind status_kind(int http_status, const struct json *status)
{
    /* The admission plugin of ResourceQuota sets no reason of its own. */
    if (http_status == 403 && strstr(json_string_at(status, "message", ""), "exceeded quota"))
        return ERROR_NO_SPACE;
    /* Without a Status the answer comes from a proxy, and says nothing about the object. */
    bool is_about_object = http_status == 400 || http_status == 413 || http_status == 422;
    if (is_about_object && strcmp(json_string_at(status, "kind", ""), "Status") != 0)
        return ERROR_UNAVAILABLE;
    const char *reason = json_string_at(status, "reason", "");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        bool reason_fits = kinds[i].reason == NULL || strcmp(kinds[i].reason, reason) == 0;
        if (kinds[i].http_status == http_status && reason_fits)
            return kinds[i].kind;
    }
    return ERROR_UNAVAILABLE;
}

int64_t kube_status_retry_after_ms(const struct json *status)
{
    int64_t seconds = json_integer_at(status, "details.retryAfterSeconds", 0);
    return seconds > 0 ? seconds * 1000 : -1;
}

int kube_status_to_error(int http_status, const struct json *status, struct error *error)
{
    struct error found;
    const char *message = json_string_at(status, "message", "");
    enum error_kind kind = status_kind(http_status, status);
    /* For 422 the server's message already lists every cause as "field: message". */
    if (message[0])
        error_set(&found, kind, "%s", message);
    else
        error_set(&found, kind, "the API server answered with HTTP status %d", http_status);
    found.http_status = http_status;
    if (error)
        *error = found;
    return -1;
}
