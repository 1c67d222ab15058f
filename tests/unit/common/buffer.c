/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buffer.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

Test(buffer, is_empty_text_until_something_is_added)
{
    SCOPED_BUFFER buffer = BUFFER_INIT(10);
    cr_expect_str_eq(buffer_text(&buffer), "");
    cr_expect(buffer.data == NULL);
    SCOPED_FREE char *taken = buffer_take(&buffer);
    cr_expect_str_eq(taken, "");
}

Test(buffer, appends_up_to_its_ceiling_and_not_a_byte_more)
{
    SCOPED_BUFFER buffer = BUFFER_INIT(10);
    struct error error = ERROR_INIT;
    cr_expect(buffer_append_string(&buffer, "12345678", &error) == 0);
    cr_expect(buffer_append_string(&buffer, "9ab", &error) < 0);
    cr_expect(error.kind == ERROR_TOO_LARGE);
    cr_expect_str_eq(buffer_text(&buffer), "12345678");
    cr_expect(buffer_append_string(&buffer, "9a", &error) == 0);
    cr_expect(buffer_append_byte(&buffer, 'b', &error) < 0);
    cr_expect(buffer_format(&buffer, "%d", 1) < 0);
    cr_expect(buffer_append(&buffer, "", 0, &error) == 0);
    cr_expect(buffer.length == 10);
}

Test(buffer, grows_and_stays_terminated)
{
    SCOPED_BUFFER buffer = BUFFER_INIT(100000);
    for (int i = 0; i < 5000; i++)
        cr_assert(buffer_format(&buffer, "%d,", i % 10) == 0);
    cr_expect(buffer.length == 10000);
    cr_expect(strlen(buffer.data) == 10000);
    buffer_clear(&buffer);
    cr_expect_str_eq(buffer_text(&buffer), "");
    cr_expect(buffer.capacity > 10000);
}

Test(buffer, consumes_from_the_front)
{
    SCOPED_BUFFER buffer = BUFFER_INIT(100);
    buffer_append_string(&buffer, "one two", NULL);
    buffer_consume(&buffer, 4);
    cr_expect_str_eq(buffer_text(&buffer), "two");
    buffer_consume(&buffer, 100);
    cr_expect_str_eq(buffer_text(&buffer), "");
    cr_expect(buffer.length == 0);
}

Test(buffer, hands_its_memory_over)
{
    struct buffer buffer = BUFFER_INIT(100);
    buffer_append(&buffer, "a\0b", 3, NULL);
    SCOPED_FREE char *taken = buffer_take(&buffer);
    cr_expect(memcmp(taken, "a\0b", 4) == 0);
    cr_expect(buffer.data == NULL && buffer.length == 0 && buffer.ceiling == 100);
}

Test(buffer, reads_files)
{
    char path[] = "/tmp/coxswain-buffer-XXXXXX";
    SCOPED_CLOSE int file = mkstemp(path);
    cr_assert(file >= 0 && write(file, "0123456789", 10) == 10);
    struct error error = ERROR_INIT;
    SCOPED_BUFFER whole = BUFFER_INIT(10), small = BUFFER_INIT(9);
    cr_expect(buffer_read_file(&whole, path, &error) == 0);
    cr_expect_str_eq(buffer_text(&whole), "0123456789");
    cr_expect(buffer_read_file(&small, path, &error) < 0);
    cr_expect(error.kind == ERROR_TOO_LARGE && strstr(error.message, path) != NULL);
    unlink(path);
    cr_expect(buffer_read_file(&small, path, &error) < 0);
    cr_expect(error.kind == ERROR_NOT_FOUND);
    cr_expect(buffer_read_file(&small, "/", &error) < 0);
    cr_expect(error.kind == ERROR_SYSTEM);
}
