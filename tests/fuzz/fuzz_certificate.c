/* SPDX-License-Identifier: Apache-2.0
 *
 * Any text is either a certificate with an expiry time, or an error.
 */
#include <stdlib.h>
#include <string.h>

#include "common/certificate.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct error error = ERROR_INIT;
    int64_t until_s;
    char *pem = malloc(length + 1);
    if (!pem)
        return 0;
    if (length > 0)
        memcpy(pem, bytes, length);
    pem[length] = '\0';
    if (certificate_end(pem, &until_s, &error) < 0 && error.message[0] == '\0')
        abort();
    free(pem);
    return 0;
}
