/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the report that a training script of another framework (PyTorch, JAX, TensorFlow) sends to the operator while it runs: the body of
 * a POST, as KubeflowCallback of Hugging Face Transformers and update_trainjob_status of Kubeflow's SDK write it. The operator copies it
 * into the job's status.progress.
 *
 *   {"trainerStatus":{"progressPercentage":75,"estimatedRemainingSeconds":120,
 *                     "metrics":[{"name":"loss","value":"0.31"},{"name":"current_step","value":"1500"}],
 *                     "lastUpdatedTime":"2026-11-20T14:00:00Z"}}
 *
 * Each member may be left out or null; others are ignored, lastUpdatedTime too: the pod's clock may be wrong. Some metrics are progress:
 * step, current_step and global_step; total_steps and totalSteps; epoch and current_epoch. All others keep the step of their report.
 */
#ifndef COXSWAIN_CONTROLLER_PUSH_REPORT_H
#define COXSWAIN_CONTROLLER_PUSH_REPORT_H

#include "common/contract/status_document.h"

#define PUSH_REPORT_MAX (16 * 1024)

/* Reads a report from untrusted text. ERROR_INVALID or ERROR_TOO_LARGE if the text is not of this form. Metrics that cannot be used are
 * left out of the report; `ret_flaw` then names the first of them and the reason. If there are none, its kind is ERROR_NONE. */
int push_report_read(const char *text, size_t length, struct status_document *ret_report, struct error *ret_flaw,
                     struct error *error);

#endif
