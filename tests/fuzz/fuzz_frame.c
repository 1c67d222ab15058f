/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames, challenges, greetings, answers and headers of loads of the data plane. The fuzzer cannot guess a CRC-32C, so the test corrects
 * it first, in order to test the code behind the check.
 */
#include <string.h>

#include "common/crc32c.h"
#include "worker/comm/frame.h"
#include "worker/comm/little_endian.h"

static void load(unsigned char *bytes, size_t size, const uint8_t *data, size_t length, bool mend)
{
    memset(bytes, 0, size);
    memcpy(bytes, data, length < size ? length : size);
    if (mend)
        put_u32(bytes + size - 4, crc32c(0, bytes, size - 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    unsigned char bytes[GREETING_BYTES], again[GREETING_BYTES];
    struct opening opening = {0};
    struct frame_header header;
    struct greeting greeting;
    enum greeting_answer answer;
    struct load_head head;
    for (int mend = 0; mend < 2; mend++) {
        load(bytes, FRAME_HEADER_BYTES, data, length, mend);
        if (frame_header_decode(bytes, &header, NULL) == 0)
            frame_header_encode(&header, again);
        load(opening.challenge, CHALLENGE_BYTES, data, length, mend);
        (void)challenge_check(&opening, NULL);
        load(opening.greeting, GREETING_BYTES, data, length, mend);
        if (greeting_decode(&opening, &greeting, NULL) == 0)
            (void)greeting_encode(&greeting, &opening, NULL);
        load(bytes, GREETING_ANSWER_BYTES, data, length, mend);
        if (greeting_answer_decode(bytes, &opening, &answer, NULL) == 0)
            greeting_answer_encode(answer, &opening, again);
        load(bytes, LOAD_HEAD_BYTES, data, length, mend);
        if (load_head_decode(bytes, &head, NULL) == 0)
            load_head_encode(&head, again);
    }
    return 0;
}
