/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/bulk.h"

#include <criterion/criterion.h>
#include <string.h>

#define BODY 100

/* A bulk message, cut into pieces anywhere, as a network does. */
static void expect_taken(size_t first, size_t second)
{
    unsigned char message[BULK_HEAD_BYTES + BODY], where[BODY] = {0};
    bulk_head_encode(&(struct bulk_head){.offset = 0, .total = BODY}, message);
    for (size_t i = 0; i < BODY; i++)
        message[BULK_HEAD_BYTES + i] = (unsigned char)i;
    const struct rpc_piece pieces[] = {
        {message, first}, {message + first, second}, {message + first + second, sizeof message - first - second}};
    struct bulk_inbox inbox = {0};
    struct ps_message none;
    bool bulk;
    cr_assert(bulk_or_message(pieces, 3, &bulk, &none, NULL) == 0 && bulk, "%zu, %zu", first, second);
    cr_assert(bulk_inbox_expect(&inbox, BODY, where, NULL) == 0);
    cr_assert(bulk_inbox_take(&inbox, pieces, 3, NULL) == 0 && bulk_inbox_is_full(&inbox));
    cr_assert(memcmp(where, message + BULK_HEAD_BYTES, BODY) == 0);
    struct error error = ERROR_INIT;
    cr_expect(bulk_inbox_take(&inbox, pieces, 3, &error) < 0 && error.kind == ERROR_CORRUPT, "twice");
}

Test(bulk, a_message_may_be_cut_anywhere)
{
    for (size_t first = 0; first <= 40; first++)
        for (size_t second = 0; second <= 40; second++)
            expect_taken(first, second);
}

Test(bulk, what_nobody_announced_is_refused)
{
    unsigned char message[BULK_HEAD_BYTES + 8] = {0};
    struct bulk_inbox inbox = {0};
    const struct rpc_piece piece = {message, sizeof message};
    bulk_head_encode(&(struct bulk_head){.offset = 0, .total = 8}, message);
    cr_expect(bulk_inbox_take(&inbox, &piece, 1, NULL) < 0);
    cr_assert(bulk_inbox_expect(&inbox, 16, NULL, NULL) == 0);
    cr_expect(bulk_inbox_take(&inbox, &piece, 1, NULL) < 0, "of another total");
    bulk_head_encode(&(struct bulk_head){.offset = 8, .total = 16}, message);
    cr_expect(bulk_inbox_take(&inbox, &piece, 1, NULL) < 0, "not the next");
    bulk_inbox_release(&inbox);
}

Test(bulk, bytes_are_heard_where_they_are_awaited_only)
{
    unsigned char message[BULK_HEAD_BYTES + 8] = {0};
    struct bulk_inbox inbox = {0};
    struct ps_message none;
    struct error error = ERROR_INIT;
    const struct rpc_piece piece = {message, sizeof message};
    bulk_head_encode(&(struct bulk_head){.offset = 0, .total = 16}, message);
    cr_expect_eq(bulk_receive(&piece, 1, NULL, &none, &error), BULK_RECEIVED_NOTHING);
    cr_expect_eq(error.kind, ERROR_CORRUPT);
    cr_assert(bulk_inbox_expect(&inbox, 16, NULL, NULL) == 0);
    cr_expect_eq(bulk_receive(&piece, 1, &inbox, &none, NULL), BULK_RECEIVED_BYTES);
    cr_expect_eq(bulk_receive(&piece, 1, &inbox, &none, NULL), BULK_RECEIVED_NOTHING, "twice");
    bulk_head_encode(&(struct bulk_head){.offset = 8, .total = 16}, message);
    cr_expect_eq(bulk_receive(&piece, 1, &inbox, &none, NULL), BULK_RECEIVED_ALL);
    bulk_inbox_release(&inbox);
}
