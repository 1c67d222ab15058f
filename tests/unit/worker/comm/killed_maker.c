/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/worker/comm/killed_maker.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

void killed_maker_expect_swept(bool (*make)(char path[SHARED_FILE_PATH_MAX]), void (*sweep)(void))
{
    char path[SHARED_FILE_PATH_MAX];
    int pipes[2];
    cr_assert(pipe(pipes) == 0);
    pid_t child = fork();
    if (child == 0) {
        if (make(path) && write(pipes[1], path, sizeof path) == sizeof path)
            pause();
        _exit(1);
    }
    cr_assert(read(pipes[0], path, sizeof path) == sizeof path);
    sweep();
    cr_expect(access(path, F_OK) == 0, "its maker lives");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    cr_assert(access(path, F_OK) == 0);
    sweep();
    cr_expect(access(path, F_OK) < 0);
}
