/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/port_health.h"

#include <pthread.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/lock.h"
#include "worker/comm/heartbeat.h"
#include "worker/comm/strangers.h"

#define WINDOW_MS 10000
#define STUCK_MS 600000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static int64_t taken_ms;                                 /* 0: not yet */
static int64_t per_minute;
static struct stranger_summary summary;

void port_health_fill(struct status_document *document)
{
    int64_t now = clock_monotonic_ms();
    SCOPED_LOCK(&lock);
    if (taken_ms == 0)
        taken_ms = now;
    if (now - taken_ms >= WINDOW_MS) {
        strangers_take(&summary);
        per_minute = (int64_t)summary.refused * 60000 / (now - taken_ms);
        taken_ms = now;
    }
    if (per_minute > 0) {
        document->refused_per_minute = per_minute;
        snprintf(document->refused_from, sizeof document->refused_from, "%s", summary.worst);
        snprintf(document->refused_reason, sizeof document->refused_reason, "%s port: %s",
                 stranger_port_name(summary.port), summary.reason);
    }
}

bool port_health_is_live(char *reason, size_t size)
{
    const char *name;
    int64_t age_ms = heartbeat_oldest_ms(&name);
    if (age_ms < STUCK_MS)
        return true;
    snprintf(reason, size, "the thread that %s has stood still for %lld s", name, (long long)age_ms / 1000);
    return false;
}
