/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/message.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct coordination_message world_of(unsigned size)
{
    struct coordination_message message = {.type = COORDINATION_WORLD,
                                           .generation = {1, 2, 3},
                                           .nonce = 0x123456789abcdef0u,
                                           .size = size,
                                           .seats = size,
                                           .step = -5,
                                           .source = 1,
                                           .text = "why",
                                           .arithmetic = "avx512",
                                           .job_uid = "b0c1"};
    for (unsigned i = 0; i < size; i++) {
        snprintf(message.peers[i].address, sizeof(message.peers[i].address), "2001:db8:0000:0000:0000:0000:0000:%04x",
                 i);
        message.peers[i].port = (uint16_t)(2000 + i);
        message.receives[i] = i % 2;
        message.incarnations[i] = 7 + i;
        message.members[i] = CREW_SIZE_MAX - i;
    }
    return message;
}

Test(message, comes_back_as_it_was_sent)
{
    struct coordination_message message = world_of(CREW_SIZE_MAX), back;
    SCOPED_BUFFER bytes = BUFFER_INIT(COORDINATION_MESSAGE_MAX);
    cr_assert_eq(coordination_message_encode(&message, &bytes, NULL), 0);
    cr_assert_eq(coordination_message_decode(bytes.data, bytes.length, &back, NULL), 0);
    cr_assert_eq(memcmp(&message, &back, sizeof(message)), 0);
}

Test(message, every_damage_is_found)
{
    struct coordination_message message = world_of(3), back;
    SCOPED_BUFFER bytes = BUFFER_INIT(COORDINATION_MESSAGE_MAX);
    cr_assert_eq(coordination_message_encode(&message, &bytes, NULL), 0);
    for (size_t i = 0; i < bytes.length; i++) {
        bytes.data[i] ^= 0x10;
        cr_assert_eq(coordination_message_decode(bytes.data, bytes.length, &back, NULL), -1);
        bytes.data[i] ^= 0x10;
        cr_assert_eq(coordination_message_decode(bytes.data, i, &back, NULL), -1);
    }
}
