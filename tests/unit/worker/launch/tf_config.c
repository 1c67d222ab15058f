/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/launch/tf_config.h"

#include <criterion/criterion.h>
#include <string.h>

Test(tf_config, dense)
{
    const char *text = "{\"cluster\":{\"chief\":[\"a.b:2222\"],\"worker\":[\"c:1\",\"d:65535\"]},"
                       "\"task\":{\"type\":\"worker\",\"index\":1},\"environment\":\"cloud\"}";
    struct tf_config config;
    struct error error = ERROR_INIT;
    cr_assert_eq(tf_config_parse(text, strlen(text), &config, &error), 0, "%s", error.message);
    cr_assert_eq(config.task_count, 3);
    cr_assert_str_eq(config.tasks[2].role, "worker");
    cr_assert_str_eq(config.tasks[2].host, "d");
    cr_assert_eq(config.tasks[2].index, 1);
    cr_assert_eq(config.tasks[2].port, 65535);
    cr_assert_str_eq(config.role, "worker");
    cr_assert_eq(config.index, 1);
    tf_config_release(&config);
}

Test(tf_config, sparse)
{
    const char *text = "{\"cluster\":{\"worker\":{\"3\":\"c:1\"}},\"task\":{\"type\":\"worker\",\"index\":3}}";
    struct tf_config config;
    cr_assert_eq(tf_config_parse(text, strlen(text), &config, NULL), 0);
    cr_assert_eq(config.tasks[0].index, 3);
    tf_config_release(&config);
}

Test(tf_config, an_ipv6_host_keeps_its_colons)
{
    const char *text = "{\"cluster\":{\"worker\":[\"::1:2222\"]},\"task\":{\"type\":\"worker\",\"index\":0}}";
    struct tf_config config;
    cr_assert_eq(tf_config_parse(text, strlen(text), &config, NULL), 0);
    cr_assert_str_eq(config.tasks[0].host, "::1");
    tf_config_release(&config);
}

Test(tf_config, hostile_text_gets_a_sentence)
{
    static const char *const cases[][2] = {
        {"{", "TF_CONFIG"},
        {"{}", "task.type"},
        {"{\"cluster\":{\"worker\":\"a:1\"}}", "neither a list"},
        {"{\"cluster\":{\"worker\":[\"a\"]}}", "not host:port"},
        {"{\"cluster\":{\"worker\":[\":1\"]}}", "not host:port"},
        {"{\"cluster\":{\"worker\":[\"a:0\"]}}", "not host:port"},
        {"{\"cluster\":{\"worker\":[\"a:65536\"]}}", "not host:port"},
        {"{\"cluster\":{\"worker\":[\"a:-1\"]}}", "not host:port"},
        {"{\"cluster\":{\"worker\":[7]}}", "not host:port"},
        {"{\"cluster\":{\"worker\":{\"x\":\"a:1\"}}}", "no index"},
        {"{\"cluster\":{\"worker\":{\"-1\":\"a:1\"}}}", "no index"},
        {"{\"task\":{\"type\":\"worker\",\"index\":-1}}", "task.index"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tf_config config;
        struct error error = ERROR_INIT;
        cr_assert_eq(tf_config_parse(cases[i][0], strlen(cases[i][0]), &config, &error), -1, "%s", cases[i][0]);
        cr_assert_not_null(strstr(error.message, cases[i][1]), "%s: %s", cases[i][0], error.message);
    }
}
