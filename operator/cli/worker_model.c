/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/worker_model.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/scope.h"
#include "operator/cli/paths.h"

#define PROGRAM "coxswain-worker"
#define JOB_MAX (1024 * 1024)
#define WORDS_MAX (64 * 1024)
#define WAIT_MS 10000
#define TURN_MS 5

extern char **environ;

/* Certificates and status are not needed to know the layers. */
static int write_job(const struct json *job, int descriptor, struct error *error)
{
    SCOPED_JSON *shown = json_copy(job);
    SCOPED_BUFFER text;
    buffer_init(&text, JOB_MAX);
    json_remove(shown, "status");
    json_remove(json_at(shown, "metadata"), "managedFields");
    json_remove(json_at(shown, "spec.coxswain"), "encryption");
    if (json_print(shown, &text, error) < 0)
        return -1;
    if (write(descriptor, text.data, text.length) != (ssize_t)text.length || lseek(descriptor, 0, SEEK_SET) < 0)
        return error_set_errno(error, "pass the job to " PROGRAM);
    return 0;
}

static int start(int job, int answer, int words, pid_t *ret_child, struct error *error)
{
    static const char *const values[] = {PROGRAM, "--job", "/dev/stdin", "--describe-model", NULL};
    SCOPED_FREE char *path = path_of_program(PROGRAM);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, job, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, answer, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, words, STDERR_FILENO);
    errno = posix_spawnp(ret_child, path, &actions, NULL, (char *const *)values, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (errno == ENOENT)
        return error_set(error, ERROR_NOT_FOUND,
                         PROGRAM " is neither beside cox nor in PATH: without it the layers are not known here");
    return errno != 0 ? error_set_errno(error, "start " PROGRAM) : 0;
}

/* Kills a child that takes too long. */
static int await(pid_t child, int *ret_status, struct error *error)
{
    const struct timespec turn = {.tv_nsec = TURN_MS * 1000000L};
    for (int waited = 0; waited < WAIT_MS; waited += TURN_MS) {
        if (waitpid(child, ret_status, WNOHANG) == child)
            return 0;
        nanosleep(&turn, NULL);
    }
    kill(child, SIGKILL);
    while (waitpid(child, ret_status, 0) < 0 && errno == EINTR)
        continue;
    return error_set(error, ERROR_UNAVAILABLE, PROGRAM " has not described the model within %d s", WAIT_MS / 1000);
}

static int read_from_start(int descriptor, struct buffer *text, struct error *error)
{
    if (lseek(descriptor, 0, SEEK_SET) < 0)
        return error_set_errno(error, "read what " PROGRAM " says");
    return buffer_read_descriptor(text, descriptor, "what " PROGRAM " says", error);
}

/* The worker's error without the name of the file: "exit 64 (the job is wrong): /dev/stdin: spec…". */
static int refuse(int words, struct error *error)
{
    SCOPED_BUFFER text;
    buffer_init(&text, WORDS_MAX);
    (void)read_from_start(words, &text, NULL);
    while (text.length > 0 && text.data[text.length - 1] == '\n')
        text.data[--text.length] = '\0';
    const char *line = strrchr(buffer_text(&text), '\n');
    line = line ? line + 1 : buffer_text(&text);
    const char *cause = strncmp(line, "exit ", 5) == 0 ? strstr(line, "): ") : NULL;
    line = cause ? cause + 3 : line;
    if (strncmp(line, "/dev/stdin: ", 12) == 0)
        line += 12;
    return error_set(error, ERROR_INVALID, "%.800s", *line ? line : PROGRAM " could not describe the model");
}

int worker_model_describe(const struct json *job, struct buffer *out, struct error *error)
{
    SCOPED_CLOSE int given = memfd_create("job", MFD_CLOEXEC), answer = memfd_create("layers", MFD_CLOEXEC),
                     words = memfd_create("words", MFD_CLOEXEC);
    pid_t child;
    int status;
    if (given < 0 || answer < 0 || words < 0)
        return error_set_errno(error, "make files in memory for " PROGRAM);
    if (write_job(job, given, error) < 0 || start(given, answer, words, &child, error) < 0 ||
        await(child, &status, error) < 0)
        return -1;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return refuse(words, error);
    return read_from_start(answer, out, error);
}
