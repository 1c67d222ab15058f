/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "operator/controller/execute/push_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* A report that a script sends. What is read is within the limits of a job's status. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct status_document report;
    struct error flaw, error = ERROR_INIT;
    if (push_report_read((const char *)bytes, length, &report, &flaw, &error) < 0) {
        if (error.kind == ERROR_NONE || *error.message == '\0')
            abort();
        return 0;
    }
    if (report.step < STATUS_UNKNOWN || report.total_steps < STATUS_UNKNOWN || report.data_epoch < STATUS_UNKNOWN ||
        report.percent < STATUS_UNKNOWN || report.percent > 100 || report.seconds_remaining < STATUS_UNKNOWN ||
        report.metric_count > STATUS_METRICS_MAX)
        abort();
    for (unsigned i = 0; i < report.metric_count; i++)
        if (!isfinite(report.metrics[i].value) || *report.metrics[i].name == '\0')
            abort();
    return 0;
}
