/* SPDX-License-Identifier: Apache-2.0
 *
 * Detects that a thread on which other processes depend is stuck: the threads that accept connections and those that
 * receive messages. Each of these threads calls pulse_beat once per turn of its loop, which takes a second or so at
 * most. The liveness probe (train/port_health.h) asks for the oldest beat: if it is minutes old, the thread is stuck
 * and only a new process helps. Functions may be called from any thread.
 */
#ifndef COXSWAIN_COMM_PULSE_H
#define COXSWAIN_COMM_PULSE_H

#include <stdatomic.h>
#include <stdint.h>

struct pulse {
    struct pulse *next;
    const char *name;
    atomic_llong beat_ms;
};

/* Adds a pulse, which is watched until pulse_end, and beats. `name` says what the thread does: "accepts connections at the data port". */
void pulse_start(struct pulse *pulse, const char *name);
void pulse_beat(struct pulse *pulse);
void pulse_end(struct pulse *pulse);

/* Returns the time since the last beat. */
int64_t pulse_age_ms(const struct pulse *pulse);
/* Returns the largest age of all pulses, and that pulse's name; 0 and NULL if there are no pulses. */
int64_t pulse_oldest_ms(const char **ret_name);

#endif
