/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/log_pattern.h"
#include "common/memory.h"
#include "operator/controller/execute/log_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* A regular expression in the first line, and the log that is searched with it. What is read is within the limits of a job's status. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const uint8_t *end = length > 0 ? memchr(bytes, '\n', length) : NULL;
    if (!end)
        return 0;
    SCOPED_FREE char *expression = memory_copy_bytes((const char *)bytes, (size_t)(end - bytes));
    const char *const expressions[] = {expression};
    struct status_document report;
    int64_t work;
    log_report_read(expressions, 1, (const char *)end + 1, length - (size_t)(end - bytes) - 1, &report, &work, NULL);
    if (work < 0 || work > LOG_WORK_MAX || report.step < STATUS_UNKNOWN || report.total_steps < STATUS_UNKNOWN ||
        report.data_epoch < STATUS_UNKNOWN || report.metric_count > STATUS_METRICS_MAX)
        abort();
    for (unsigned i = 0; i < report.metric_count; i++)
        if (!isfinite(report.metrics[i].value) || *report.metrics[i].name == '\0')
            abort();
    return 0;
}
