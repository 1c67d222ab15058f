/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/worker_model.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "operator/cli/worker_child.h"

#define WAIT_MS 10000
#define TURN_MS 5

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
    return error_set(error, ERROR_UNAVAILABLE, "coxswain-worker has not described the model within %d s",
                     WAIT_MS / 1000);
}

int worker_model_describe(const struct json *job, struct buffer *out, struct error *error)
{
    static char describe[] = "--describe-model";
    SCOPED(worker_child_release) struct worker_child child = {.output = -1, .messages = -1};
    int status;
    if (worker_child_start(job, NULL, (char *const[]){describe, NULL}, &child, error) < 0 ||
        await(child.pid, &status, error) < 0)
        return -1;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return worker_child_failure(&child, "coxswain-worker could not describe the model", error);
    return worker_child_output(&child, out, error);
}
