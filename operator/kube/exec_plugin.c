/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/exec_plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/child_environment.h"
#include "common/clock.h"
#include "common/memory.h"

#define CHUNK 4096
#define NS_PER_MS 1000000
#define INFO "KUBERNETES_EXEC_INFO"

/* ---------------------------------------------------------------- what the kubeconfig says */

static bool is_list_of_strings(const struct json *list)
{
    bool are = json_count(list) <= EXEC_PLUGIN_WORDS_MAX;
    for (const struct json *item = json_first(list); item; item = json_next(item))
        are &= json_type(item) == JSON_STRING;
    return are;
}

static bool is_environment(const struct json *list)
{
    bool is = json_count(list) <= EXEC_PLUGIN_WORDS_MAX;
    for (const struct json *item = json_first(list); item; item = json_next(item)) {
        const char *name = json_string_at(item, "name", "");
        is &= *name && !strchr(name, '=');
    }
    return is;
}

static const char *mode_of(const struct json *plugin)
{
    const char *mode = json_string_at(plugin, "interactiveMode", "");
    return *mode ? mode : "IfAvailable";
}

int exec_plugin_check(const struct json *plugin, struct error *error)
{
    const char *version = json_string_at(plugin, "apiVersion", ""), *mode = mode_of(plugin);
    if (!exec_credential_version_is_known(version))
        return error_set(error, ERROR_UNSUPPORTED,
                         "exec: apiVersion '%.128s' is not known; client.authentication.k8s.io/v1 and v1beta1 are",
                         version);
    if (!*json_string_at(plugin, "command", ""))
        return error_set(error, ERROR_INVALID, "exec: command is missing");
    if (!is_list_of_strings(json_member(plugin, "args")))
        return error_set(error, ERROR_INVALID, "exec: args must be a list of at most %d strings",
                         EXEC_PLUGIN_WORDS_MAX);
    if (!is_environment(json_member(plugin, "env")))
        return error_set(error, ERROR_INVALID, "exec: env must be a list of at most %d entries with a name and a value",
                         EXEC_PLUGIN_WORDS_MAX);
    if (strcmp(mode, "Never") != 0 && strcmp(mode, "IfAvailable") != 0 && strcmp(mode, "Always") != 0)
        return error_set(error, ERROR_INVALID, "exec: interactiveMode '%.64s' must be Never, IfAvailable or Always",
                         mode);
    return 0;
}

/* ---------------------------------------------------------------- its words */

static void words_free(char ***words)
{
    for (char **word = *words; word && *word; word++)
        free(*word);
    free(*words);
}

static char **arguments_of(const struct json *plugin)
{
    const struct json *list = json_member(plugin, "args");
    char **words = memory_allocate(json_count(list) + 2, sizeof *words), **next = words;
    *next++ = memory_copy_string(json_string_at(plugin, "command", ""));
    for (const struct json *item = json_first(list); item; item = json_next(item))
        *next++ = memory_copy_string(json_string(item, ""));
    return words;
}

/* The ExecCredential request passed in KUBERNETES_EXEC_INFO. */
static char *info_of(const struct json *plugin, const struct json *cluster, bool interactive)
{
    SCOPED_JSON *info = json_new_object();
    SCOPED_BUFFER text = BUFFER_INIT(4 * EXEC_CREDENTIAL_MAX);
    json_set_string(info, "apiVersion", json_string_at(plugin, "apiVersion", ""));
    json_set_string(info, "kind", "ExecCredential");
    struct json *spec = json_set_object(info, "spec");
    json_set_boolean(spec, "interactive", interactive);
    if (cluster)
        json_set(spec, "cluster", json_copy(cluster));
    json_print(info, &text, NULL);
    return buffer_take(&text);
}

/* The kubeconfig's env, and KUBERNETES_EXEC_INFO. */
static char **variables_of(const struct json *plugin, const char *info)
{
    const struct json *list = json_member(plugin, "env");
    char **words = memory_allocate(json_count(list) + 2, sizeof *words), **next = words;
    for (const struct json *item = json_first(list); item; item = json_next(item))
        *next++ = memory_format("%s=%s", json_string_at(item, "name", ""), json_string_at(item, "value", ""));
    *next = memory_format(INFO "=%s", info);
    return words;
}

/* ---------------------------------------------------------------- its process */

struct process {
    pid_t pid;
    int handle; /* pidfd */
    int output;
    int cancel;
    bool interactive; /* in our process group, for the terminal; else in one of its own */
    int64_t deadline_ns;
};

static int spawn(char **arguments, char **environment, bool interactive, int output, pid_t *ret_pid)
{
    int group = interactive ? 0 : POSIX_SPAWN_SETPGROUP;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, broken;
    sigemptyset(&none);
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (!interactive)
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &broken);
    posix_spawnattr_setflags(&attributes, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group));
    int failure = posix_spawnp(ret_pid, arguments[0], &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failure;
}

/* Appends the kubeconfig's installHint, folded into one line. */
static int not_started(const struct json *plugin, int failure, struct error *error)
{
    SCOPED_FREE char *hint = memory_copy_string(json_string_at(plugin, "installHint", ""));
    char *end = hint;
    for (const char *at = hint; *at; at++)
        if ((unsigned char)*at > ' ' || (end > hint && end[-1] != ' '))
            *end++ = (unsigned char)*at > ' ' ? *at : ' ';
    *end = '\0';
    return error_set(error, failure == ENOENT ? ERROR_NOT_FOUND : ERROR_UNAVAILABLE, "it cannot be started: %s%s%s",
                     strerror(failure), *hint ? "; " : "", hint);
}

static int process_start(const struct json *plugin, const struct json *cluster, struct process *process,
                         struct error *error)
{
    SCOPED_FREE char *info = info_of(plugin, cluster, process->interactive);
    SCOPED(words_free) char **arguments = arguments_of(plugin);
    SCOPED(words_free) char **variables = variables_of(plugin, info);
    SCOPED_FREE char **environment = child_environment(variables);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set_errno(error, "open a pipe");
    errno = spawn(arguments, environment, process->interactive, ends[1], &process->pid);
    close(ends[1]);
    process->output = ends[0];
    if (errno) {
        process->pid = 0;
        return not_started(plugin, errno, error);
    }
    process->handle = (int)syscall(SYS_pidfd_open, process->pid, 0);
    return process->handle < 0 ? error_set_errno(error, "watch it") : 0;
}

/* Kills the process if it is still running. */
static void process_release(struct process *process)
{
    if (process->pid > 0) {
        kill(process->interactive ? process->pid : -process->pid, SIGKILL);
        waitpid(process->pid, NULL, 0);
    }
    if (process->handle >= 0)
        close(process->handle);
    if (process->output >= 0)
        close(process->output);
}

enum { PROCESS_END, CANCEL, OUTPUT, ENDS };

/* Waits until the process has ended or `output` (-1: none) is readable. Fails at the deadline or when cancelled. */
static int process_wait(const struct process *process, int output, bool *ret_output, struct error *error)
{
    struct pollfd ends[ENDS] = {
        [PROCESS_END] = {.fd = process->handle, .events = POLLIN},
        [CANCEL] = {.fd = process->cancel, .events = POLLIN},
        [OUTPUT] = {.fd = output, .events = POLLIN},
    };
    for (;;) {
        int64_t left_ms = (process->deadline_ns - clock_monotonic_ns()) / NS_PER_MS;
        if (left_ms <= 0)
            return error_set(error, ERROR_TIMEOUT, "it did not finish in time");
        int ready = poll(ends, ENDS, (int)left_ms);
        if (ready > 0 && ends[CANCEL].revents)
            return error_set(error, ERROR_CANCELLED, "it was interrupted");
        *ret_output = ends[OUTPUT].revents != 0;
        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return error_set_errno(error, "wait for it");
    }
}

/* Reads to the end of the pipe or until the process has ended; its children may keep the pipe open. */
static int output_read(const struct process *process, struct buffer *text, struct error *error)
{
    char bytes[CHUNK];
    for (bool has_some;;) {
        if (process_wait(process, process->output, &has_some, error) < 0)
            return -1;
        if (!has_some)
            return 0;
        ssize_t count = read(process->output, bytes, sizeof bytes);
        if (count < 0 && errno != EINTR)
            return error_set_errno(error, "read its answer");
        if (count == 0)
            return 0;
        if (count > 0 && buffer_append(text, bytes, (size_t)count, error) < 0)
            return error_wrap(error, "its answer");
    }
}

static int process_end(struct process *process, struct error *error)
{
    int status;
    bool has_some;
    if (process_wait(process, -1, &has_some, error) < 0)
        return -1;
    waitpid(process->pid, &status, 0);
    process->pid = 0;
    if (WIFSIGNALED(status))
        return error_set(error, ERROR_UNAVAILABLE, "it was ended by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        return error_set(error, ERROR_UNAVAILABLE, "it ended with exit code %d", WEXITSTATUS(status));
    return 0;
}

static int run(const struct json *plugin, const struct json *cluster, int64_t timeout_ms, int cancel,
               struct buffer *answer, struct error *error)
{
    const char *mode = mode_of(plugin);
    bool terminal = isatty(STDIN_FILENO) != 0, interactive = terminal && strcmp(mode, "Never") != 0;
    if (!terminal && strcmp(mode, "Always") == 0)
        return error_set(error, ERROR_UNAVAILABLE, "interactiveMode is Always, and stdin is not a terminal");
    if (timeout_ms == 0)
        timeout_ms = interactive ? EXEC_PLUGIN_TERMINAL_TIMEOUT_MS : EXEC_PLUGIN_TIMEOUT_MS;
    SCOPED(process_release)
    struct process process = {.handle = -1,
                              .output = -1,
                              .cancel = cancel,
                              .interactive = interactive,
                              .deadline_ns = clock_monotonic_ns() + timeout_ms * NS_PER_MS};
    if (process_start(plugin, cluster, &process, error) < 0 || output_read(&process, answer, error) < 0)
        return -1;
    return process_end(&process, error);
}

int exec_plugin_run(const struct json *plugin, const struct json *cluster, int64_t timeout_ms, int cancel,
                    struct exec_credential *ret_credential, struct error *error)
{
    const char *command = json_string_at(plugin, "command", "");
    SCOPED_BUFFER answer = BUFFER_INIT(EXEC_CREDENTIAL_MAX);
    if (run(plugin, cluster, timeout_ms, cancel, &answer, error) < 0 ||
        exec_credential_parse(buffer_text(&answer), answer.length, json_string_at(plugin, "apiVersion", ""),
                              ret_credential, error) < 0)
        return error_wrap(error, "exec: %s", command);
    return 0;
}
