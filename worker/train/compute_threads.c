/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/compute_threads.h"

#include <errno.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/contract/environment.h"
#include "common/log.h"
#include "worker/device/device.h"
#include "worker/model/program.h"

int compute_threads(const struct arguments *arguments, const struct identity *identity, const struct crew *crew)
{
    if (arguments->threads > 0)
        return arguments->threads;
    if (identity->threads > 0)
        return identity->threads;
    int share = device_available_cpus() / (crew != NULL ? (int)crew_members_here(crew, identity) : 1);
    return share > 0 ? share : 1;
}

void compute_threads_set_environment(const struct arguments *arguments, const struct identity *identity,
                                     const struct job_document *job)
{
    struct crew crew = {0};
    if (job != NULL && crew_read(job, identity, &crew, NULL) < 0) /* trainer_open_crew says why */
        return;
    program_set_environment(compute_threads(arguments, identity, job != NULL ? &crew : NULL));
    crew_release(&crew);
}

void compute_threads_begin_anew(int threads, const struct arguments *arguments, const struct identity *identity)
{
    char number[16];
    if (arguments->threads > 0 || identity->threads > 0)
        return;
    snprintf(number, sizeof number, "%d", threads);
    log_info("restarting with the number of threads with which the crew, or its checkpoint, has run the program",
             "threads", number, NULL);
    (void)fflush(NULL);
    /* A library's socket that stayed open would take connections which nobody answers. Kernels before 5.11 cannot. */
    (void)close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    if (setenv(ENV_THREADS, number, 1) < 0 || execv("/proc/self/exe", arguments->command_line) < 0)
        log_warning("cannot restart with the crew's number of threads", "error", strerror(errno), NULL);
}
