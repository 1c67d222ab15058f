/* SPDX-License-Identifier: Apache-2.0
 *
 * Detects that a thread on which other processes depend is stuck: the threads that accept connections and those that
 * receive messages. Each of these threads calls heartbeat_renew once per turn of its loop, which takes a second or so at
 * most. The liveness probe (train/port_health.h) asks for the oldest beat: if it is minutes old, the thread is stuck
 * and only a new process helps. Functions may be called from any thread.
 */
#ifndef COXSWAIN_COMM_HEARTBEAT_H
#define COXSWAIN_COMM_HEARTBEAT_H

#include <stdatomic.h>
#include <stdint.h>

struct heartbeat {
    struct heartbeat *next;
    const char *name;
    atomic_llong beat_ms;
};

/* Adds a heartbeat, which is watched until heartbeat_end, and beats; the struct belongs to the caller. `name` says what the thread does
 * ("accepts connections at the data port"); it is not copied. */
void heartbeat_start(struct heartbeat *heartbeat, const char *name);
void heartbeat_renew(struct heartbeat *heartbeat);
void heartbeat_end(struct heartbeat *heartbeat);

/* Returns the time since the last beat. */
int64_t heartbeat_age_ms(const struct heartbeat *heartbeat);
/* Returns the largest age of all heartbeats, and that heartbeat's name; 0 and NULL if there are no heartbeats. */
int64_t heartbeat_oldest_ms(const char **ret_name);

#endif
