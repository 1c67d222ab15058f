/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>

#include "common/contract/status_document.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* A document that is taken is printed within the ceiling and read again. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct error error = ERROR_INIT;
    struct status_document document, again;
    if (status_document_parse((const char *)bytes, length, &document, &error) < 0)
        return 0;
    SCOPED_BUFFER out = BUFFER_INIT(STATUS_DOCUMENT_MAX);
    if (status_document_print(&document, &out, &error) < 0 ||
        status_document_parse(out.data, out.length, &again, &error) < 0)
        abort();
    return 0;
}
