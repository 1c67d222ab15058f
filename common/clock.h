/* SPDX-License-Identifier: Apache-2.0
 *
 * Time, and time as Kubernetes writes it. Policies take `now` as a parameter and
 * never ask the clock themselves, so that tests can jump.
 */
#ifndef COXSWAIN_COMMON_CLOCK_H
#define COXSWAIN_COMMON_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Milliseconds since 1970-01-01T00:00:00Z. */
int64_t clock_now_ms(void);
/* Nanoseconds on a clock that never jumps; only differences mean anything. */
int64_t clock_monotonic_ns(void);
/* The same on a clock that goes on while the machine is suspended: for what others may do meanwhile. */
int64_t clock_elapsed_ns(void);
/* The monotonic one in milliseconds, for beats and deadlines. */
int64_t clock_monotonic_ms(void);

/* RFC 3339 in UTC. Seconds: metav1.Time ("2026-11-20T14:00:00Z"); microseconds: metav1.MicroTime. */
#define CLOCK_TEXT_MAX 32
void clock_format_seconds(int64_t ms, char text[CLOCK_TEXT_MAX]);
void clock_format_microseconds(int64_t ms, char text[CLOCK_TEXT_MAX]);
/* Accepts both, with any fraction and any zone offset; false when it is not a time. */
bool clock_parse(const char *text, int64_t *ret_ms);

/* "45s", "3m20s", "2h5m", "3d4h": how kubectl writes an age. `text` holds at least 16 bytes. */
void clock_format_duration(int64_t ms, char *text, size_t size);

#endif
