/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the clocks, and formats and parses times as Kubernetes does. Code that decides by the time
 * takes `now` as a parameter and never reads a clock, so that tests can set it.
 */
#ifndef COXSWAIN_COMMON_CLOCK_H
#define COXSWAIN_COMMON_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the system time in milliseconds since 1970-01-01T00:00:00Z. */
int64_t clock_now_ms(void);
/* Returns nanoseconds of the monotonic clock, which stops while the machine is suspended. Only
 * differences are meaningful. */
int64_t clock_monotonic_ns(void);
/* Returns nanoseconds of a monotonic clock that also runs while the machine is suspended
 * (CLOCK_BOOTTIME): for leases, which others may take over in that time. */
int64_t clock_elapsed_ns(void);
/* Returns clock_monotonic_ns in milliseconds: for heartbeats and deadlines. */
int64_t clock_monotonic_ms(void);

/* Formats a time (milliseconds since 1970) as RFC 3339 in UTC: with seconds as metav1.Time ("2026-11-20T14:00:00Z"), with
 * microseconds as metav1.MicroTime ("2026-11-20T14:00:00.123000Z"). */
#define CLOCK_TEXT_MAX 32
void clock_format_seconds(int64_t ms, char text[CLOCK_TEXT_MAX]);
void clock_format_microseconds(int64_t ms, char text[CLOCK_TEXT_MAX]);
/* Parses an RFC 3339 time with any fraction and zone offset into milliseconds since 1970; further
 * digits are dropped. Returns false if `text` is not one. */
bool clock_parse(const char *text, int64_t *ret_ms);

/* Formats a duration as kubectl formats an age: "45s", "3m20s", "2h5m", "3d4h", "2y30d"; a negative
 * one is "0s". `text` has room for `size` bytes, at least 16. */
void clock_format_duration(int64_t ms, char *text, size_t size);

#endif
