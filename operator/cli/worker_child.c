/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/worker_child.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/memory.h"
#include "common/scope.h"
#include "operator/cli/paths.h"

#define PROGRAM "coxswain-worker"
#define JOB_MAX (1024 * 1024)
#define MESSAGES_MAX (64 * 1024)
#define OPTIONS_MAX 64
#define INPUT_FILENO (STDERR_FILENO + 1) /* of WORKER_CHILD_INPUT */

extern char **environ;

static int write_input(const char *text, size_t length, int descriptor, struct error *error)
{
    if (write(descriptor, text, length) != (ssize_t)length || lseek(descriptor, 0, SEEK_SET) < 0)
        return error_set_errno(error, "pass the job or the prompt to " PROGRAM);
    return 0;
}

/* The model can be described and used without certificates and status. */
static int write_job(const struct json *job, int descriptor, struct error *error)
{
    SCOPED_JSON *shown = json_copy(job);
    SCOPED_BUFFER text = BUFFER_INIT(JOB_MAX);
    json_remove(shown, "status");
    json_remove(json_at(shown, "metadata"), "managedFields");
    json_remove(json_at(shown, "spec.coxswain"), "encryption");
    if (json_print(shown, &text, error) < 0)
        return -1;
    return write_input(text.data, text.length, descriptor, error);
}

int worker_child_job(const struct json *job, int *ret_file, struct error *error)
{
    SCOPED_CLOSE int file = memfd_create("job", MFD_CLOEXEC);
    if (file < 0)
        return error_set_errno(error, "make a file in memory for " PROGRAM);
    if (write_job(job, file, error) < 0)
        return -1;
    *ret_file = file;
    file = -1;
    return 0;
}

static int spawn(int job, int input, const struct worker_child *child, char *const *options, pid_t *ret_pid,
                 struct error *error)
{
    const char *words[OPTIONS_MAX + 4] = {PROGRAM, "--job", "/dev/stdin"};
    SCOPED_FREE char *path = path_of_program(PROGRAM);
    posix_spawn_file_actions_t actions;
    for (unsigned i = 0; options[i] && i < OPTIONS_MAX; i++)
        words[3 + i] = options[i];
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, job, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, child->output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, child->messages, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, input, INPUT_FILENO);
    /* libcurl's connections are not close-on-exec */
    posix_spawn_file_actions_addclosefrom_np(&actions, INPUT_FILENO + 1);
    errno = posix_spawnp(ret_pid, path, &actions, NULL, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (errno == ENOENT)
        return error_set(error, ERROR_NOT_FOUND,
                         PROGRAM
                         " is neither beside cox nor in PATH; install it: it describes, trains and uses models");
    return errno != 0 ? error_set_errno(error, "start " PROGRAM) : 0;
}

int worker_child_start(const struct json *job, const char *input, char *const *options, struct worker_child *ret_child,
                       struct error *error)
{
    SCOPED_CLOSE int job_file = -1;
    SCOPED_CLOSE int input_file = memfd_create("input", MFD_CLOEXEC);
    struct worker_child child = {.output = memfd_create("output", MFD_CLOEXEC),
                                 .messages = memfd_create("messages", MFD_CLOEXEC)};
    int result = input_file < 0 || child.output < 0 || child.messages < 0
                     ? error_set_errno(error, "make files in memory for " PROGRAM)
                     : worker_child_job(job, &job_file, error);
    if (result == 0 && input)
        result = write_input(input, strlen(input), input_file, error);
    if (result == 0)
        result = spawn(job_file, input_file, &child, options, &child.pid, error);
    if (result < 0)
        worker_child_release(&child);
    else
        *ret_child = child;
    return result;
}

void worker_child_release(struct worker_child *child)
{
    if (child->output >= 0)
        close(child->output);
    if (child->messages >= 0)
        close(child->messages);
    child->output = child->messages = -1;
}

/* Opens the file again, since the child writes at the descriptor's offset, which reading would change. */
static int read_from_start(int descriptor, struct buffer *text, struct error *error)
{
    SCOPED_FREE char *path = memory_format("/proc/self/fd/%d", descriptor);
    return buffer_read_file(text, path, error);
}

int worker_child_output(const struct worker_child *child, struct buffer *out, struct error *error)
{
    return read_from_start(child->output, out, error);
}

int worker_child_messages(const struct worker_child *child, struct buffer *out, struct error *error)
{
    return read_from_start(child->messages, out, error);
}

const char *worker_child_cause(const char *line)
{
    const char *cause = strncmp(line, "exit ", 5) == 0 ? strstr(line, "): ") : NULL;
    if (!cause)
        return NULL;
    cause += 3;
    return strncmp(cause, "/dev/stdin: ", 12) == 0 ? cause + 12 : cause;
}

int worker_child_failure(const struct worker_child *child, const char *otherwise, struct error *error)
{
    SCOPED_BUFFER text = BUFFER_INIT(MESSAGES_MAX);
    (void)worker_child_messages(child, &text, NULL);
    while (text.length > 0 && text.data[text.length - 1] == '\n')
        text.data[--text.length] = '\0';
    const char *line = strrchr(buffer_text(&text), '\n');
    line = line ? line + 1 : buffer_text(&text);
    const char *cause = worker_child_cause(line);
    line = cause ? cause : line;
    return error_set(error, ERROR_INVALID, "%.800s", *line ? line : otherwise);
}
