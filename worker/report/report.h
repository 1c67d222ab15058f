/* SPDX-License-Identifier: Apache-2.0
 *
 * Publishes a worker's progress: lines on stdout, the status document and metrics over HTTP, and
 * TensorBoard events. The training loop calls only this interface. Only the chief prints steps and
 * writes TensorBoard events; every worker answers HTTP. Reporting never fails or delays training:
 * if events cannot be written, a warning is printed once, and no step waits for their disk. What a
 * function below publishes is in the status document after the next step at the latest.
 */
#ifndef COXSWAIN_REPORT_H
#define COXSWAIN_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/contract/status_document.h"
#include "common/error.h"
#include "common/log.h"
#include "worker/report/step_line.h"

struct report;

/* Strings are copied. */
struct report_options {
    enum log_format format;
    const char *job_uid, *role;
    int64_t index, incarnation;
    bool chief;
    const char *http_address;                                  /* NULL: all interfaces */
    int http_port;                                             /* -1: no server */
    const char *tensorboard_directory;                         /* NULL: none */
    void (*complete_status)(struct status_document *document); /* see status_server_options */
    bool (*is_live)(char *reason, size_t size);
    const char *unit; /* of throughput; NULL: "examples" */
};

int report_open(const struct report_options *options, struct report **ret_report, struct error *error);
void report_free(struct report *report);
/* Writes buffered TensorBoard events now; warns if the disk does not take them in time. Callable
 * from any thread, for a process that exits without report_free. Steps reported meanwhile wait. */
void report_flush(struct report *report);

/* Sets the current phase. `message` (NULL: none) says what the process waits for; it is printed
 * when it or the phase changes. STATUS_DONE: the status document becomes the pod's termination
 * message. */
void report_phase(struct report *report, enum status_phase phase, const char *message);

/* Print a line for people to stdout, or {"message": …} if the format is JSON; report_warn marks it as a warning. */
void report_say(struct report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));
void report_warn(struct report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets the FLOPs per example and the peak FLOPS of one device of the crew (device_peak_flops; 0:
 * unknown). Steps that report a number of devices then get their model FLOPs utilisation. */
void report_peak(struct report *report, double flops_per_example, double peak_flops);

/* Reports applied steps of the crew (`step.steps` of them): `examples` examples in `step_ns` of
 * wall time. Computes throughput, utilisation and time remaining. */
void report_step(struct report *report, struct step_report step, int64_t examples, int64_t step_ns);

/* Reports validation results after `step`; `accuracy`, `perplexity` and `rmse` are NAN if the model has
 * none. */
void report_evaluation(struct report *report, int64_t step, double loss, double accuracy, double perplexity,
                       double rmse);

/* Reports the evaluation whose weights are kept as the best ones (best.h), as metrics of their own. `accuracy` and `rmse` are NAN if
 * the model has none. A loss that is not finite: no weights are kept. */
void report_best(struct report *report, int64_t step, double loss, double accuracy, double rmse);

/* Sets the step of the newest durable checkpoint in the status. */
void report_checkpoint(struct report *report, int64_t committed_step);
/* Reports the result of the newest save. `cause` NULL: it is durable. Else prints a warning;
 * training continues. */
void report_save(struct report *report, const struct error *cause);
/* Prints that the checkpoint of `step` is durable: its bytes and how long the save took. Only the
 * chief prints it, at most every 5 seconds, but always for the last step. */
void report_saved(struct report *report, int64_t step, int64_t bytes, int64_t ns);

/* Publishes that this member takes `own_ns` for its part of a step, which should take `due_ns`. `role` NULL: nobody is slower than
 * the rest. The status says since when the same member has been reported. */
void report_straggler(struct report *report, const char *role, int64_t index, int64_t own_ns, int64_t due_ns);

/* Reports how many bytes this process has sent to others over `steps` steps; published as a
 * metric, bytes per step. */
void report_traffic(struct report *report, int64_t bytes, int64_t steps);
/* Reports the total number of updates that parameter servers acknowledged but later lost;
 * published as a metric. */
void report_updates_lost(struct report *report, int64_t updates);
/* Reports how many replicas are missing from the last average; published as a metric. */
void report_replicas_missing(struct report *report, unsigned count);
/* Prints the last value of report_traffic; prints nothing if nothing was sent. For every
 * process, not only the chief. */
void report_traffic_summary(struct report *report);

/* Copies what the status says now. */
void report_get_status(struct report *report, struct status_document *ret_status);
/* Reports that an earlier process of this job has done everything, with the progress and the metrics of its last status, `last`. */
void report_completed(struct report *report, const struct status_document *last);

/* Prints the summary of the run: metrics, loss curve, goodput, paths. Paths may be NULL. */
void report_summary(struct report *report, const char *checkpoint_directory, const char *export_path);

#endif
