/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/vigil.h"

#include "common/condition.h"

#define LOOK_INTERVAL_MS 200

/* Waits that end before the first look are not reported. */
static void *watch(void *argument)
{
    struct vigil *vigil = argument;
    char text[MEMBER_TEXT_MAX];
    pthread_mutex_lock(&vigil->mutex);
    while (!vigil->over) {
        condition_wait_ms(&vigil->ended, &vigil->mutex, LOOK_INTERVAL_MS);
        if (vigil->over)
            break;
        member_describe(vigil->trainer->member, text);
        if (text[0])
            report_phase(vigil->trainer->report, STATUS_WAITING, text);
    }
    pthread_mutex_unlock(&vigil->mutex);
    return NULL;
}

void vigil_start(struct vigil *vigil, struct trainer *trainer)
{
    *vigil = (struct vigil){.trainer = trainer};
    if (trainer->member == NULL)
        return;
    pthread_mutex_init(&vigil->mutex, NULL);
    condition_init(&vigil->ended);
    vigil->running = pthread_create(&vigil->thread, NULL, watch, vigil) == 0;
}

void vigil_end(struct vigil *vigil)
{
    if (vigil->trainer->member == NULL)
        return;
    pthread_mutex_lock(&vigil->mutex);
    vigil->over = true;
    pthread_cond_signal(&vigil->ended);
    pthread_mutex_unlock(&vigil->mutex);
    if (vigil->running)
        pthread_join(vigil->thread, NULL);
    pthread_cond_destroy(&vigil->ended);
    pthread_mutex_destroy(&vigil->mutex);
}
