/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_container.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/contract/environment.h"
#include "common/directory.h"
#include "common/memory.h"
#include "operator/standalone/node_gpus.h"
#include "operator/standalone/node_log.h"
#include "operator/standalone/node_rewrite.h"

#define FALLBACK_LOG_LINES 80
#define FALLBACK_LOG_MAX 2048

char *pod_hosts_path(const char *pod_directory)
{
    return memory_format("%s/hosts", pod_directory);
}

char *container_log_path(const char *pod_directory, const char *container)
{
    return memory_format("%s/logs/%s.log", pod_directory, container);
}

char *pod_temporary_path(const char *uid)
{
    const char *machine = getenv("TMPDIR");
    return memory_format("%s/cox-%.13s", machine && *machine == '/' ? machine : "/tmp", uid);
}

/* Any user may own a name in /tmp, so it must be a directory of ours. */
static int temporary_make(const char *path, struct error *error)
{
    struct stat status;
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_set_errno(error, "make %s", path);
    if (lstat(path, &status) < 0)
        return error_set_errno(error, "read the owner of %s", path);
    if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid())
        return error_set(error, ERROR_FORBIDDEN, "%s exists but is not a directory of this user: remove it", path);
    return 0;
}

/* <pod directory>/containers/<container>/termination-log; release with free(). */
static char *termination_path(const char *pod_directory, const char *container)
{
    return memory_format("%s/containers/%s/termination-log", pod_directory, container);
}

/* ---------------------------------------------------------------- files and mounts */

static int termination_log_make(const char *path, struct error *error)
{
    SCOPED_FREE char *directory = memory_copy_bytes(path, (size_t)(strrchr(path, '/') - path));
    if (directory_make(directory, error) < 0)
        return -1;
    SCOPED_CLOSE int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return file < 0 ? error_set_errno(error, "make %s", path) : 0;
}

static int mounts_prepare(const struct volume_source *source, const struct json *container,
                          struct container_launch *launch, struct error *error)
{
    const char *directory = source->pod_directory, *name = json_string_at(container, "name", "");
    SCOPED_FREE char *termination = termination_path(directory, name);
    SCOPED_FREE char *hosts = pod_hosts_path(directory);
    if (volume_mounts_resolve(source, container, &launch->mounts, error) < 0 ||
        termination_log_make(termination, error) < 0)
        return -1;
    const char *termination_target = json_string_at(container, "terminationMessagePath", "/dev/termination-log");
    volume_mounts_add(&launch->mounts, termination, termination_target, false);
    if (!launch->namespaces)
        return 0;
    volume_mounts_add(&launch->mounts, hosts, "/etc/hosts", false);
    SCOPED_FREE char *root = memory_format("%s/containers/%s/root", directory, name);
    if (directory_make(root, error) < 0)
        return -1;
    return mount_plan_make(root, launch->mounts.points, launch->mounts.count, &launch->plan, error);
}

/* ---------------------------------------------------------------- environment */

/* Takes the machine's environment, as far as programs need it to run, in place of an image's. */
static void inherit(struct environment *environment, const char *program_directory)
{
    static const char *const names[] = {"HOME",
                                        "USER",
                                        "LANG",
                                        "LC_ALL",
                                        "TZ",
                                        "LD_LIBRARY_PATH",
                                        "CUDA_DEVICE_ORDER",
                                        ENV_PJRT_PLUGIN,
                                        ENV_PJRT_CPU_DEVICES,
                                        "ASAN_OPTIONS",
                                        "LSAN_OPTIONS",
                                        "TSAN_OPTIONS",
                                        "UBSAN_OPTIONS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value)
            environment_set(environment, names[i], value);
    }
    const char *path = getenv("PATH");
    SCOPED_FREE char *whole = memory_format("%s:%s", program_directory, path ? path : "/usr/local/bin:/usr/bin:/bin");
    environment_set(environment, "PATH", whole);
}

/* A container that requests no GPU sees none, as on a node with NVIDIA's device plugin. */
static void environment_set_gpus(const struct volume_source *source, const struct json *container,
                                 struct environment *environment)
{
    const char *visible = gpu_requested_by(container) ? source->configuration->gpus
                          : gpu_claimed_by(container) ? getenv(ENV_VISIBLE_GPUS)
                                                      : "";
    if (visible)
        environment_set(environment, ENV_VISIBLE_GPUS, visible);
}

static void environment_rewrite(struct environment *environment, const struct volume_mounts *mounts)
{
    for (size_t i = 0; i < environment->count; i++) {
        char *rewritten = paths_rewrite(environment->entries[i], mounts->points, mounts->count);
        free(environment->entries[i]);
        environment->entries[i] = rewritten;
    }
}

static void environment_set_default(struct environment *environment, const char *name, const char *value)
{
    if (!environment_get(environment, name))
        environment_set(environment, name, value);
}

/* Our own programs know that all pods share one network; foreign ones are helped (preload/pod_network.c). */
static void environment_set_preload(const struct volume_source *source, struct container_launch *launch)
{
    static const char *const places[] = {".", "../lib/coxswain"};
    const char *programs = source->options->program_directory;
    struct environment *environment = &launch->environment;
    if (strncmp(launch->executable, programs, strlen(programs)) == 0)
        return;
    environment_set_default(environment, ENV_POD_IP,
                            json_string_at(source->configuration->pod, "status.podIP", "127.0.0.1"));
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        SCOPED_FREE char *path = memory_format("%s/%s/coxswain-pod.so", programs, places[i]);
        if (access(path, R_OK) != 0)
            continue;
        const char *given = environment_get(environment, "LD_PRELOAD");
        SCOPED_FREE char *all = memory_format("%s%s%s", given ? given : "", given ? ":" : "", path);
        environment_set(environment, "LD_PRELOAD", all);
        return;
    }
}

static int environment_prepare(const struct volume_source *source, const struct json *container,
                               struct container_launch *launch, struct error *error)
{
    struct environment *environment = &launch->environment;
    inherit(environment, source->options->program_directory);
    environment_set(environment, "HOSTNAME", launch->hostname);
    environment_set(environment, "TMPDIR", launch->temporary);
    environment_set_gpus(source, container, environment);
    if (environment_resolve(environment, container, source->configuration, error) < 0)
        return -1;
    if (launch->namespaces)
        return 0;
    environment_rewrite(environment, &launch->mounts);
    SCOPED_FREE char *hosts = pod_hosts_path(source->pod_directory);
    SCOPED_FREE char *termination = termination_path(source->pod_directory, json_string_at(container, "name", ""));
    environment_set_default(environment, ENV_HOSTS_FILE, hosts);
    environment_set_default(environment, ENV_TERMINATION_LOG, termination);
    return 0;
}

/* ---------------------------------------------------------------- the command */

static char *argument_make(const struct container_launch *launch, const char *text)
{
    SCOPED_FREE char *expanded = environment_expand(&launch->environment, text);
    if (launch->namespaces)
        return memory_copy_string(expanded);
    return paths_rewrite(expanded, launch->mounts.points, launch->mounts.count);
}

static char *find_in_path(const char *path, const char *name)
{
    while (path && *path) {
        size_t length = strcspn(path, ":");
        SCOPED_FREE char *candidate = memory_format("%.*s/%s", (int)length, path, name);
        if (access(candidate, X_OK) == 0)
            return memory_copy_string(candidate);
        path += length + (path[length] == ':');
    }
    return NULL;
}

/* A bare name: PATH begins with the program directory, unless the pod sets its own. */
static int executable_find(const struct volume_source *source, struct container_launch *launch, struct error *error)
{
    const char *name = launch->arguments[0];
    if (strchr(name, '/')) {
        launch->executable = memory_copy_string(name);
        return 0;
    }
    launch->executable = find_in_path(source->options->program_directory, name);
    if (!launch->executable)
        launch->executable = find_in_path(environment_get(&launch->environment, "PATH"), name);
    if (launch->executable)
        return 0;
    return error_set(error, ERROR_INVALID, "exec: \"%s\": executable file not found in %s nor in $PATH", name,
                     source->options->program_directory);
}

static int command_prepare(const struct volume_source *source, const struct json *container,
                           struct container_launch *launch, struct error *error)
{
    const struct json *command = json_member(container, "command"), *args = json_member(container, "args");
    if (json_count(command) == 0)
        return error_set(error, ERROR_INVALID,
                         "the embedded control plane runs no images: give the container a command");
    size_t count = 0;
    launch->arguments = memory_allocate(json_count(command) + json_count(args) + 1, sizeof *launch->arguments);
    for (const struct json *item = json_first(command); item; item = json_next(item))
        launch->arguments[count++] = argument_make(launch, json_string(item, ""));
    for (const struct json *item = json_first(args); item; item = json_next(item))
        launch->arguments[count++] = argument_make(launch, json_string(item, ""));
    return executable_find(source, launch, error);
}

static int directory_prepare(const struct volume_source *source, const struct json *container,
                             struct container_launch *launch, struct error *error)
{
    const char *given = json_string_at(container, "workingDir", "");
    if (*given) {
        launch->directory = argument_make(launch, given);
        return 0;
    }
    launch->directory = memory_format("%s/work", source->pod_directory);
    return directory_make(launch->directory, error);
}

int container_launch_prepare(const struct volume_source *source, const struct json *container, bool namespaces,
                             struct container_launch *ret_launch, struct error *error)
{
    const struct json *pod = source->configuration->pod;
    struct container_launch launch = {
        .namespaces = namespaces,
        .hostname =
            memory_copy_string(json_string_at(pod, "spec.hostname", json_string_at(pod, "metadata.name", NODE_NAME))),
        .temporary = pod_temporary_path(json_string_at(pod, "metadata.uid", "")),
    };
    if (temporary_make(launch.temporary, error) < 0 || mounts_prepare(source, container, &launch, error) < 0 ||
        environment_prepare(source, container, &launch, error) < 0 ||
        command_prepare(source, container, &launch, error) < 0 ||
        directory_prepare(source, container, &launch, error) < 0) {
        container_launch_release(&launch);
        return -1;
    }
    environment_set_preload(source, &launch);
    *ret_launch = launch;
    return 0;
}

void container_launch_release(struct container_launch *launch)
{
    for (char **argument = launch->arguments; argument && *argument; argument++)
        free(*argument);
    free(launch->arguments);
    free(launch->executable);
    free(launch->directory);
    free(launch->hostname);
    free(launch->temporary);
    environment_release(&launch->environment);
    volume_mounts_release(&launch->mounts);
    mount_plan_release(&launch->plan);
    *launch = (struct container_launch){.executable = NULL};
}

/* ---------------------------------------------------------------- its termination message */

static char *last_log_lines(const char *pod_directory, const char *container)
{
    SCOPED_FREE char *path = container_log_path(pod_directory, container);
    struct pod_log_query query = {.container = container, .tail_lines = FALLBACK_LOG_LINES, .limit_bytes = -1};
    SCOPED_BUFFER text = BUFFER_INIT(CONTAINER_LOG_MAX);
    if (container_log_read(path, &query, &text, NULL) < 0)
        return memory_copy_string("");
    size_t skip = text.length > FALLBACK_LOG_MAX ? text.length - FALLBACK_LOG_MAX : 0;
    return memory_copy_string(buffer_text(&text) + skip);
}

char *container_termination_message(const char *pod_directory, const struct json *container, int exit_code)
{
    const char *name = json_string_at(container, "name", "");
    SCOPED_FREE char *path = termination_path(pod_directory, name);
    SCOPED_CLOSE int file = open(path, O_RDONLY | O_CLOEXEC);
    char text[TERMINATION_MESSAGE_MAX];
    struct stat state;
    bool longer = file >= 0 && fstat(file, &state) == 0 && state.st_size > (off_t)sizeof text;
    ssize_t length = file < 0 ? 0 : pread(file, text, sizeof text, longer ? state.st_size - (off_t)sizeof text : 0);
    const char *policy = json_string_at(container, "terminationMessagePolicy", "File");
    if (length <= 0 && exit_code != 0 && strcmp(policy, "FallbackToLogsOnError") == 0)
        return last_log_lines(pod_directory, name);
    return memory_copy_bytes(text, length > 0 ? (size_t)length : 0);
}
