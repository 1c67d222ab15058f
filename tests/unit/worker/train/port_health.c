/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/port_health.h"

#include <criterion/criterion.h>
#include <string.h>

#include "worker/comm/heartbeat.h"

Test(port_health, a_thread_that_stands_still_for_ten_minutes_is_no_life)
{
    struct heartbeat heartbeat;
    char reason[128] = "";
    cr_expect(port_health_is_live(reason, sizeof reason), "there is nothing to stand still");
    heartbeat_start(&heartbeat, "hears messages");
    heartbeat.beat_ms -= 590000;
    cr_expect(port_health_is_live(reason, sizeof reason));
    heartbeat.beat_ms -= 20000;
    cr_expect_not(port_health_is_live(reason, sizeof reason));
    cr_expect(strstr(reason, "hears messages has stood still for 61"), "%s", reason);
    heartbeat_end(&heartbeat);
}

Test(port_health, a_process_without_strangers_says_nothing_of_them)
{
    struct status_document document;
    status_document_init(&document);
    port_health_fill(&document);
    cr_expect_eq(document.refused_per_minute, STATUS_UNKNOWN);
}
