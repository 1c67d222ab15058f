/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/state_transfer.h"

#include "common/crc32c.h"

int state_transfer_give(struct collective *group, unsigned rank, unsigned channel, const void *bytes, size_t length,
                        struct error *error)
{
    struct transfer transfer = {0};
    uint32_t sum = crc32c(0, bytes, length);
    transfer_send_start(group, rank, channel, bytes, length, &transfer);
    int result = transfer_wait(group, &transfer, error);
    if (result == 0) {
        transfer_send_start(group, rank, channel, &sum, sizeof sum, &transfer);
        result = transfer_wait(group, &transfer, error);
    }
    transfer_release(&transfer);
    return result;
}

int state_transfer_take(struct collective *group, unsigned rank, unsigned channel, void *bytes, size_t length,
                        const char *what, struct error *error)
{
    uint32_t sum;
    if (transfer_receive(group, rank, channel, bytes, length, error) < 0 ||
        transfer_receive(group, rank, channel, &sum, sizeof sum, error) < 0)
        return error_wrap(error, "copying %s from rank %u", what, rank);
    if (sum != crc32c(0, bytes, length))
        return error_set(error, ERROR_CORRUPT, "%s from rank %u fails its check", what, rank);
    return 0;
}
