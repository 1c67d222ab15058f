/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/peer_message.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/memory.h"
#include "tests/unit/worker/comm/foreign.h"

static const float floats[] = {1.5f, -2.0f, 3.25f};

static const struct peer_message messages[] = {
    {.type = PEER_HELLO, .job_uid = "b0c1", .attempt = 2, .incarnation = 5, .seat = 3},
    {.type = PEER_COUNTS, .seats = 3, .counts = {7, 0, 1000000000000}},
    {.type = PEER_UPDATE,
     .last = true,
     .offset = 12,
     .count = 3,
     .floats = floats,
     .seats = 2,
     .counts = {5, 1ll << 40},
     .from = 1ll << 39},
    {.type = PEER_TAKEN},
    {.type = PEER_AVERAGE, .serial = 9, .offset = 1ull << 40, .count = 1, .floats = floats},
    {.type = PEER_STATE, .serial = 9, .vector = 2, .count = 0},
    {.type = PEER_DONE},
};

static size_t encode(const struct peer_message *message, unsigned char *bytes, size_t room)
{
    size_t length = peer_message_encode(message, bytes, room);
    cr_assert_gt(length, 0);
    return length;
}

Test(peer_message, comes_back_as_it_was_sent)
{
    unsigned char bytes[2048];
    for (size_t i = 0; i < sizeof(messages) / sizeof(*messages); i++) {
        struct peer_message back;
        size_t length = encode(&messages[i], bytes, sizeof(bytes));
        cr_assert_eq(peer_message_decode(bytes, length, &back, NULL), 0, "message %zu", i);
        cr_expect_eq(back.type, messages[i].type);
        cr_expect_eq(back.serial, messages[i].serial);
        cr_expect_str_eq(back.job_uid, messages[i].job_uid);
        cr_expect_eq(back.seat, messages[i].seat);
        cr_expect_eq(back.incarnation, messages[i].incarnation);
        cr_expect_eq(back.vector, messages[i].vector);
        cr_expect_eq(back.last, messages[i].last);
        cr_expect_eq(back.offset, messages[i].offset);
        cr_expect_eq(back.count, messages[i].count);
        cr_expect_eq(back.from, messages[i].from);
        cr_expect_eq(memcmp(back.counts, messages[i].counts, sizeof(back.counts)), 0);
        if (back.count > 0)
            cr_expect_arr_eq(back.floats, floats, back.count * sizeof(float));
    }
}

Test(peer_message, every_damage_is_found)
{
    unsigned char bytes[2048];
    struct peer_message back;
    size_t length = encode(&messages[2], bytes, sizeof(bytes));
    for (size_t i = 0; i < length; i++) {
        bytes[i] ^= 0x10;
        cr_assert_eq(peer_message_decode(bytes, length, &back, NULL), -1);
        bytes[i] ^= 0x10;
        cr_assert_eq(peer_message_decode(bytes, i, &back, NULL), -1);
    }
}

Test(peer_message, does_not_write_beyond_its_room)
{
    unsigned char bytes[2048];
    size_t length = encode(&messages[2], bytes, sizeof(bytes));
    for (size_t room = 0; room < length; room++)
        cr_assert_eq(peer_message_encode(&messages[2], bytes, room), 0);
    cr_assert_eq(peer_message_encode(&messages[2], bytes, length), length);
}

Test(peer_message, the_largest_part_fits_a_message)
{
    float *part = memory_allocate(PEER_PART_MAX, sizeof(*part));
    unsigned char *bytes = memory_allocate(1, RPC_MESSAGE_MAX);
    struct peer_message message = {.type = PEER_UPDATE, .count = PEER_PART_MAX, .floats = part}, back;
    size_t length = encode(&message, bytes, RPC_MESSAGE_MAX);
    cr_assert_eq(peer_message_decode(bytes, length, &back, NULL), 0);
    cr_assert_eq(back.count, PEER_PART_MAX);
    free(part);
    free(bytes);
}

Test(peer_message, one_of_another_protocol_is_told_apart_from_damage)
{
    unsigned char bytes[2048];
    struct peer_message back;
    struct error error = ERROR_INIT;
    size_t length = encode(&messages[0], bytes, sizeof(bytes));
    foreign_message(bytes, length);
    cr_expect(peer_message_decode(bytes, length, &back, &error) < 0 && error.kind == ERROR_UNSUPPORTED);
    cr_expect_not_null(strstr(error.message, "give all pods of the job the same image"), "%s", error.message);
}
