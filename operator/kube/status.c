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

/* A proxy on the way answers in its own name: what it does not take says nothing about the object. */
static bool is_judged(int http_status, const struct json *status)
{
    bool judges = http_status == 400 || http_status == 413 || http_status == 422;
    return !judges || strcmp(json_string_at(status, "kind", ""), "Status") == 0;
}

static enum error_kind kind_of(int http_status, const struct json *status)
{
    if (kube_status_is_quota(http_status, status))
        return ERROR_NO_SPACE;
    if (!is_judged(http_status, status))
        return ERROR_UNAVAILABLE;
    const char *reason = json_string_at(status, "reason", "");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        bool reason_fits = kinds[i].reason == NULL || strcmp(kinds[i].reason, reason) == 0;
        if (kinds[i].http_status == http_status && reason_fits)
            return kinds[i].kind;
    }
    return ERROR_UNAVAILABLE;
}

bool kube_status_is_quota(int http_status, const struct json *status)
{
    return http_status == 403 && strstr(json_string_at(status, "message", ""), "exceeded quota") != NULL;
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
    /* For 422 the server's message already lists every cause as "field: message". */
    if (message[0])
        error_set(&found, kind_of(http_status, status), "%s", message);
    else
        error_set(&found, kind_of(http_status, status), "the API server answered %d", http_status);
    found.http_status = http_status;
    if (error)
        *error = found;
    return -1;
}
