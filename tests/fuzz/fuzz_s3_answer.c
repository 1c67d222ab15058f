/* SPDX-License-Identifier: Apache-2.0
 *
 * The answers of an S3 server. The listed objects have valid keys and sizes, also those before a refusal, and are not too many.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/s3_answer.h"
#include "tests/fuzz/expect.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct error error = ERROR_INIT;
    struct s3_list list = {0};
    if (s3_list_parse((const char *)bytes, length, 100, &list, &error) < 0)
        expect(*error.message && (error.kind == ERROR_CORRUPT || error.kind == ERROR_TOO_LARGE));
    expect(list.count <= 100);
    for (size_t i = 0; i < list.count; i++)
        expect(*list.objects[i].key && strlen(list.objects[i].key) <= S3_KEY_MAX && list.objects[i].size >= 0);
    s3_list_release(&list);
    struct s3_failure failure;
    s3_failure_parse((const char *)bytes, length, &failure);
    char *id = NULL;
    if (s3_upload_id_parse((const char *)bytes, length, &id, NULL) == 0)
        expect(*id);
    free(id);
    struct s3_credentials credentials = {0};
    if (s3_credentials_parse((const char *)bytes, length, &credentials, NULL) == 0)
        expect(*credentials.key && *credentials.secret && *credentials.token);
    s3_credentials_release(&credentials);
    return 0;
}
