/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages between members and coordinator, as they are and with corrected CRC-32C, and a coordinator's reaction to them.
 */
#include <string.h>

#include "common/crc32c.h"
#include "worker/comm/little_endian.h"
#include "worker/comm/protocol.h"
#include "worker/coordination/coordinator.h"

static void drop(void *context, coordinator_link link, const struct coordination_message *message, bool close)
{
    (void)context, (void)link, (void)message, (void)close;
}

static void hear(const struct coordination_message *message)
{
    static const struct crew_seat seats[2] = {{"worker", 0, "a", 1}, {"worker", 1, "b", 1}};
    struct coordinator *coordinator = coordinator_new(&(struct coordinator_options){.job_uid = "u",
                                                                                    .generation = {1, 1, 0},
                                                                                    .size = 2,
                                                                                    .least = message->rank % 3,
                                                                                    .seats = seats,
                                                                                    .suspicion_ms = 2,
                                                                                    .death_ms = 5,
                                                                                    .send = drop});
    coordinator_receive(coordinator, 1, message, 1);
    coordinator_receive(coordinator, 2, message, 2);
    coordinator_tick(coordinator, 20, 20);
    coordinator_link_closed(coordinator, 1, "gone", 30);
    coordinator_free(coordinator);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    unsigned char bytes[COORDINATION_MESSAGE_MAX];
    struct coordination_message message;
    if (length < 8 || length + 4 > sizeof(bytes))
        return 0;
    memcpy(bytes + 8, data + 4, length - 4);
    crew_protocol_put(bytes, 0x334d5843u);
    put_u32(bytes + length, crc32c(0, bytes, length));
    if (coordination_message_decode(bytes, length + 4, &message, NULL) == 0)
        hear(&message);
    (void)coordination_message_decode(data, length, &message, NULL);
    return 0;
}
