/* SPDX-License-Identifier: Apache-2.0 */
#include "common/clock.h"

#include <criterion/criterion.h>

Test(clock, reads_what_kubernetes_writes)
{
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-11-20T14:00:00Z", 1795183200000},
        {"2026-11-20T14:00:00.123456Z", 1795183200123},
        {"2026-11-20T15:30:00.5+01:30", 1795183200500},
        {"2026-11-20T12:00:00-02:00", 1795183200000},
        {"1969-12-31T23:59:59.999Z", -1},
        {"2024-02-29T00:00:00Z", 1709164800000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ms = 42;
        cr_expect(clock_parse(cases[i].text, &ms), "%s", cases[i].text);
        cr_expect(ms == cases[i].ms, "%s: %lld", cases[i].text, (long long)ms);
    }
}

Test(clock, refuses_what_is_no_time)
{
    static const char *const cases[] = {
        "",
        "now",
        "2026-11-20",
        "2026-11-20T14:00Z",
        "2026-13-20T14:00:00Z",
        "9999-12-31T23:59:59-00:01",
        "0000-01-01T00:00:00+00:01",
        "2025-02-29T00:00:00Z",
        "2026-11-20T24:00:00Z",
        "2026-11-20T14:00:00",
        "2026-11-20T14:00:00.Z",
        "2026-11-20T14:00:00Zz",
        "2026-11-20T14:00:00+1:00",
        "2026-11-20T14:00:00+25:00",
        "2026-11-00T14:00:00Z",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ms = 42;
        cr_expect(!clock_parse(cases[i], &ms), "%s", cases[i]);
        cr_expect(ms == 42);
    }
}

Test(clock, writes_rfc_3339)
{
    char text[CLOCK_TEXT_MAX];
    clock_format_seconds(1795183200123, text);
    cr_expect_str_eq(text, "2026-11-20T14:00:00Z");
    clock_format_microseconds(1795183200123, text);
    cr_expect_str_eq(text, "2026-11-20T14:00:00.123000Z");
    clock_format_microseconds(-1, text);
    cr_expect_str_eq(text, "1969-12-31T23:59:59.999000Z");
    clock_format_seconds(INT64_MAX, text);
    cr_expect_str_eq(text, "9999-12-31T23:59:59Z");
    clock_format_seconds(INT64_MIN, text);
    cr_expect_str_eq(text, "0000-01-01T00:00:00Z");
}

/* Each step of kubectl's scale, at its edges. */
Test(clock, tells_ages_as_kubectl_does)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {
        {-5, "0s"},
        {0, "0s"},
        {1, "1s"},
        {70, "70s"},
        {119, "119s"},
        {120, "2m"},
        {190, "3m10s"},
        {600, "10m"},
        {70 * 60, "70m"},
        {3 * 3600, "3h"},
        {3 * 3600 + 600, "3h10m"},
        {47 * 3600, "47h"},
        {48 * 3600, "2d"},
        {49 * 3600, "2d1h"},
        {8 * 86400, "8d"},
        {729 * (int64_t)86400, "729d"},
        {2 * 365 * (int64_t)86400, "2y"},
        {2 * 365 * (int64_t)86400 + 86400, "2y1d"},
        {9 * 365 * (int64_t)86400, "9y"},
    };
    char text[16];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clock_format_duration(cases[i].seconds * 1000, text, sizeof text);
        cr_expect_str_eq(text, cases[i].text);
    }
}

Test(clock, monotonic_goes_forward)
{
    int64_t before = clock_monotonic_ns();
    cr_expect(clock_monotonic_ns() >= before);
    cr_expect(clock_now_ms() > 1700000000000);
}
