/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/protocol.h"

#include "common/version.h"
#include "worker/comm/little_endian.h"

void crew_protocol_put(unsigned char *bytes, uint32_t magic)
{
    put_u32(bytes, magic);
    put_u32(bytes + 4, CREW_PROTOCOL);
}

int crew_protocol_check(const unsigned char *bytes, uint32_t magic, struct error *error)
{
    if (get_u32(bytes) != magic)
        return error_set(error, ERROR_CORRUPT,
                         "the received bytes are not the message that was expected; they are damaged, or another "
                         "program uses the port");
    if (get_u32(bytes + 4) == CREW_PROTOCOL)
        return 0;
    return error_set(error, ERROR_UNSUPPORTED,
                     "the other side speaks version %u of the crew's protocol and coxswain " COXSWAIN_VERSION
                     " version %u: give all pods of the job the same image",
                     get_u32(bytes + 4), CREW_PROTOCOL);
}
