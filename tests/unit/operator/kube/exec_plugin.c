/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/exec_plugin.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/yaml.h"

TestSuite(exec_plugin, .timeout = 120);

#define V1BETA1 "client.authentication.k8s.io/v1beta1"

/* A plugin that is a shell script of one line, in a mapping that may say more. */
static struct json *plugin_of(const char *script, const char *more)
{
    static const char form[] = "{apiVersion: " V1BETA1 ", command: sh, args: [-c, '%s', sh, two words]%s}";
    char text[4096];
    snprintf(text, sizeof text, form, script, more);
    struct json *documents = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(yaml_parse(text, strlen(text), sizeof text, &documents, &error), 0, "%s", error.message);
    struct json *plugin = json_detach(documents, json_first(documents));
    json_free(documents);
    cr_assert_eq(exec_plugin_check(plugin, &error), 0, "%s", error.message);
    return plugin;
}

#define ANSWER(token)                                                                                                  \
    "echo \"{\\\"apiVersion\\\":\\\"" V1BETA1                                                                          \
    "\\\",\\\"kind\\\":\\\"ExecCredential\\\",\\\"status\\\":{\\\"token\\\":\\\"" token "\\\"}}\""

Test(exec_plugin, its_arguments_and_environment_are_those_of_the_kubeconfig)
{
    struct exec_credential credential;
    struct error error = ERROR_INIT;
    setenv("REGION", "nowhere", 1);
    SCOPED_JSON *plugin =
        plugin_of(ANSWER("$1.$REGION.$HOME"), ", env: [{name: REGION, value: here}, {name: HOME, value: h}]");
    /* A token has no blanks. */
    cr_assert_eq(exec_plugin_run(plugin, NULL, 0, &credential, &error), -1);
    cr_expect_not_null(strstr(error.message, "exec: sh: its status.token"), "%s", error.message);
    SCOPED_JSON *other =
        plugin_of(ANSWER("$REGION.$HOME"), ", env: [{name: REGION, value: here}, {name: HOME, value: h}]");
    cr_assert_eq(exec_plugin_run(other, NULL, 0, &credential, &error), 0, "%s", error.message);
    cr_expect_str_eq(credential.token, "here.h");
    exec_credential_release(&credential);
}

Test(exec_plugin, it_is_told_what_is_asked_for)
{
    struct exec_credential credential;
    struct error error = ERROR_INIT;
    SCOPED_JSON *cluster = json_new_object();
    json_set_string(cluster, "server", "https://host");
    SCOPED_JSON *plugin = plugin_of(
        "case $KUBERNETES_EXEC_INFO in *spec*interactive*false*cluster*https://host*) " ANSWER("told") ";; esac",
        ", interactiveMode: Never");
    cr_assert_eq(exec_plugin_run(plugin, cluster, 0, &credential, &error), 0, "%s", error.message);
    cr_expect_str_eq(credential.token, "told");
    exec_credential_release(&credential);
}

static void expect_failure(const char *script, const char *more, int64_t timeout_ms, const char *words)
{
    struct exec_credential credential;
    struct error error = ERROR_INIT;
    SCOPED_JSON *plugin = plugin_of(script, more);
    cr_expect_eq(exec_plugin_run(plugin, NULL, timeout_ms, &credential, &error), -1);
    cr_expect_not_null(strstr(error.message, words), "%s", error.message);
}

Test(exec_plugin, how_it_failed_is_told)
{
    expect_failure("exit 3", "", 0, "exec: sh: it ended with exit code 3");
    expect_failure("kill -9 $$", "", 0, "it was ended by signal 9");
    expect_failure("echo no", "", 0, "its answer is no JSON");
    expect_failure("exec sleep 600", "", 200, "it does not come to an end");
    expect_failure("exec sleep 600 >/dev/null", "", 200, "it does not come to an end");
    expect_failure("exec cat /dev/zero", "", 0, "its answer");
}

Test(exec_plugin, who_holds_its_output_is_not_waited_for)
{
    struct exec_credential credential;
    struct error error = ERROR_INIT;
    SCOPED_JSON *plugin = plugin_of(ANSWER("left") "; sleep 5 &", "");
    cr_assert_eq(exec_plugin_run(plugin, NULL, 0, &credential, &error), 0, "%s", error.message);
    cr_expect_str_eq(credential.token, "left");
    exec_credential_release(&credential);
}

Test(exec_plugin, how_to_install_it_is_told_in_a_line)
{
    struct exec_credential credential;
    struct error error = ERROR_INIT;
    SCOPED_JSON *plugin = plugin_of("", ", installHint: \"Install it,\\n\\n  please\"");
    json_set_string(plugin, "command", "coxswain-no-such-plugin");
    cr_expect_eq(exec_plugin_run(plugin, NULL, 0, &credential, &error), -1);
    cr_expect_eq(error.kind, ERROR_NOT_FOUND);
    cr_expect_str_eq(
        error.message,
        "exec: coxswain-no-such-plugin: it cannot be started: No such file or directory; Install it, please");
}

Test(exec_plugin, what_cannot_be_run_is_refused)
{
    static const char *const cases[][2] = {
        {"{apiVersion: client.authentication.k8s.io/v2, command: c}", "v2' is not known"},
        {"{apiVersion: " V1BETA1 "}", "command is missing"},
        {"{apiVersion: " V1BETA1 ", command: c, args: [1]}", "args must be"},
        {"{apiVersion: " V1BETA1 ", command: c, env: [{value: v}]}", "env must be"},
        {"{apiVersion: " V1BETA1 ", command: c, env: [{name: a=b, value: v}]}", "env must be"},
        {"{apiVersion: " V1BETA1 ", command: c, interactiveMode: Sometimes}", "'Sometimes' is none of"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error error = ERROR_INIT;
        SCOPED_JSON *documents = NULL;
        cr_assert_eq(yaml_parse(cases[i][0], strlen(cases[i][0]), 4096, &documents, NULL), 0);
        cr_expect_eq(exec_plugin_check(json_first(documents), &error), -1, "%s", cases[i][0]);
        cr_expect_not_null(strstr(error.message, cases[i][1]), "%s", error.message);
    }
}
