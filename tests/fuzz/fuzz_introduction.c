/* SPDX-License-Identifier: Apache-2.0
 *
 * Introductions and answers on control connections, in a process without a key, so that the proof rejects nothing.
 */
#include <string.h>

#include "worker/comm/introduction.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    static const unsigned char binding[TLS_BINDING_BYTES];
    unsigned char bytes[INTRODUCTION_BYTES] = {'C', 'X', 'I', '1'}, again[INTRODUCTION_BYTES];
    unsigned char answer[INTRODUCTION_ANSWER_BYTES] = {0};
    struct introduction introduction;
    size_t most = sizeof bytes - 4;
    memcpy(bytes + 4, data, length < most ? length : most);
    memcpy(answer, data, length < sizeof answer ? length : sizeof answer);
    if (introduction_decode(bytes, binding, &introduction, NULL) == 0)
        introduction_encode(&introduction, binding, again);
    (void)introduction_answer_check(answer, bytes, binding, NULL);
    return 0;
}
