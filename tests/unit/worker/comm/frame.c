/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/frame.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct frame_header whole = {.kind = FRAME_RESULT,
                                          .checked = true,
                                          .part = 513,
                                          .generation = {1, 70000, 3},
                                          .sequence = 0x123456789abcdef0u,
                                          .length = FRAME_PAYLOAD_MAX,
                                          .payload_crc = 0xdeadbeef};

Test(frame, a_header_comes_back_as_it_was_sent)
{
    unsigned char bytes[FRAME_HEADER_BYTES];
    struct frame_header back;
    frame_header_encode(&whole, bytes);
    cr_assert_eq(frame_header_decode(bytes, &back, NULL), 0);
    cr_assert_eq(back.kind, whole.kind);
    cr_assert_eq(back.checked, whole.checked);
    cr_assert_eq(back.part, whole.part);
    cr_assert_eq(generation_compare(back.generation, whole.generation), 0);
    cr_assert_eq(back.sequence, whole.sequence);
    cr_assert_eq(back.length, whole.length);
    cr_assert_eq(back.payload_crc, whole.payload_crc);
}

Test(frame, every_damage_of_a_header_is_found)
{
    unsigned char bytes[FRAME_HEADER_BYTES];
    struct frame_header back;
    frame_header_encode(&whole, bytes);
    for (unsigned bit = 0; bit < 8 * FRAME_HEADER_BYTES; bit++) {
        struct error error = ERROR_INIT;
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        cr_assert_eq(frame_header_decode(bytes, &back, &error), -1);
        cr_assert_eq(error.kind, ERROR_CORRUPT);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}

Test(frame, a_payload_beyond_the_ceiling_is_refused)
{
    unsigned char bytes[FRAME_HEADER_BYTES];
    struct frame_header large = whole, back;
    large.length = FRAME_PAYLOAD_MAX + 1;
    frame_header_encode(&large, bytes);
    cr_assert_eq(frame_header_decode(bytes, &back, NULL), -1);
}

Test(frame, a_greeting_comes_back_as_it_was_sent)
{
    struct greeting greeting = {.generation = {1, 2, 3},
                                .rank = 5,
                                .size = 6,
                                .to = 4,
                                .job_uid = "b0c1",
                                .shared_path = "/dev/shm/x",
                                .nonce = 0xfedcba9876543210u},
                    back;
    struct opening opening;
    cr_assert_eq(challenge_make(&opening, NULL), 0);
    cr_assert_eq(greeting_encode(&greeting, &opening, NULL), 0);
    cr_assert_eq(greeting_decode(&opening, &back, NULL), 0);
    cr_assert_eq(generation_compare(back.generation, greeting.generation), 0);
    cr_assert(back.rank == 5 && back.size == 6 && back.to == 4 && back.nonce == greeting.nonce);
    cr_assert_str_eq(back.job_uid, greeting.job_uid);
    cr_assert_str_eq(back.shared_path, greeting.shared_path);
    for (size_t i = 0; i < GREETING_BYTES; i++) {
        opening.greeting[i] ^= 0x20;
        cr_assert_eq(greeting_decode(&opening, &back, NULL), -1);
        opening.greeting[i] ^= 0x20;
    }
}

Test(frame, a_greeting_proves_the_key_for_one_challenge_alone)
{
    const struct greeting greeting = {.size = 2, .job_uid = "b0c1"};
    struct greeting back;
    struct opening opening;
    struct error error = ERROR_INIT;
    crew_key_set("the key of this crew", 20);
    cr_assert_eq(challenge_make(&opening, NULL), 0);
    cr_assert_eq(greeting_encode(&greeting, &opening, NULL), 0);
    cr_assert_eq(greeting_decode(&opening, &back, NULL), 0);
    cr_assert_eq(challenge_make(&opening, NULL), 0);
    cr_assert_eq(greeting_decode(&opening, &back, &error), -1);
    cr_assert_eq(error.kind, ERROR_FORBIDDEN);
    crew_key_set(NULL, 0);
}

Test(frame, a_text_without_an_end_is_refused)
{
    struct greeting greeting = {.size = 2}, back;
    struct opening opening = {0};
    memset(greeting.job_uid, 'x', sizeof(greeting.job_uid));
    cr_assert_eq(greeting_encode(&greeting, &opening, NULL), 0);
    cr_assert_eq(greeting_decode(&opening, &back, NULL), -1);
}

Test(frame, answers_come_back_and_nothing_else_is_one)
{
    const struct opening opening = {0};
    unsigned char bytes[GREETING_ANSWER_BYTES];
    enum greeting_answer back;
    for (enum greeting_answer answer = ANSWER_TCP; answer <= ANSWER_REFUSED; answer++) {
        greeting_answer_encode(answer, &opening, bytes);
        cr_assert_eq(greeting_answer_decode(bytes, &opening, &back, NULL), 0);
        cr_assert_eq(back, answer);
    }
    greeting_answer_encode((enum greeting_answer)(ANSWER_REFUSED + 1), &opening, bytes);
    cr_assert_eq(greeting_answer_decode(bytes, &opening, &back, NULL), -1);
    memset(bytes, 0, sizeof(bytes));
    cr_assert_eq(greeting_answer_decode(bytes, &opening, &back, NULL), -1);
}
