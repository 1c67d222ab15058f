/* SPDX-License-Identifier: Apache-2.0
 *
 * While the training loop waits for its crew, a thread keeps the status document
 * true: whom it waits for, and why.
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

/* Does nothing for a crew of one. A vigil that cannot start is silently none: it only tells. */
void vigil_start(struct vigil *vigil, struct trainer *trainer);
void vigil_end(struct vigil *vigil);

#endif
