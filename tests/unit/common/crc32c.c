/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crc32c.h"

#include <criterion/criterion.h>
#include <string.h>

/* RFC 3720, appendix B.4. */
Test(crc32c, known_values)
{
    unsigned char bytes[32];
    cr_expect(crc32c(0, "123456789", 9) == 0xe3069283);
    cr_expect(crc32c(0, "", 0) == 0);
    memset(bytes, 0, sizeof bytes);
    cr_expect(crc32c(0, bytes, sizeof bytes) == 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    cr_expect(crc32c(0, bytes, sizeof bytes) == 0x62a8ab43);
    for (unsigned char i = 0; i < 32; i++)
        bytes[i] = i;
    cr_expect(crc32c(0, bytes, sizeof bytes) == 0x46dd794e);
}

static uint32_t bit_by_bit(const unsigned char *bytes, size_t length)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

/* Every length around the sizes that the fast paths treat differently, at odd addresses. */
Test(crc32c, agrees_with_the_definition)
{
    static unsigned char bytes[4 * 6144 + 64];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    static const size_t around[] = {0, 8, 16, 2048, 6144, 2 * 6144, 4 * 6144};
    for (size_t i = 0; i < sizeof around / sizeof *around; i++)
        for (size_t extra = 0; extra < 17; extra++)
            for (size_t start = 0; start < 3; start++)
                cr_expect(crc32c(0, bytes + start, around[i] + extra) == bit_by_bit(bytes + start, around[i] + extra),
                          "%zu bytes from %zu", around[i] + extra, start);
}

Test(crc32c, continues)
{
    static const char text[] = "the quick brown fox jumps over the lazy dog";
    size_t length = sizeof text - 1;
    for (size_t cut = 0; cut <= length; cut++)
        cr_expect(crc32c(crc32c(0, text, cut), text + cut, length - cut) == crc32c(0, text, length));
}

Test(crc32c, pieces_are_joined)
{
    static unsigned char bytes[70000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    static const size_t cuts[] = {0, 1, 7, 4096, 65537, 69999, 70000};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        size_t rest = sizeof bytes - cuts[i];
        cr_assert_eq(crc32c_join(crc32c(0, bytes, cuts[i]), crc32c(0, bytes + cuts[i], rest), rest),
                     crc32c(0, bytes, sizeof bytes), "cut at %zu", cuts[i]);
    }
}
