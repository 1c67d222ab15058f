/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the progress and the metrics of a training script of another framework (PyTorch, JAX, TensorFlow) from what it logs. The job gives
 * regular expressions with named groups (common/log_pattern.h), spec.pytorch.progress.logPatterns: the groups "step", "totalSteps" and
 * "epoch" are progress, every other name is a metric.
 *
 *   "(?<step>\d+)/(?<totalSteps>\d+) loss (?<loss>[0-9.e+-]+)"
 *
 * Each line is searched by itself, and the newest value of each name counts. A metric belongs to the step that was logged last, on the
 * metric's line or before it. If the log has steps, metrics before the first of them are left out. The log is untrusted: values that are
 * not finite numbers are ignored.
 */
#ifndef COXSWAIN_CONTROLLER_LOG_REPORT_H
#define COXSWAIN_CONTROLLER_LOG_REPORT_H

#include "common/contract/status_document.h"

/* Reads a report from the end of a log. Fails, with an empty report, if an expression cannot be compiled, or if the search takes more work
 * than one job may cause. `ret_work` is how much it took, at most LOG_WORK_MAX (common/log_pattern.h), and as much after a failure.
 * `count` is at most LOG_PATTERNS_MAX. */
int log_report_read(const char *const *expressions, unsigned count, const char *log, size_t length,
                    struct status_document *ret_report, int64_t *ret_work, struct error *error);

#endif
