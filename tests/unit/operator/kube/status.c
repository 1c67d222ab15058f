/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "operator/kube/status.h"
#include "tests/unit/json_of.h"

Test(status, each_refusal_has_its_kind)
{
    static const struct {
        int http_status;
        const char *status;
        enum error_kind kind;
    } cases[] = {
        {400, "{\"kind\":\"Status\"}", ERROR_INVALID},
        {400, "{}", ERROR_UNAVAILABLE}, /* a proxy's words */
        {401, "{}", ERROR_FORBIDDEN},
        {403, "{\"message\":\"pods is forbidden\"}", ERROR_FORBIDDEN},
        {403, "{\"message\":\"pods \\\"a\\\" is forbidden: exceeded quota: q, requested: pods=1\"}", ERROR_NO_SPACE},
        {404, "{}", ERROR_NOT_FOUND},
        {405, "{}", ERROR_UNSUPPORTED},
        {409, "{\"reason\":\"AlreadyExists\"}", ERROR_ALREADY_EXISTS},
        {409, "{\"reason\":\"Conflict\"}", ERROR_CONFLICT},
        {410, "{\"reason\":\"Expired\"}", ERROR_EXPIRED},
        {413, "{\"kind\":\"Status\"}", ERROR_TOO_LARGE},
        {413, "[]", ERROR_UNAVAILABLE},
        {415, "{}", ERROR_UNSUPPORTED},
        {422, "{\"kind\":\"Status\",\"reason\":\"Invalid\"}", ERROR_INVALID},
        {422, "{\"reason\":\"Invalid\"}", ERROR_UNAVAILABLE},
        {429, "{}", ERROR_UNAVAILABLE},
        {500, "{}", ERROR_UNAVAILABLE},
        {503, "[]", ERROR_UNAVAILABLE},
        {504, "{}", ERROR_TIMEOUT},
        {307, "{\"kind\":\"Status\"}", ERROR_UNAVAILABLE},
        {407, "{}", ERROR_UNAVAILABLE},
        {408, "{\"kind\":\"Status\"}", ERROR_UNAVAILABLE},
        {421, "{}", ERROR_UNAVAILABLE},
        {425, "{}", ERROR_UNAVAILABLE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error error = ERROR_INIT;
        SCOPED_JSON *status = json_of(cases[i].status);
        cr_assert_eq(kube_status_to_error(cases[i].http_status, status, &error), -1);
        cr_assert_eq(error.kind, cases[i].kind, "%d %s", cases[i].http_status, cases[i].status);
        cr_assert_eq(error.http_status, cases[i].http_status);
    }
}

Test(status, quotes_the_server_or_says_its_code)
{
    struct error error = ERROR_INIT;
    SCOPED_JSON *status =
        json_of("{\"message\":\"spec.workers.replicas: must be at least 1\",\"details\":{\"retryAfterSeconds\":3}}");
    kube_status_to_error(422, status, &error);
    cr_assert_str_eq(error.message, "spec.workers.replicas: must be at least 1");
    cr_assert_eq(kube_status_retry_after_ms(status), 3000);
    kube_status_to_error(500, NULL, &error);
    cr_assert_str_eq(error.message, "the API server answered with HTTP status 500");
    cr_assert_eq(kube_status_retry_after_ms(NULL), -1);
}
