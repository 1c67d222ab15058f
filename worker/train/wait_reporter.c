/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/wait_reporter.h"

#include "common/condition.h"
#include "common/lock.h"

#define LOOK_INTERVAL_MS 200

/* Waits that end before the first look are not reported. */
static void *watch(void *argument)
{
    struct wait_reporter *reporter = argument;
    char text[MEMBER_TEXT_MAX];
    SCOPED_LOCK(&reporter->mutex);
    while (!reporter->over) {
        condition_wait_ms(&reporter->ended, &reporter->mutex, LOOK_INTERVAL_MS);
        if (reporter->over)
            break;
        member_describe(reporter->trainer->member, text);
        if (text[0])
            report_phase(reporter->trainer->report, STATUS_WAITING, text);
    }
    return NULL;
}

void wait_reporter_start(struct wait_reporter *reporter, struct trainer *trainer)
{
    *reporter = (struct wait_reporter){.trainer = trainer};
    if (trainer->member == NULL)
        return;
    pthread_mutex_init(&reporter->mutex, NULL);
    condition_init(&reporter->ended);
    reporter->running = pthread_create(&reporter->thread, NULL, watch, reporter) == 0;
}

void wait_reporter_end(struct wait_reporter *reporter)
{
    if (reporter->trainer->member == NULL)
        return;
    pthread_mutex_lock(&reporter->mutex);
    reporter->over = true;
    pthread_cond_signal(&reporter->ended);
    pthread_mutex_unlock(&reporter->mutex);
    if (reporter->running)
        pthread_join(reporter->thread, NULL);
    pthread_cond_destroy(&reporter->ended);
    pthread_mutex_destroy(&reporter->mutex);
}
