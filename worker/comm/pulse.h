/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells whether the threads that other processes depend on still go round: those
 * that accept connections and that hear messages. Each of them beats in its loop,
 * which never takes more than a second or so; a pulse that is minutes old belongs to
 * a thread that only a new process replaces. Any thread may ask.
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

/* Beats, and is looked at from now on until pulse_end. `name` says what the thread does: "accepts connections at the data port". */
void pulse_start(struct pulse *pulse, const char *name);
void pulse_beat(struct pulse *pulse);
void pulse_end(struct pulse *pulse);

int64_t pulse_age_ms(const struct pulse *pulse);
/* The age of the oldest of all, and its name; 0 and NULL where there is none. */
int64_t pulse_oldest_ms(const char **ret_name);

#endif
