/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/script_report.h"
#include "common/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* A termination message: what is read of it is within the limits of a job's status, and is read again from the status document. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    SCOPED_FREE char *message = memory_copy_bytes((const char *)bytes, length);
    struct error flaw, error = ERROR_INIT;
    struct status_document report, again;
    script_report_read(message, &report, &flaw);
    if (report.step < STATUS_UNKNOWN || report.data_epoch < STATUS_UNKNOWN ||
        strnlen(flaw.message, ERROR_MESSAGE_MAX) == ERROR_MESSAGE_MAX)
        abort();
    for (unsigned i = 0; i < report.metric_count; i++)
        if (!isfinite(report.metrics[i].value))
            abort();
    SCOPED_BUFFER out = BUFFER_INIT(STATUS_DOCUMENT_MAX);
    if (status_document_print(&report, &out, &error) < 0 ||
        status_document_parse(out.data, out.length, &again, &error) < 0 || again.metric_count != report.metric_count)
        abort();
    return 0;
}
