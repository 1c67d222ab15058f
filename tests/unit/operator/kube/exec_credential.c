/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/exec_credential.h"

#include <criterion/criterion.h>
#include <string.h>

#define V1 "client.authentication.k8s.io/v1"
#define OF_V1 "{\"apiVersion\": \"" V1 "\", \"kind\": \"ExecCredential\", \"status\": "

Test(exec_credential, a_token_and_until_when)
{
    static const char text[] = OF_V1 "{\"token\": \"abc\", \"expirationTimestamp\": \"1970-01-01T00:00:05Z\"}}";
    struct exec_credential credential;
    struct error error = ERROR_INIT;
    cr_assert_eq(exec_credential_parse(text, strlen(text), V1, &credential, &error), 0, "%s", error.message);
    cr_expect_str_eq(credential.token, "abc");
    cr_expect_null(credential.client_cert_pem);
    cr_expect_eq(credential.expires_ms, 5000);
    exec_credential_release(&credential);
}

Test(exec_credential, a_certificate_with_its_key)
{
    static const char text[] =
        OF_V1 "{\"clientCertificateData\": \"-----BEGIN C\", \"clientKeyData\": \"-----BEGIN K\"}}";
    struct exec_credential credential;
    cr_assert_eq(exec_credential_parse(text, strlen(text), V1, &credential, NULL), 0);
    cr_expect_null(credential.token);
    cr_expect_str_eq(credential.client_cert_pem, "-----BEGIN C");
    cr_expect_str_eq(credential.client_key_pem, "-----BEGIN K");
    cr_expect_eq(credential.expires_ms, INT64_MAX);
    exec_credential_release(&credential);
}

Test(exec_credential, what_is_none_is_refused)
{
    static const char *const cases[][2] = {
        {"", "its output is not JSON"},
        {"token", "its output is not JSON"},
        {"[]", "is not an ExecCredential"},
        {"{\"kind\": \"Status\"}", "is not an ExecCredential"},
        {"{\"kind\": \"ExecCredential\", \"apiVersion\": \"client.authentication.k8s.io/v1beta1\"}",
         "asks for '" V1 "'"},
        {OF_V1 "{}}", "has neither"},
        {OF_V1 "{\"token\": \"\"}}", "its status.token is empty"},
        {OF_V1 "{\"token\": \"a\\r\\nHost: b\"}}", "not allowed in an HTTP header"},
        {OF_V1 "{\"clientKeyData\": \"-----BEGIN K\"}}", "one is missing"},
        {OF_V1 "{\"clientCertificateData\": \"C\", \"clientKeyData\": \"K\"}}", "is not in PEM format"},
        {OF_V1 "{\"token\": \"abc\", \"expirationTimestamp\": \"soon\"}}", "'soon' is not a time"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exec_credential credential;
        struct error error = ERROR_INIT;
        cr_expect_eq(exec_credential_parse(cases[i][0], strlen(cases[i][0]), V1, &credential, &error), -1, "%s",
                     cases[i][0]);
        cr_expect_not_null(strstr(error.message, cases[i][1]), "%s", error.message);
    }
}
