/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "operator/kube/call_queue.h"

Test(call_queue, flows_take_turns_and_each_keeps_its_order)
{
    struct call_queue queue;
    struct call_ticket big[5], small[2], late;
    call_queue_init(&queue);
    for (int i = 0; i < 5; i++)
        call_queue_push(&queue, "big", &big[i]);
    for (int i = 0; i < 2; i++)
        call_queue_push(&queue, "small", &small[i]);
    cr_assert_eq(call_queue_pop(&queue), &big[0]);
    call_queue_push(&queue, "late", &late);
    struct call_ticket *expected[] = {&small[0], &big[1], &late, &small[1], &big[2], &big[3], &big[4], NULL};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        cr_assert_eq(call_queue_pop(&queue), expected[i], "turn %zu", i);
    call_queue_release(&queue);
}

Test(call_queue, a_ticket_can_be_taken_out)
{
    struct call_queue queue;
    struct call_ticket tickets[3], never = {0};
    call_queue_init(&queue);
    for (int i = 0; i < 3; i++)
        call_queue_push(&queue, "a", &tickets[i]);
    call_queue_remove(&queue, &tickets[1]);
    call_queue_remove(&queue, &tickets[1]);
    call_queue_remove(&queue, &never);
    cr_assert_eq(queue.count, 2);
    cr_assert_eq(call_queue_pop(&queue), &tickets[0]);
    call_queue_remove(&queue, &tickets[2]);
    cr_assert_null(call_queue_pop(&queue));
    call_queue_release(&queue);
}
