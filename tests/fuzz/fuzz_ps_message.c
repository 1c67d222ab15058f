/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of parameter servers, as they are and with corrected CRC-32C, and the rows that their lists select from a table. The same
 * bytes also as a bulk message in three parts, and as a manifest's set of tickets.
 */
#include <stdlib.h>
#include <string.h>

#include "common/crc32c.h"
#include "worker/comm/little_endian.h"
#include "worker/comm/protocol.h"
#include "worker/parameter_server/bulk.h"
#include "worker/parameter_server/placement_rows.h"

#define BYTES_MAX 4096

#define ROWS 2048
#define WIDTH 32
#define ELEMENTS (ROWS * WIDTH)

/* As a server does it: of two that have a table. */
static void pick_rows(const struct row_set *rows)
{
    static const struct parameter_tensor table = {
        .name = "table", .shape = {ROWS, WIDTH}, .rank = 2, .elements = ELEMENTS, .by_rows = true};
    static const struct parameter_layout layout = {.tensors = &table, .tensor_count = 1, .elements = ELEMENTS};
    static float packed[ELEMENTS], carried[ELEMENTS];
    struct placement placement;
    placement_init(&placement, &layout, 2);
    if (placement_knows_rows(&placement, 1, rows)) {
        if (placement_elements_of(&placement, 1, rows) > placement.elements[1])
            abort();
        placement_carry(&placement, 1, rows, packed, ORDER_PACKED, carried, ORDER_CARRIED);
    }
    placement_release(&placement);
}

static void decode(const void *bytes, size_t length)
{
    struct ps_message message;
    SCOPED_BUFFER again = BUFFER_INIT(PS_MESSAGE_MAX);
    if (ps_message_decode(bytes, length, &message, NULL) < 0)
        return;
    if (ps_message_encode(&message, &again, NULL) < 0)
        abort();
    pick_rows(&message.rows);
    ps_message_release(&message);
}

static void take(const uint8_t *bytes, size_t length)
{
    struct bulk_inbox inbox = {0};
    struct ps_message message;
    bool bulk;
    size_t first = length > 0 ? bytes[0] % (length + 1) : 0, second = (length - first) / 2;
    const struct rpc_piece pieces[] = {
        {bytes, first}, {bytes + first, second}, {bytes + first + second, length - first - second}};
    if (bulk_or_message(pieces, 3, &bulk, &message, NULL) == 0 && !bulk)
        ps_message_release(&message);
    if (bulk_inbox_expect(&inbox, 64, NULL, NULL) == 0)
        (void)bulk_inbox_take(&inbox, pieces, 3, NULL);
    bulk_inbox_release(&inbox);
}

static void read_tickets(const uint8_t *bytes, size_t length)
{
    struct json *json;
    struct ticket_set set = {0};
    if (json_parse((const char *)bytes, length, BYTES_MAX, &json, NULL) < 0)
        return;
    (void)ticket_set_from_json(json, &set, NULL);
    ticket_set_release(&set);
    json_free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    unsigned char bytes[BYTES_MAX];
    if (length < 8 || length + 4 > sizeof bytes)
        return 0;
    decode(data, length);
    memcpy(bytes + 8, data + 4, length - 4);
    crew_protocol_put(bytes, 0x31535043u); /* a message's magic number */
    put_u32(bytes + length, crc32c(0, bytes, length));
    decode(bytes, length + 4);
    memcpy(bytes, data, length);
    put_u32(bytes, 0x31425043u); /* a bulk message's */
    take(bytes, length);
    read_tickets(data, length);
    return 0;
}
