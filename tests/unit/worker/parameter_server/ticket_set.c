/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/ticket_set.h"

#include <criterion/criterion.h>

Test(ticket_set, becomes_a_prefix_again_when_holes_close)
{
    SCOPED(ticket_set_release) struct ticket_set set = {0};
    cr_expect(ticket_set_add(&set, 1) && ticket_set_add(&set, 3) && set.low == 0 && set.above_count == 2);
    cr_expect(!ticket_set_add(&set, 3));
    cr_expect(ticket_set_has(&set, 1) && !ticket_set_has(&set, 0) && !ticket_set_has(&set, 2));
    cr_expect(ticket_set_end(&set) == 4);
    cr_expect(ticket_set_add(&set, 0) && set.low == 2 && set.above_count == 1);
    cr_expect(ticket_set_add(&set, 2) && set.low == 4 && set.above_count == 0);
}

Test(ticket_set, union_intersection_and_difference)
{
    SCOPED(ticket_set_release) struct ticket_set a = {0}, b = {0};
    ticket_set_reset(&a, 3);
    ticket_set_add(&a, 5);
    ticket_set_add(&a, 7);
    ticket_set_reset(&b, 2);
    ticket_set_add(&b, 5);
    ticket_set_add(&b, 6);
    cr_expect(ticket_set_count_missing(&a, &b) == 2 && ticket_set_count_missing(&b, &a) == 1);
    ticket_set_intersect(&a, &b);
    cr_expect(a.low == 2 && a.above_count == 1 && a.above[0] == 5);
    ticket_set_add_all(&a, &b);
    cr_expect(a.low == 2 && a.above_count == 2);
    ticket_set_reset(&b, 5);
    ticket_set_add_all(&a, &b);
    cr_expect(a.low == 7 && a.above_count == 0);
}

Test(ticket_set, survives_json_and_refuses_nonsense)
{
    SCOPED(ticket_set_release) struct ticket_set set = {0}, again = {0};
    ticket_set_reset(&set, 120);
    ticket_set_add(&set, 122);
    ticket_set_add(&set, 125);
    SCOPED_JSON *json = ticket_set_to_json(&set);
    cr_assert(ticket_set_from_json(json, &again, NULL) == 0);
    cr_expect(again.low == 120 && again.above_count == 2 && again.above[1] == 125);
    json_set_integer(json, "low", 123);
    struct error error = ERROR_INIT;
    cr_expect(ticket_set_from_json(json, &again, &error) < 0 && error.kind == ERROR_CORRUPT);
    cr_expect(ticket_set_from_json(NULL, &again, &error) < 0);
}
