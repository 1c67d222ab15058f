/* SPDX-License-Identifier: Apache-2.0 */
#include "common/error.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "common/utf8.h"

Test(error, says_what_was_set)
{
    struct error error = ERROR_INIT;
    cr_expect(error.kind == ERROR_NONE);
    cr_expect(error_set(&error, ERROR_STALE, "incarnation %d is superseded", 4) == -1);
    cr_expect(error.kind == ERROR_STALE);
    cr_expect_str_eq(error.message, "incarnation 4 is superseded");
    cr_expect_str_eq(error_kind_name(error.kind), "STALE");
}

Test(error, context_goes_in_front)
{
    struct error error = ERROR_INIT;
    error_set(&error, ERROR_CORRUPT, "digest differs");
    cr_expect(error_wrap(&error, "shard %d", 3) == -1);
    error_wrap(&error, "restore");
    cr_expect_str_eq(error.message, "restore: shard 3: digest differs");
    cr_expect(error.kind == ERROR_CORRUPT);
}

Test(error, knows_errno)
{
    static const struct {
        int number;
        enum error_kind kind;
    } cases[] = {{ENOENT, ERROR_NOT_FOUND},
                 {ENOSPC, ERROR_NO_SPACE},
                 {EDQUOT, ERROR_NO_SPACE},
                 {EEXIST, ERROR_ALREADY_EXISTS},
                 {EIO, ERROR_SYSTEM}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error error = ERROR_INIT;
        errno = cases[i].number;
        cr_expect(error_set_errno(&error, "cannot open %s", "x") == -1);
        cr_expect(error.kind == cases[i].kind);
        cr_expect(error.os_error == cases[i].number);
        cr_expect(strstr(error.message, "cannot open x: ") == error.message);
        cr_expect(strstr(error.message, strerror(cases[i].number)) != NULL);
    }
}

Test(error, a_new_error_forgets_the_old_one)
{
    struct error error = ERROR_INIT;
    errno = EIO;
    error_set_errno(&error, "read");
    error.http_status = 500;
    error_set(&error, ERROR_INVALID, "other");
    cr_expect(error.os_error == 0 && error.http_status == 0);
}

Test(error, long_messages_are_cut_visibly)
{
    char text[2 * ERROR_MESSAGE_MAX];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct error error = ERROR_INIT;
    error_set(&error, ERROR_INVALID, "%s", text);
    cr_expect(strlen(error.message) == ERROR_MESSAGE_MAX - 1);
    cr_expect_str_eq(error.message + ERROR_MESSAGE_MAX - sizeof "…", "…");
    error_wrap(&error, "context");
    cr_expect(strstr(error.message, "context: xxx") == error.message);
    cr_expect_str_eq(error.message + ERROR_MESSAGE_MAX - sizeof "…", "…");
    errno = EIO;
    error_set_errno(&error, "%.*s", ERROR_MESSAGE_MAX - 4, text);
    cr_expect_str_eq(error.message + ERROR_MESSAGE_MAX - sizeof "…", "…");
}

Test(error, long_messages_are_cut_between_characters)
{
    for (size_t before = 0; before < 3; before++) {
        char text[2 * ERROR_MESSAGE_MAX] = {0};
        memset(text, 'x', before);
        for (size_t at = before; at < ERROR_MESSAGE_MAX; at += 3)
            memcpy(text + at, "\xe5\xad\x97", 3);
        struct error error = ERROR_INIT;
        error_set(&error, ERROR_INVALID, "%s", text);
        for (size_t at = 0, size; at < strlen(error.message); at += size) {
            size = utf8_sequence(error.message + at, strlen(error.message + at));
            cr_assert_gt(size, 0, "%zu before: at %zu of %zu", before, at, strlen(error.message));
        }
        cr_expect_str_eq(error.message + strlen(error.message) - strlen("…"), "…");
    }
}

Test(error, nobody_has_to_listen)
{
    cr_expect(error_set(NULL, ERROR_INVALID, "x") == -1);
    cr_expect(error_set_errno(NULL, "x") == -1);
    cr_expect(error_wrap(NULL, "x") == -1);
}
