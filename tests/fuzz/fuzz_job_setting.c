/* SPDX-License-Identifier: Apache-2.0
 *
 * A job with an accepted setting can be printed and read again; a refused setting has an error.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "operator/cli/job_setting.h"

#define PRINTED_MAX (16 * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static const char job_text[] = "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"coxswain\":{\"training\":{\"epochs\":3}},"
                               "\"storage\":[{\"name\":\"runs\",\"persistentVolumeClaim\":{\"claimName\":\"runs\"}}]}}";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    SCOPED_FREE char *text = memory_copy_bytes((const char *)bytes, length);
    SCOPED_JSON *job = NULL, *again = NULL;
    SCOPED_BUFFER printed = BUFFER_INIT(PRINTED_MAX);
    struct error error = ERROR_INIT;
    if (json_parse(job_text, strlen(job_text), sizeof job_text, &job, NULL) < 0)
        abort();
    if (job_setting_apply(job, text, &error) < 0) {
        if (error.kind == ERROR_NONE || !*error.message)
            abort();
        return 0;
    }
    if (json_print(job, &printed, NULL) == 0 &&
        json_parse(buffer_text(&printed), printed.length, PRINTED_MAX, &again, &error) < 0 &&
        error.kind != ERROR_INVALID)
        abort();
    return 0;
}
