/* SPDX-License-Identifier: Apache-2.0 */
#include "common/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND_MS 1000
#define MINUTE_S 60
#define HOUR_S 3600
#define DAY_S 86400

int64_t clock_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * SECOND_MS + now.tv_nsec / 1000000;
}

int64_t clock_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t clock_elapsed_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t clock_monotonic_ms(void)
{
    return clock_monotonic_ns() / 1000000;
}

/* Years beyond four digits have no RFC 3339 form; such times are pinned to its ends. */
static struct tm calendar(int64_t ms, int *ret_ms)
{
    static const int64_t first = -62167219200000, last = 253402300799999;
    ms = ms < first ? first : ms > last ? last : ms;
    *ret_ms = (int)(((ms % SECOND_MS) + SECOND_MS) % SECOND_MS);
    time_t seconds = (ms - *ret_ms) / SECOND_MS;
    struct tm parts;
    gmtime_r(&seconds, &parts);
    return parts;
}

/* strftime's %Y does not pad. */
static int format_calendar(const struct tm *parts, char text[CLOCK_TEXT_MAX])
{
    return snprintf(text, CLOCK_TEXT_MAX, "%04d-%02d-%02dT%02d:%02d:%02d", (parts->tm_year + 1900) % 10000,
                    parts->tm_mon + 1, parts->tm_mday, parts->tm_hour, parts->tm_min, parts->tm_sec);
}

void clock_format_seconds(int64_t ms, char text[CLOCK_TEXT_MAX])
{
    int fraction;
    struct tm parts = calendar(ms, &fraction);
    int used = format_calendar(&parts, text);
    snprintf(text + used, CLOCK_TEXT_MAX - (size_t)used, "Z");
}

void clock_format_microseconds(int64_t ms, char text[CLOCK_TEXT_MAX])
{
    int fraction;
    struct tm parts = calendar(ms, &fraction);
    int used = format_calendar(&parts, text);
    snprintf(text + used, CLOCK_TEXT_MAX - (size_t)used, ".%03d000Z", fraction);
}

/* ---------------------------------------------------------------- parse */

static bool read_number(const char **text, int digits, int *ret_number)
{
    int number = 0;
    for (int i = 0; i < digits; i++, (*text)++) {
        if (**text < '0' || **text > '9')
            return false;
        number = number * 10 + (**text - '0');
    }
    *ret_number = number;
    return true;
}

static bool read_byte(const char **text, char byte)
{
    if (**text != byte)
        return false;
    (*text)++;
    return true;
}

static int days_of_month(int month, int year)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

static bool read_date(const char **text, struct tm *parts)
{
    if (!read_number(text, 4, &parts->tm_year) || !read_byte(text, '-') || !read_number(text, 2, &parts->tm_mon) ||
        !read_byte(text, '-') || !read_number(text, 2, &parts->tm_mday))
        return false;
    if (parts->tm_mon < 1 || parts->tm_mon > 12 || parts->tm_mday < 1 ||
        parts->tm_mday > days_of_month(parts->tm_mon, parts->tm_year))
        return false;
    parts->tm_year -= 1900;
    parts->tm_mon -= 1;
    return true;
}

static bool read_time_of_day(const char **text, struct tm *parts)
{
    if (!read_number(text, 2, &parts->tm_hour) || !read_byte(text, ':') || !read_number(text, 2, &parts->tm_min) ||
        !read_byte(text, ':') || !read_number(text, 2, &parts->tm_sec))
        return false;
    return parts->tm_hour < 24 && parts->tm_min < 60 && parts->tm_sec <= 60;
}

/* Milliseconds of an optional fraction; further digits are dropped. */
static bool read_fraction(const char **text, int *ret_ms)
{
    *ret_ms = 0;
    if (!read_byte(text, '.'))
        return true;
    if (**text < '0' || **text > '9')
        return false;
    for (int scale = 100; **text >= '0' && **text <= '9'; (*text)++, scale /= 10)
        *ret_ms += (**text - '0') * scale;
    return true;
}

static bool read_zone(const char **text, int *ret_offset_s)
{
    *ret_offset_s = 0;
    if (read_byte(text, 'Z') || read_byte(text, 'z'))
        return true;
    int sign = **text == '-' ? -1 : 1, hours, minutes;
    if (!read_byte(text, '+') && !read_byte(text, '-'))
        return false;
    if (!read_number(text, 2, &hours) || !read_byte(text, ':') || !read_number(text, 2, &minutes))
        return false;
    *ret_offset_s = sign * (hours * HOUR_S + minutes * MINUTE_S);
    return hours < 24 && minutes < 60;
}

/* Years must have four digits in any time zone, so that a time can be printed again. */
#define FIRST_S INT64_C(-62167219200)
#define LAST_S INT64_C(253402300799)

bool clock_parse(const char *text, int64_t *ret_ms)
{
    struct tm parts = {0};
    int fraction, offset;
    if (!read_date(&text, &parts) || (!read_byte(&text, 'T') && !read_byte(&text, 't')))
        return false;
    if (!read_time_of_day(&text, &parts) || !read_fraction(&text, &fraction) || !read_zone(&text, &offset) || *text)
        return false;
    int64_t seconds = (int64_t)timegm(&parts) - offset;
    if (seconds < FIRST_S || seconds > LAST_S)
        return false;
    *ret_ms = seconds * SECOND_MS + fraction;
    return true;
}

/* ---------------------------------------------------------------- durations */

struct duration_unit {
    int64_t below_s; /* durations below this are written in this unit */
    int64_t unit_s;
    char letter;
    int64_t detail_below_s; /* those shorter than this also with a remainder in the next unit */
    int64_t detail_s;
    char detail_letter;
};

/* kubectl's steps (k8s.io/apimachinery duration.HumanDuration). */
static const struct duration_unit duration_units[] = {
    {2 * MINUTE_S, 1, 's', 0, 0, 0},
    {3 * HOUR_S, MINUTE_S, 'm', 10 * MINUTE_S, 1, 's'},
    {2 * DAY_S, HOUR_S, 'h', 8 * HOUR_S, MINUTE_S, 'm'},
    {730 * (int64_t)DAY_S, DAY_S, 'd', 8 * DAY_S, HOUR_S, 'h'},
    {INT64_MAX, 365 * (int64_t)DAY_S, 'y', 8 * 365 * (int64_t)DAY_S, DAY_S, 'd'},
};

void clock_format_duration(int64_t ms, char *text, size_t size)
{
    int64_t seconds = ms < 0 ? 0 : ms / SECOND_MS;
    const struct duration_unit *unit = duration_units;
    while (seconds >= unit->below_s)
        unit++;
    int64_t whole = seconds / unit->unit_s;
    int64_t detail = seconds < unit->detail_below_s ? seconds % unit->unit_s / unit->detail_s : 0;
    if (detail > 0)
        snprintf(text, size, "%lld%c%lld%c", (long long)whole, unit->letter, (long long)detail, unit->detail_letter);
    else
        snprintf(text, size, "%lld%c", (long long)whole, unit->letter);
}
