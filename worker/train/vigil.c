/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/vigil.h"

#include <time.h>

#define LOOK_INTERVAL_NS 200000000L
#define SECOND_NS 1000000000L

static struct timespec next_look(void)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += LOOK_INTERVAL_NS;
    if (at.tv_nsec >= SECOND_NS) {
        at.tv_nsec -= SECOND_NS;
        at.tv_sec++;
    }
    return at;
}

/* A wait that is over before the first look is not worth a line. */
static void *watch(void *argument)
{
    struct vigil *vigil = argument;
    char text[MEMBER_TEXT_MAX];
    pthread_mutex_lock(&vigil->mutex);
    while (!vigil->over) {
        struct timespec at = next_look();
        pthread_cond_timedwait(&vigil->ended, &vigil->mutex, &at);
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
    pthread_cond_init(&vigil->ended, NULL);
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
