/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything a worker tells the world, behind one door for the training loop:
 * lines on stdout, the status document and metrics over HTTP, TensorBoard events.
 * Only the chief prints steps and writes TensorBoard; every worker answers HTTP.
 * Reports never fail the training, nor hold it up: what cannot be written is said
 * once as a warning, and no step waits for the disk of the events.
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
    void (*complete_status)(struct status_document *document); /* as of struct status_server_options */
    bool (*is_live)(char *reason, size_t size);
    const char *unit; /* what is counted: "examples" */
};

int report_open(const struct report_options *options, struct report **ret_report, struct error *error);
void report_free(struct report *report);
/* What is kept for later goes to its file now; warns where its disk does not take it. For a process that ends without report_free, from
 * whatever thread: steps that are reported meanwhile wait. */
void report_flush(struct report *report);

/* What the process is doing now; `message` (NULL: none) says for whom or what it waits. Printed when it changes.
 * STATUS_DONE: the status document becomes the pod's termination message. */
void report_phase(struct report *report, enum status_phase phase, const char *message);

/* A line of the plan or the summary. In JSON format: {"message": …}. */
void report_say(struct report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));
void report_warn(struct report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What an example costs, and what one device of the crew could compute a second at most (device_peak_flops; 0: not known): steps
 * that say how many devices took part are then reported with their model FLOPs utilisation. */
void report_peak(struct report *report, double flops_per_example, double peak_flops);

/* One applied step of the crew: `examples` in the global batch, `step_ns` of wall time. Fills rate and time left. */
void report_step(struct report *report, struct step_report step, int64_t examples, int64_t step_ns);

/* Validation results after `step`; `accuracy` and `perplexity` NAN when the model has none. */
void report_evaluation(struct report *report, int64_t step, double loss, double accuracy, double perplexity);

void report_checkpoint(struct report *report, int64_t committed_step);
/* What became of the newest save: `cause` NULL: it is durable. Warns when it failed; training goes on. */
void report_save(struct report *report, const struct error *cause);

/* Bytes that this process has sent to others over `steps` steps: a metric of the mean. */
void report_traffic(struct report *report, int64_t bytes, int64_t steps);
/* Updates that parameter servers had acknowledged and that no server's values have any more, in all: a metric. */
void report_updates_lost(struct report *report, int64_t updates);
/* Replicas that the last mean of all is without: a metric. */
void report_replicas_missing(struct report *report, unsigned count);
/* What report_traffic was last told, as a line; nothing when nothing was sent. Of every process. */
void report_traffic_summary(struct report *report);

/* The end: metrics, loss curve, goodput. Paths may be NULL. */
void report_summary(struct report *report, const char *checkpoint_directory, const char *export_path);

#endif
