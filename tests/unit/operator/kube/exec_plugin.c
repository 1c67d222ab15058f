/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/exec_plugin.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/directory.h"
#include "common/memory.h"
#include "common/scope.h"
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
    cr_assert_eq(exec_plugin_run(plugin, NULL, 0, -1, &credential, &error), -1);
    cr_expect_not_null(strstr(error.message, "exec: sh: its status.token"), "%s", error.message);
    SCOPED_JSON *other =
        plugin_of(ANSWER("$REGION.$HOME"), ", env: [{name: REGION, value: here}, {name: HOME, value: h}]");
    cr_assert_eq(exec_plugin_run(other, NULL, 0, -1, &credential, &error), 0, "%s", error.message);
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
    cr_assert_eq(exec_plugin_run(plugin, cluster, 0, -1, &credential, &error), 0, "%s", error.message);
    cr_expect_str_eq(credential.token, "told");
    exec_credential_release(&credential);
}

static void expect_failure(const char *script, const char *more, int64_t timeout_ms, const char *words)
{
    struct exec_credential credential;
    struct error error = ERROR_INIT;
    SCOPED_JSON *plugin = plugin_of(script, more);
    cr_expect_eq(exec_plugin_run(plugin, NULL, timeout_ms, -1, &credential, &error), -1);
    cr_expect_not_null(strstr(error.message, words), "%s", error.message);
}

Test(exec_plugin, how_it_failed_is_told)
{
    expect_failure("exit 3", "", 0, "exec: sh: it ended with exit code 3");
    expect_failure("kill -9 $$", "", 0, "it was ended by signal 9");
    expect_failure("echo no", "", 0, "its output is not JSON");
    expect_failure("exec sleep 600", "", 200, "it did not finish in time");
    expect_failure("exec sleep 600 >/dev/null", "", 200, "it did not finish in time");
    expect_failure("exec cat /dev/zero", "", 0, "its answer");
}

static char directory[] = "/tmp/exec-plugin-XXXXXX";

/* Its background process holds the output for as long as the test lets it: the writing end of `hold` is open here only. */
Test(exec_plugin, a_child_that_holds_its_output_is_not_waited_for)
{
    struct exec_credential credential;
    struct error error = ERROR_INIT;
    int hold[2];
    cr_assert_eq(pipe(hold), 0);
    fcntl(hold[1], F_SETFD, FD_CLOEXEC);
    SCOPED_FREE char *script = memory_format("cat <&%d >&1 & " ANSWER("left"), hold[0]);
    SCOPED_JSON *plugin = plugin_of(script, "");
    cr_assert_eq(exec_plugin_run(plugin, NULL, 0, -1, &credential, &error), 0, "%s", error.message);
    cr_expect_str_eq(credential.token, "left");
    exec_credential_release(&credential);
    close(hold[1]);
}

/* One that has a child which holds a lock of a file, tells so, and hangs with it. */
static struct json *hanging_plugin(const char *fifo, const char *lock)
{
    SCOPED_FREE char *script = memory_format("flock %s sh -c \"echo up >%s; sleep 600\" & wait", lock, fifo);
    return plugin_of(script, "");
}

struct canceller {
    int fifo, cancel;
};

static void *cancel_when_up(void *context)
{
    struct canceller *canceller = context;
    char bytes[3];
    if (read(canceller->fifo, bytes, sizeof bytes) < 0 || write(canceller->cancel, "x", 1) < 0)
        abort();
    return NULL;
}

Test(exec_plugin, an_interrupt_ends_it_and_its_children)
{
    struct exec_credential credential;
    struct error error = ERROR_INIT;
    int cancel[2];
    pthread_t thread;
    cr_assert_not_null(mkdtemp(directory));
    SCOPED_FREE char *fifo = memory_format("%s/up", directory), *lock = memory_format("%s/lock", directory);
    cr_assert(mkfifo(fifo, 0600) == 0 && pipe2(cancel, O_CLOEXEC) == 0);
    SCOPED_CLOSE int up = open(fifo, O_RDWR | O_CLOEXEC), held = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct canceller canceller = {up, cancel[1]};
    SCOPED_JSON *plugin = hanging_plugin(fifo, lock);
    cr_assert_eq(pthread_create(&thread, NULL, cancel_when_up, &canceller), 0);
    cr_expect_eq(exec_plugin_run(plugin, NULL, 600000, cancel[0], &credential, &error), -1);
    cr_expect_eq(error.kind, ERROR_CANCELLED, "%s", error.message);
    pthread_join(thread, NULL);
    cr_expect_eq(flock(held, LOCK_EX), 0, "its child lives on");
    directory_remove(directory);
}

Test(exec_plugin, how_to_install_it_is_told_in_a_line)
{
    struct exec_credential credential;
    struct error error = ERROR_INIT;
    SCOPED_JSON *plugin = plugin_of("", ", installHint: \"Install it,\\n\\n  please\"");
    json_set_string(plugin, "command", "coxswain-no-such-plugin");
    cr_expect_eq(exec_plugin_run(plugin, NULL, 0, -1, &credential, &error), -1);
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
        {"{apiVersion: " V1BETA1 ", command: c, interactiveMode: Sometimes}", "'Sometimes' must be"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error error = ERROR_INIT;
        SCOPED_JSON *documents = NULL;
        cr_assert_eq(yaml_parse(cases[i][0], strlen(cases[i][0]), 4096, &documents, NULL), 0);
        cr_expect_eq(exec_plugin_check(json_first(documents), &error), -1, "%s", cases[i][0]);
        cr_expect_not_null(strstr(error.message, cases[i][1]), "%s", error.message);
    }
}
