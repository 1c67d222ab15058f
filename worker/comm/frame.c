/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/frame.h"

#include <stddef.h>
#include <string.h>
#include <sys/random.h>

#include "common/crc32c.h"
#include "worker/comm/little_endian.h"

#define FRAME_MAGIC 0x31465843u     /* "CXF1" */
#define CHALLENGE_MAGIC 0x32435843u /* "CXC2" */
#define GREETING_MAGIC 0x32475843u  /* "CXG2" */
#define ANSWER_MAGIC 0x32415843u    /* "CXA2" */
#define LOAD_MAGIC 0x314c5843u      /* "CXL1" */

/* Where a greeting's parts begin. */
#define GREETING_UID 28
#define GREETING_PATH (GREETING_UID + GREETING_UID_MAX)
#define GREETING_NONCE (GREETING_PATH + GREETING_PATH_MAX)
#define GREETING_RANDOM (GREETING_NONCE + 8)
#define GREETING_PROOF (GREETING_RANDOM + OPENING_NONCE_BYTES)
#define ANSWER_PROOF 8

static void seal(unsigned char *bytes, size_t size)
{
    put_u32(bytes + size - 4, crc32c(0, bytes, size - 4));
}

static bool sealed(const unsigned char *bytes, size_t size, uint32_t magic)
{
    return get_u32(bytes) == magic && get_u32(bytes + size - 4) == crc32c(0, bytes, size - 4);
}

static void put_generation(unsigned char *bytes, struct generation generation)
{
    put_u32(bytes, generation.attempt);
    put_u32(bytes + 4, generation.incarnation);
    put_u32(bytes + 8, generation.counter);
}

static struct generation get_generation(const unsigned char *bytes)
{
    return (struct generation){get_u32(bytes), get_u32(bytes + 4), get_u32(bytes + 8)};
}

void frame_header_encode(const struct frame_header *header, unsigned char bytes[FRAME_HEADER_BYTES])
{
    put_u32(bytes, FRAME_MAGIC);
    bytes[4] = (unsigned char)header->kind;
    bytes[5] = header->checked;
    put_u16(bytes + 6, header->part);
    put_generation(bytes + 8, header->generation);
    put_u64(bytes + 20, header->sequence);
    put_u32(bytes + 28, header->length);
    put_u32(bytes + 32, header->payload_crc);
    seal(bytes, FRAME_HEADER_BYTES);
}

int frame_header_decode(const unsigned char bytes[FRAME_HEADER_BYTES], struct frame_header *ret_header,
                        struct error *error)
{
    if (!sealed(bytes, FRAME_HEADER_BYTES, FRAME_MAGIC))
        return error_set(error, ERROR_CORRUPT, "the header of a received frame has a wrong checksum or magic number");
    if (bytes[4] < FRAME_CONTRIBUTION || bytes[4] > FRAME_MESSAGE || get_u32(bytes + 28) > FRAME_PAYLOAD_MAX)
        return error_set(
            error, ERROR_CORRUPT,
            "the peer sent a frame of kind %u with %u bytes of payload, which does not exist; check that all "
            "workers use the same image",
            bytes[4], get_u32(bytes + 28));
    *ret_header = (struct frame_header){.kind = bytes[4],
                                        .checked = bytes[5] != 0,
                                        .part = get_u16(bytes + 6),
                                        .generation = get_generation(bytes + 8),
                                        .sequence = get_u64(bytes + 20),
                                        .length = get_u32(bytes + 28),
                                        .payload_crc = get_u32(bytes + 32)};
    return 0;
}

static int put_random(unsigned char bytes[OPENING_NONCE_BYTES], struct error *error)
{
    if (getrandom(bytes, OPENING_NONCE_BYTES, 0) == OPENING_NONCE_BYTES)
        return 0;
    return error_set_errno(error, "get random bytes for a data connection");
}

int challenge_make(struct opening *opening, struct error *error)
{
    put_u32(opening->challenge, CHALLENGE_MAGIC);
    if (put_random(opening->challenge + 4, error) < 0)
        return -1;
    seal(opening->challenge, CHALLENGE_BYTES);
    return 0;
}

int challenge_check(const struct opening *opening, struct error *error)
{
    if (!sealed(opening->challenge, CHALLENGE_BYTES, CHALLENGE_MAGIC))
        return error_set(error, ERROR_CORRUPT,
                         "the received bytes are not the challenge that opens a data connection; they are damaged, or "
                         "another program uses the port");
    return 0;
}

/* The challenge and the greeting up to its proof stand side by side. */
#define GREETING_PROVED (offsetof(struct opening, greeting) + GREETING_PROOF)

int greeting_encode(const struct greeting *greeting, struct opening *opening, struct error *error)
{
    unsigned char *bytes = opening->greeting;
    memset(bytes, 0, GREETING_BYTES);
    put_u32(bytes, GREETING_MAGIC);
    put_generation(bytes + 4, greeting->generation);
    put_u32(bytes + 16, greeting->rank);
    put_u32(bytes + 20, greeting->size);
    put_u32(bytes + 24, greeting->to);
    memcpy(bytes + GREETING_UID, greeting->job_uid, GREETING_UID_MAX);
    memcpy(bytes + GREETING_PATH, greeting->shared_path, GREETING_PATH_MAX);
    put_u64(bytes + GREETING_NONCE, greeting->nonce);
    if (put_random(bytes + GREETING_RANDOM, error) < 0)
        return -1;
    crew_key_prove("greeting", opening, GREETING_PROVED, bytes + GREETING_PROOF);
    seal(bytes, GREETING_BYTES);
    return 0;
}

bool greeting_has_begun(const struct opening *opening, size_t received)
{
    unsigned char magic[4];
    put_u32(magic, GREETING_MAGIC);
    return memcmp(opening->greeting, magic, received < sizeof magic ? received : sizeof magic) == 0;
}

int greeting_decode(const struct opening *opening, struct greeting *ret_greeting, struct error *error)
{
    const unsigned char *bytes = opening->greeting;
    if (!sealed(bytes, GREETING_BYTES, GREETING_MAGIC))
        return error_set(error, ERROR_CORRUPT, "its greeting is damaged");
    if (!crew_key_accepts("greeting", opening, GREETING_PROVED, bytes + GREETING_PROOF))
        return error_set(error, ERROR_FORBIDDEN, "its greeting does not prove that it has the crew's key");
    struct greeting greeting = {.generation = get_generation(bytes + 4),
                                .rank = get_u32(bytes + 16),
                                .size = get_u32(bytes + 20),
                                .to = get_u32(bytes + 24),
                                .nonce = get_u64(bytes + GREETING_NONCE)};
    memcpy(greeting.job_uid, bytes + GREETING_UID, GREETING_UID_MAX);
    memcpy(greeting.shared_path, bytes + GREETING_PATH, GREETING_PATH_MAX);
    if (memchr(greeting.job_uid, '\0', GREETING_UID_MAX) == NULL ||
        memchr(greeting.shared_path, '\0', GREETING_PATH_MAX) == NULL)
        return error_set(error, ERROR_CORRUPT, "a text in its greeting has no end");
    *ret_greeting = greeting;
    return 0;
}

/* The bytes that an answer's proof covers. */
struct proved_answer {
    struct opening opening;
    unsigned char answer[ANSWER_PROOF];
};

void greeting_answer_encode(enum greeting_answer answer, const struct opening *opening,
                            unsigned char bytes[GREETING_ANSWER_BYTES])
{
    struct proved_answer proved = {.opening = *opening};
    put_u32(bytes, ANSWER_MAGIC);
    put_u32(bytes + 4, answer);
    memcpy(proved.answer, bytes, ANSWER_PROOF);
    crew_key_prove("answer", &proved, sizeof proved, bytes + ANSWER_PROOF);
    seal(bytes, GREETING_ANSWER_BYTES);
}

int greeting_answer_decode(const unsigned char bytes[GREETING_ANSWER_BYTES], const struct opening *opening,
                           enum greeting_answer *ret_answer, struct error *error)
{
    uint32_t answer = get_u32(bytes + 4);
    struct proved_answer proved = {.opening = *opening};
    memcpy(proved.answer, bytes, ANSWER_PROOF);
    if (!sealed(bytes, GREETING_ANSWER_BYTES, ANSWER_MAGIC) || answer < ANSWER_TCP || answer > ANSWER_REFUSED)
        return error_set(error, ERROR_CORRUPT,
                         "the peer's answer to the greeting of this connection has a wrong checksum, or is none");
    if (!crew_key_accepts("answer", &proved, sizeof proved, bytes + ANSWER_PROOF))
        return error_set(error, ERROR_FORBIDDEN,
                         "the peer's answer to the greeting of this connection does not prove the crew's key");
    *ret_answer = answer;
    return 0;
}

void load_head_encode(const struct load_head *head, unsigned char bytes[LOAD_HEAD_BYTES])
{
    put_u32(bytes, LOAD_MAGIC);
    put_u64(bytes + 4, head->number);
    put_u64(bytes + 12, head->length);
    seal(bytes, LOAD_HEAD_BYTES);
}

int load_head_decode(const unsigned char bytes[LOAD_HEAD_BYTES], struct load_head *ret_head, struct error *error)
{
    if (!sealed(bytes, LOAD_HEAD_BYTES, LOAD_MAGIC))
        return error_set(
            error, ERROR_CORRUPT,
            "the received bytes are not the header of a load; they are damaged, or another program uses the port");
    *ret_head = (struct load_head){.number = get_u64(bytes + 4), .length = get_u64(bytes + 12)};
    return 0;
}
