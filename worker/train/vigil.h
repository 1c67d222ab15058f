/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the status document up to date while the training loop waits for its crew: a thread reports
 * which members it waits for, and why.
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
