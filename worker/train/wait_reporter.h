/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports what a worker waits for while its crew is incomplete: a thread asks the worker's
 * connection to the crew (coordination/member.h) which processes are missing and why, and writes
 * the answer into the status document. The training loop starts it before it waits for the crew and
 * ends it afterwards.
 */
#ifndef COXSWAIN_TRAIN_WAIT_REPORTER_H
#define COXSWAIN_TRAIN_WAIT_REPORTER_H

#include <pthread.h>
#include <stdbool.h>

#include "worker/train/trainer.h"

struct wait_reporter {
    struct trainer *trainer;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    bool running, over;
};

/* Starts the thread. Does nothing for a crew of one. If the thread cannot be created, waiting is
 * not reported; training is unaffected. */
void wait_reporter_start(struct wait_reporter *reporter, struct trainer *trainer);
void wait_reporter_end(struct wait_reporter *reporter);

#endif
