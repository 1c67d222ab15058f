/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/message.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/crc32c.h"
#include "common/scope.h"
#include "worker/comm/little_endian.h"
#include "worker/comm/protocol.h"

static void encode(const struct ps_message *message, struct buffer *bytes)
{
    struct error error = ERROR_INIT;
    buffer_init(bytes, PS_MESSAGE_MAX);
    cr_assert(ps_message_encode(message, bytes, &error) == 0, "%s", error.message);
}

Test(ps_message, rows_come_back_as_they_were)
{
    struct ps_message message = {.type = PS_PULL}, back;
    SCOPED_BUFFER bytes;
    row_set_clear(&message.rows);
    for (uint32_t i = 0; i < ROW_SET_MAX; i++)
        cr_assert(row_set_add(&message.rows, 3 * i + 1));
    cr_expect(!row_set_add(&message.rows, UINT32_MAX), "a list is full some time");
    encode(&message, &bytes);
    cr_assert(ps_message_decode(bytes.data, bytes.length, &back, NULL) == 0);
    cr_expect(back.rows.listed && back.rows.count == ROW_SET_MAX);
    cr_expect(memcmp(back.rows.rows, message.rows.rows, ROW_SET_MAX * sizeof(uint32_t)) == 0);
    ps_message_release(&message);
    ps_message_release(&back);
}

/* The list is the last of a message: 1 byte that says so, the number, the rows, the check. */
static void expect_refused(unsigned rows, size_t from_end, uint32_t value)
{
    struct ps_message message = {.type = PS_PUSH}, back;
    SCOPED_BUFFER bytes;
    row_set_clear(&message.rows);
    for (uint32_t i = 0; i < rows; i++)
        row_set_add(&message.rows, i + 1);
    encode(&message, &bytes);
    unsigned char *end = (unsigned char *)bytes.data + bytes.length;
    put_u32(end - 4 - from_end, value);
    put_u32(end - 4, crc32c(0, bytes.data, bytes.length - 4));
    struct error error = ERROR_INIT;
    cr_expect(ps_message_decode(bytes.data, bytes.length, &back, &error) < 0 && error.kind == ERROR_CORRUPT,
              "%u rows, %u", rows, value);
    ps_message_release(&message);
}

Test(ps_message, hostile_lists_of_rows_are_refused)
{
    expect_refused(2, 4, 1);                /* the same row twice */
    expect_refused(2, 4, 0);                /* not ascending */
    expect_refused(2, 12, 3);               /* more than there are bytes */
    expect_refused(2, 12, 1);               /* fewer */
    expect_refused(2, 12, ROW_SET_MAX + 1); /* more than any list has */
    expect_refused(2, 12, UINT32_MAX);
}

Test(ps_message, one_of_another_protocol_is_told_apart_from_damage)
{
    struct ps_message back;
    struct error error = ERROR_INIT;
    SCOPED_BUFFER bytes;
    encode(&(struct ps_message){.type = PS_WANT}, &bytes);
    put_u32((unsigned char *)bytes.data + 4, CREW_PROTOCOL + 1);
    cr_expect(ps_message_decode(bytes.data, bytes.length, &back, &error) < 0 && error.kind == ERROR_CORRUPT);
    error_clear(&error);
    put_u32((unsigned char *)bytes.data + bytes.length - 4, crc32c(0, bytes.data, bytes.length - 4));
    cr_expect(ps_message_decode(bytes.data, bytes.length, &back, &error) < 0 && error.kind == ERROR_UNSUPPORTED);
    cr_expect_not_null(strstr(error.message, "give all pods of the job the same image"), "%s", error.message);
}
