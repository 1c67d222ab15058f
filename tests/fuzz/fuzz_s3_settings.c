/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of object storage that the trainer finds in its environment. Whatever they are, there is either a client or a message that
 * names the variable.
 */
#include <stdint.h>
#include <string.h>

#include "common/memory.h"
#include "tests/fuzz/expect.h"
#include "worker/checkpoint/s3_settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct error error = ERROR_INIT;
    struct s3_client *client = NULL;
    SCOPED_FREE char *text = memory_copy_bytes((const char *)bytes, length), *prefix = NULL;
    if (s3_settings_open("VARIABLE", text, 0, &client, &prefix, &error) < 0) {
        expect(strstr(error.message, "VARIABLE") && !client && !prefix);
        return 0;
    }
    expect(client && prefix && strlen(prefix) <= S3_KEY_MAX);
    s3_client_free(client);
    return 0;
}
