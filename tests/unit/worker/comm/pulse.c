/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/pulse.h"

#include <criterion/criterion.h>
#include <stddef.h>

Test(pulse, the_oldest_of_all_is_named)
{
    struct pulse one, other;
    const char *name = "nobody";
    cr_expect_eq(pulse_oldest_ms(&name), 0);
    cr_expect_null(name);
    pulse_start(&one, "one");
    pulse_start(&other, "other");
    one.beat_ms -= 5000;
    cr_expect_geq(pulse_oldest_ms(&name), 5000);
    cr_expect_str_eq(name, "one");
    other.beat_ms -= 9000;
    cr_expect_geq(pulse_oldest_ms(&name), 9000);
    cr_expect_str_eq(name, "other");
    pulse_beat(&other);
    pulse_oldest_ms(&name);
    cr_expect_str_eq(name, "one");
    pulse_end(&one);
    pulse_oldest_ms(&name);
    cr_expect_str_eq(name, "other");
    pulse_end(&other);
}
