/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports what a worker waits for while its crew is incomplete: a thread asks the worker's
 * connection to the crew (coordination/member.h) which processes are missing and why, and writes
 * the answer into the status document. The training loop starts it before it waits for the crew and
 * ends it afterwards.
 */
#ifndef COXSWAIN_TRAIN_VIGIL_H
#define COXSWAIN_TRAIN_VIGIL_H

#include <pthread.h>
#include <stdbool.h>

#include "worker/train/trainer.h"

struct vigil {
    struct trainer *trainer;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    bool running, over;
};

/* Starts the thread. Does nothing for a crew of one. If the thread cannot be created, waiting is
 * not reported; training is unaffected. */
void vigil_start(struct vigil *vigil, struct trainer *trainer);
void vigil_end(struct vigil *vigil);

#endif
