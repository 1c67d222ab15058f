/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/heartbeat.h"

#include <criterion/criterion.h>
#include <stddef.h>

Test(heartbeat, the_oldest_of_all_is_named)
{
    struct heartbeat one, other;
    const char *name = "nobody";
    cr_expect_eq(heartbeat_oldest_ms(&name), 0);
    cr_expect_null(name);
    heartbeat_start(&one, "one");
    heartbeat_start(&other, "other");
    one.beat_ms -= 5000;
    cr_expect_geq(heartbeat_oldest_ms(&name), 5000);
    cr_expect_str_eq(name, "one");
    other.beat_ms -= 9000;
    cr_expect_geq(heartbeat_oldest_ms(&name), 9000);
    cr_expect_str_eq(name, "other");
    heartbeat_renew(&other);
    heartbeat_oldest_ms(&name);
    cr_expect_str_eq(name, "one");
    heartbeat_end(&one);
    heartbeat_oldest_ms(&name);
    cr_expect_str_eq(name, "other");
    heartbeat_end(&other);
}
