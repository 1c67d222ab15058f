/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crc32c.h"

#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* Castagnoli, bits reversed */
#define SLICES 8

/* Eight bytes at a time from eight tables (Kounavis and Berry, 2005). */
static uint32_t slices[SLICES][256];
static pthread_once_t slices_once = PTHREAD_ONCE_INIT;

static void fill_slices(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        slices[0][byte] = crc;
    }
    for (int slice = 1; slice < SLICES; slice++)
        for (uint32_t byte = 0; byte < 256; byte++)
            slices[slice][byte] = slices[slice - 1][byte] >> 8 ^ slices[0][slices[slice - 1][byte] & 0xff];
}

static uint32_t crc_by_table(uint32_t crc, const unsigned char *bytes, size_t length)
{
    pthread_once(&slices_once, fill_slices);
    for (; length >= SLICES; bytes += SLICES, length -= SLICES) {
        uint32_t mixed = 0;
        for (int i = 0; i < 4; i++)
            mixed ^= slices[7 - i][(crc >> (8 * i) ^ bytes[i]) & 0xff];
        for (int i = 4; i < SLICES; i++)
            mixed ^= slices[7 - i][bytes[i]];
        crc = mixed;
    }
    while (length-- > 0)
        crc = crc >> 8 ^ slices[0][(crc ^ *bytes++) & 0xff];
    return crc;
}

#if defined(__x86_64__)

#include <nmmintrin.h>

/* The instruction takes three cycles but one can start each cycle: three runs side by side, joined afterwards by
 * advancing each part over the zeros of the length that follows it. */
#define RUN 2048
#define RUNS 3

static uint32_t advance[4][256]; /* the CRC register after RUN zero bytes, by each of its bytes */
static pthread_once_t advance_once = PTHREAD_ONCE_INIT;

static void fill_advance(void)
{
    static const unsigned char zeros[RUN];
    for (int position = 0; position < 4; position++)
        for (uint32_t byte = 0; byte < 256; byte++)
            advance[position][byte] = crc_by_table(byte << (8 * position), zeros, RUN);
}

static uint32_t advance_over_run(uint32_t crc)
{
    return advance[0][crc & 0xff] ^ advance[1][crc >> 8 & 0xff] ^ advance[2][crc >> 16 & 0xff] ^ advance[3][crc >> 24];
}

static inline uint64_t load(const unsigned char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

__attribute__((target("sse4.2"))) static uint32_t crc_of_runs(uint32_t crc, const unsigned char *bytes)
{
    uint64_t first = crc, second = 0, third = 0;
    for (size_t i = 0; i < RUN; i += sizeof(uint64_t)) {
        first = _mm_crc32_u64(first, load(bytes + i));
        second = _mm_crc32_u64(second, load(bytes + RUN + i));
        third = _mm_crc32_u64(third, load(bytes + 2 * RUN + i));
    }
    return advance_over_run(advance_over_run((uint32_t)first) ^ (uint32_t)second) ^ (uint32_t)third;
}

__attribute__((target("sse4.2"))) static uint32_t crc_by_instruction(uint32_t crc, const unsigned char *bytes,
                                                                     size_t length)
{
    pthread_once(&advance_once, fill_advance);
    for (; length >= RUNS * RUN; bytes += RUNS * RUN, length -= RUNS * RUN)
        crc = crc_of_runs(crc, bytes);
    uint64_t wide = crc;
    for (; length >= sizeof wide; bytes += sizeof wide, length -= sizeof wide)
        wide = _mm_crc32_u64(wide, load(bytes));
    crc = (uint32_t)wide;
    while (length-- > 0)
        crc = _mm_crc32_u8(crc, *bytes++);
    return crc;
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t length)
{
    return ~(__builtin_cpu_supports("sse4.2") ? crc_by_instruction : crc_by_table)(~crc, bytes, length);
}

#else

uint32_t crc32c(uint32_t crc, const void *bytes, size_t length)
{
    return ~crc_by_table(~crc, bytes, length);
}

#endif

/* ---------------------------------------------------------------- joining */

/* Multiplies two polynomials modulo the checksum's polynomial. The highest bit is the coefficient of x^0. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (; a; a <<= 1) {
        product ^= a & 0x80000000u ? b : 0;
        b = b >> 1 ^ (b & 1 ? POLYNOMIAL : 0);
    }
    return product;
}

/* Each byte that follows a piece multiplies the piece's checksum by x^8. */
uint32_t crc32c_join(uint32_t first, uint32_t second, uint64_t second_length)
{
    uint32_t power = 0x80000000u >> 8; /* x^8, squared for each bit of the length */
    for (; second_length > 0; second_length >>= 1) {
        if (second_length & 1)
            first = multiply(first, power);
        power = multiply(power, power);
    }
    return first ^ second;
}
