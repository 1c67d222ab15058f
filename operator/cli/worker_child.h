/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs coxswain-worker as a child process that reads a job from its standard input, for the page of `cox ui` (ui/model_use.h) and to check
 * a job before it runs (run_check.h). The child prints into files in memory.
 */
#ifndef COXSWAIN_CLI_WORKER_CHILD_H
#define COXSWAIN_CLI_WORKER_CHILD_H

#include <sys/types.h>

#include "common/buffer.h"
#include "common/json.h"

struct worker_child {
    pid_t pid;
    int output, messages; /* its standard output and standard error */
};

#define WORKER_CHILD_INPUT "/dev/fd/3"

/* Starts coxswain-worker --job /dev/stdin with the options, which end with NULL. The worker can read `input` from the file
 * WORKER_CHILD_INPUT; NULL: there is none. The caller waits for `ret_child->pid`, and then releases the child. ERROR_NOT_FOUND:
 * coxswain-worker is neither beside cox nor in PATH. */
int worker_child_start(const struct json *job, const char *input, char *const *options, struct worker_child *ret_child,
                       struct error *error);

/* Writes the job to a file in memory, as a worker takes it at /dev/stdin; `*ret_file` is at its beginning, and is not inherited. */
int worker_child_job(const struct json *job, int *ret_file, struct error *error);

/* Append what the child has printed so far to its standard output and to its standard error. */
int worker_child_output(const struct worker_child *child, struct buffer *out, struct error *error);
int worker_child_messages(const struct worker_child *child, struct buffer *out, struct error *error);
/* Returns the cause in the line with which a worker ends, "exit 64 (the job is wrong): /dev/stdin: spec…", without the name of the file;
 * NULL: the line is another one. Points into `line`. */
const char *worker_child_cause(const char *line);
/* Sets ERROR_INVALID with the last line of a failed child's standard error, or with `otherwise` if there is none; returns -1. */
int worker_child_failure(const struct worker_child *child, const char *otherwise, struct error *error);

void worker_child_release(struct worker_child *child);

#endif
