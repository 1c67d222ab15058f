/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/npy.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/scope.h"

/* Version 1, with this dictionary and `data` bytes behind it; returns the length. */
static size_t make(uint8_t *bytes, const char *dictionary, size_t data)
{
    size_t header = strlen(dictionary) + 1;
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    bytes[8] = (uint8_t)header;
    bytes[9] = (uint8_t)(header >> 8);
    memcpy(bytes + 10, dictionary, header - 1);
    bytes[9 + header] = '\n';
    for (size_t i = 0; i < data; i++)
        bytes[10 + header + i] = (uint8_t)(200 + i);
    return 10 + header + data;
}

Test(npy, reads_shape_type_and_elements)
{
    uint8_t bytes[512];
    struct npy npy;
    size_t length = make(bytes, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }   ", 6);
    cr_assert_eq(npy_parse(bytes, length, &npy, NULL), 0);
    cr_assert(npy.kind == 'u' && npy.item_bytes == 1 && npy.rank == 2 && npy.shape[1] == 3 && npy.elements == 6);
    cr_assert_eq(npy_integer_at(&npy, 5), 205);
    length = make(bytes, "{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }", 6);
    cr_assert_eq(npy_parse(bytes, length, &npy, NULL), 0);
    cr_assert_eq(npy_integer_at(&npy, 1), (int16_t)0xcbca);
    length = make(bytes, "{'shape': (), 'fortran_order': False, 'descr': '<f8'}", 8);
    cr_assert_eq(npy_parse(bytes, length, &npy, NULL), 0);
    cr_assert(npy.rank == 0 && npy.elements == 1);
    length = make(bytes, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775807), }", 0);
    cr_assert_eq(npy_parse(bytes, length, &npy, NULL), 0);
    cr_assert_eq(npy.elements, 0);
}

static void refused(const char *dictionary, size_t data, enum error_kind kind, const char *words)
{
    uint8_t bytes[512];
    struct error error = ERROR_INIT;
    struct npy npy;
    size_t length = make(bytes, dictionary, data);
    cr_expect_eq(npy_parse(bytes, length, &npy, &error), -1, "%s", dictionary);
    cr_expect_eq(error.kind, kind, "%s", error.message);
    cr_expect(strstr(error.message, words), "%s", error.message);
}

Test(npy, names_what_is_wrong)
{
    uint8_t bytes[512];
    struct npy npy;
    struct error error = ERROR_INIT;
    refused("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", 8, ERROR_INVALID, "it is in Fortran order");
    refused("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", 8, ERROR_INVALID,
            "its numbers are big-endian");
    refused("{'descr': '<U6', 'fortran_order': False, 'shape': (2,), }", 48, ERROR_INVALID,
            "it holds texts; save numbers");
    refused("{'descr': '|S3', 'fortran_order': False, 'shape': (2,), }", 6, ERROR_INVALID, "return_inverse=True)[1]");
    refused("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", 8, ERROR_INVALID, "it holds Python objects");
    refused("{'descr': '<f3', 'fortran_order': False, 'shape': (2,), }", 6, ERROR_INVALID, "header");
    refused("{'descr': '<f4', 'shape': (2,), }", 8, ERROR_INVALID, "header");
    refused("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8, ERROR_INVALID, "header");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 7, ERROR_CORRUPT, "asks for 8 bytes");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9), }", 8, ERROR_INVALID,
            "too large");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 8, ERROR_INVALID, "header");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 4, ERROR_INVALID, "header");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2,", 8, ERROR_INVALID, "header");
    refused("{'descr': '<f4'", 0, ERROR_INVALID, "header");
    refused("{", 0, ERROR_INVALID, "header");
    size_t length = make(bytes, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8);
    for (size_t cut = 0; cut < length; cut++)
        cr_assert_eq(npy_parse(bytes, cut, &npy, &error), -1);
    bytes[9] = 0xff;
    cr_assert_eq(npy_parse(bytes, length, &npy, &error), -1);
}

Test(npy, a_header_is_padded_and_reads_back)
{
    for (unsigned rank = 0; rank <= 3; rank++) {
        const struct npy written = {.kind = 'i', .item_bytes = 4, .rank = rank, .shape = {3, 1, 2}};
        const int32_t elements[6] = {7, 8, 9, 10, 11, -12};
        size_t count = rank == 0 ? 1 : rank == 3 ? 6 : 3;
        struct npy npy;
        struct error error = ERROR_INIT;
        SCOPED_BUFFER file = BUFFER_INIT(1024);
        cr_assert_eq(npy_append_header(&file, &written, &error), 0, "%s", error.message);
        cr_expect_eq(file.length % 64, 0);
        cr_assert_eq(buffer_append(&file, elements, count * sizeof *elements, &error), 0);
        cr_assert_eq(npy_parse((const uint8_t *)file.data, file.length, &npy, &error), 0, "%s", error.message);
        cr_expect_eq(npy.rank, rank);
        cr_expect_eq(npy.kind, 'i');
        cr_expect_eq(npy_integer_at(&npy, (int64_t)count - 1), elements[count - 1]);
    }
}
