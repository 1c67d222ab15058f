/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/idx.h"

#include <criterion/criterion.h>
#include <string.h>

Test(idx, reads_shape_and_elements)
{
    const uint8_t bytes[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
    struct idx idx;
    cr_assert_eq(idx_parse(bytes, sizeof bytes, &idx, NULL), 0);
    cr_assert_eq(idx.rank, 2);
    cr_assert_eq(idx.dims[0], 2);
    cr_assert_eq(idx.dims[1], 3);
    cr_assert_eq(idx.element_count, 6);
    cr_assert_eq(idx.elements[5], 6);
}

static void refused(const uint8_t *bytes, size_t length, enum error_kind kind, const char *words)
{
    struct error error = ERROR_INIT;
    struct idx idx;
    cr_expect_eq(idx_parse(bytes, length, &idx, &error), -1);
    cr_expect_eq(error.kind, kind, "%s", error.message);
    cr_expect(strstr(error.message, words), "%s", error.message);
}

Test(idx, names_what_is_wrong)
{
    const uint8_t magic[] = {1, 0, 8, 1, 0, 0, 0, 1, 1}, floats[] = {0, 0, 13, 1, 0, 0, 0, 0};
    const uint8_t rank[] = {0, 0, 8, 9, 0, 0, 0, 0}, cut[] = {0, 0, 8, 1, 0, 0, 0, 2, 7};
    const uint8_t trailing[] = {0, 0, 8, 1, 0, 0, 0, 1, 7, 7}, header[] = {0, 0, 8, 3, 0, 0, 0, 1};
    uint8_t overflow[4 + 16] = {0, 0, 8, 4};
    memset(overflow + 4, 0xff, 16);
    refused(magic, sizeof magic, ERROR_INVALID, "two zero bytes");
    refused(floats, sizeof floats, ERROR_INVALID, "0x0d");
    refused(rank, sizeof rank, ERROR_INVALID, "9 dimensions");
    refused(cut, sizeof cut, ERROR_CORRUPT, "cut off");
    refused(trailing, sizeof trailing, ERROR_CORRUPT, "too many");
    refused(header, sizeof header, ERROR_CORRUPT, "header is cut off");
    refused(overflow, sizeof overflow, ERROR_INVALID, "too large");
    refused(magic, 0, ERROR_INVALID, "not an IDX file");
}
