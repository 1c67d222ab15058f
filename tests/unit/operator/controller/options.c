/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/options.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <string.h>

static int parse(struct options *options, struct error *error, int count, ...)
{
    static char program[] = "coxswain-operator";
    char *arguments[8] = {program};
    va_list list;
    va_start(list, count);
    for (int i = 1; i <= count; i++)
        arguments[i] = va_arg(list, char *);
    va_end(list);
    return options_parse(count + 1, arguments, options, error);
}

Test(options, defaults_and_values)
{
    struct options options;
    struct error error = ERROR_INIT;
    cr_assert_eq(parse(&options, &error, 0), 0);
    cr_assert_str_eq(options.metrics_address, "127.0.0.1");
    cr_assert_null(options.name_space);
    cr_assert_eq(parse(&options, &error, 4, "--namespace", "ml", "--leader-elect", "--metrics-address=[::]:8080"), 0);
    cr_assert_str_eq(options.name_space, "ml");
    cr_assert(options.leader_elect);
    cr_assert_str_eq(options.metrics_address, "::");
    cr_assert_eq(options.metrics_port, 8080);
    cr_assert_str_eq(options.lease_name, "coxswain-operator");
    cr_assert_eq(parse(&options, &error, 2, "--lease-name=team-a", "--metrics-address=:9"), 0);
    cr_assert_str_eq(options.lease_name, "team-a");
    cr_assert_str_eq(options.metrics_address, "0.0.0.0");
    cr_assert_str_eq(options.progress_address, "");
    cr_assert_eq(parse(&options, &error, 2, "--progress-address=:8443", "--progress-service=reports"), 0);
    cr_assert_str_eq(options.progress_address, "0.0.0.0");
    cr_assert_eq(options.progress_port, 8443);
    cr_assert_str_eq(options.progress_service, "reports");
    cr_assert_lt(parse(&options, &error, 2, "--progress-address=:0", "--progress-service=reports"), 0);
    cr_assert_eq(parse(&options, &error, 1, "--progress-address=127.0.0.2:0"), 0);
    cr_assert_null(options.notification_sink);
    cr_assert_eq(parse(&options, &error, 1, "--notification-sink=http://a/b@c"), 0);
    cr_assert_str_eq(options.notification_sink, "http://a/b@c");
    cr_assert_eq(options.sick_node_ms, 0);
    cr_assert_eq(parse(&options, &error, 2, "--taint-sick-nodes", "600"), 0);
    cr_assert_eq(options.sick_node_ms, 600000);
    cr_assert_str_eq(options.controller_name, "coxswain.dev/operator");
    cr_assert_eq(parse(&options, &error, 3, "--controller-name=a.b/c", "--leader-elect", "--lease-name=c"), 0);
    cr_assert_str_eq(options.controller_name, "a.b/c");
    cr_assert_lt(parse(&options, &error, 2, "--controller-name=a.b/c", "--leader-elect"), 0);
    cr_assert(strstr(error.message, "--lease-name of its own"), "%s", error.message);
    cr_assert_lt(parse(&options, &error, 2, "--taint-sick-nodes=600", "--namespace=ml"), 0);
    cr_assert(strstr(error.message, "leave --namespace out"), "%s", error.message);
}

Test(options, mistakes_are_named)
{
    static const char *const wrong[][2] = {{"--metrics-address=localhost", "localhost"},
                                           {"--controller-name=team", "example.com/coxswain"},
                                           {"--controller-name=kueue.x-k8s.io/multikueue", "is the name of Kueue"},
                                           {"--progress-address=8443", "8443"},
                                           {"--progress-address=:8443", "--progress-service"},
                                           {"--progress-service=reports", "--progress-address"},
                                           {"--notification-sink=slack", "https://"},
                                           {"--notification-sink=file:///etc/passwd", "https://"},
                                           {"--notification-sink=https://", "a host"},
                                           {"--notification-sink=https:///x", "a host"},
                                           {"--notification-sink=https://me:secret@host/", "password"},
                                           {"--metrics-address=a:70000", "70000"},
                                           {"--taint-sick-nodes=0", "from 1 to"},
                                           {"--machine-gpus=two", "from 0 to"},
                                           {"--machine-gpus=65", "from 0 to"},
                                           {"--taint-sick-nodes=1h", "without a unit"},
                                           {"--log-format=xml", "text or json"},
                                           {"--lease-name=", "lower-case"},
                                           {"--lease-name=Mine", "Mine"},
                                           {"--fast", "--fast"},
                                           {"job.yaml", "job.yaml"},
                                           {"--namespace", "needs a value"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct options options;
        struct error error = ERROR_INIT;
        cr_expect_eq(parse(&options, &error, 1, wrong[i][0]), -1, "%s", wrong[i][0]);
        cr_expect(strstr(error.message, wrong[i][1]), "%s: %s", wrong[i][0], error.message);
    }
}
