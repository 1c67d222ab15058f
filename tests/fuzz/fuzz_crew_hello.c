/* SPDX-License-Identifier: Apache-2.0
 *
 * Hello messages and their answers on control connections, in a process without a key, so that the proof rejects nothing.
 */
#include <string.h>

#include "worker/comm/crew_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    static const unsigned char binding[TLS_BINDING_BYTES];
    unsigned char bytes[CREW_HELLO_BYTES] = {'C', 'X', 'I', '1'}, again[CREW_HELLO_BYTES];
    unsigned char answer[CREW_HELLO_ANSWER_BYTES] = {0};
    struct crew_hello hello;
    size_t most = sizeof bytes - 4;
    memcpy(bytes + 4, data, length < most ? length : most);
    memcpy(answer, data, length < sizeof answer ? length : sizeof answer);
    if (crew_hello_decode(bytes, binding, &hello, NULL) == 0)
        crew_hello_encode(&hello, binding, again);
    (void)crew_hello_answer_check(answer, bytes, binding, NULL);
    return 0;
}
