/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines, prints and parses the status document, by which a worker reports its training: the answer to GET /status. The operator and `cox`
 * poll it from the job's chief, the pod that leads the training; the operator copies it into the job's status.progress. The document has at
 * most 64 KiB of JSON:
 *
 *   {"jobUID":"…","incarnation":5,"role":"worker","index":0,
 *    "phase":"Training",
 *    "step":1200,"totalSteps":3000,"dataEpoch":2,
 *    "metrics":[{"name":"loss","value":0.0312,"step":1200},{"name":"validationAccuracy","value":0.9841,"step":1000}],
 *    "examplesPerSecond":51234.5,"secondsRemaining":35,
 *    "lastCheckpointStep":1000,"goodput":0.987,
 *    "failedSaves":2,"saveFailure":"VolumeFull","saveMessage":"save step 1200: cannot write …: No space left on device",
 *    "refusedPerMinute":4872,"refusedFrom":"10.1.2.3","refusedReason":"data port: it did not prove in time that …",
 *    "stragglerRole":"worker","stragglerIndex":2,"stragglerMilliseconds":512.4,"stragglerDueMilliseconds":50.1,"stragglerSeconds":310,
 *    "message":"waiting for worker 1","updatedAt":"2026-11-20T14:00:00Z"}
 *
 * Unknown numbers are left out. A reader must compare jobUID with the UID of its job, because pod addresses are reused.
 */
#ifndef COXSWAIN_CONTRACT_STATUS_DOCUMENT_H
#define COXSWAIN_CONTRACT_STATUS_DOCUMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"
#include "common/json.h"

#define STATUS_DOCUMENT_MAX (64 * 1024)
#define STATUS_METRICS_MAX 16
#define STATUS_METRIC_NAME_MAX 64
/* Names of metrics that the own worker reports. Scripts may report others. */
#define METRIC_VALIDATION_LOSS "validationLoss"
#define METRIC_VALIDATION_ACCURACY "validationAccuracy"
#define METRIC_VALIDATION_RMSE "validationRMSE"
#define METRIC_BEST_LOSS "bestValidationLoss"
#define METRIC_BEST_ACCURACY "bestValidationAccuracy"
#define METRIC_BEST_RMSE "bestValidationRMSE"
#define STATUS_UNKNOWN (-1)
#define STATUS_COUNT_MAX 1e15 /* most steps, epochs or seconds that a script may report: far below 2^53 */

/* The values of `phase`. */
#define STATUS_PHASES(X)                                                                                               \
    X(STARTING, "Starting")                                                                                            \
    X(JOINING, "Joining")                                                                                              \
    X(RESTORING, "Restoring")                                                                                          \
    X(TRAINING, "Training")                                                                                            \
    X(WAITING, "Waiting") /* for a lost member; `message` names it */                                                  \
    X(EVALUATING, "Evaluating")                                                                                        \
    X(SAVING, "Saving")                                                                                                \
    X(DONE, "Done")

enum status_phase {
#define X(name, text) STATUS_##name,
    STATUS_PHASES(X)
#undef X
};
const char *status_phase_name(enum status_phase phase);

/* Why the newest save failed, for `saveFailure`; also the reasons of the job's condition. */
#define SAVE_FAILURES(X)                                                                                               \
    X(SAVE_FINE, "")                                                                                                   \
    X(SAVE_VOLUME_FULL, "VolumeFull") /* no space, or no quota, left on the volume */                                  \
    X(SAVE_FAILED, "SaveFailed")      /* anything else */

enum save_failure {
#define X(name, text) name,
    SAVE_FAILURES(X)
#undef X
};
const char *save_failure_name(enum save_failure failure);

struct status_metric {
    char name[STATUS_METRIC_NAME_MAX];
    double value;
    int64_t step; /* after which it was measured; 0: unknown */
};

/* Plain values; owns nothing. Numbers that are not known are STATUS_UNKNOWN. */
struct status_document {
    char job_uid[64];
    int64_t incarnation;
    char role[32];
    int64_t index;
    enum status_phase phase;
    int64_t step; /* applied optimizer steps */
    int64_t total_steps;
    int64_t data_epoch;
    int64_t percent; /* of the work that is done, from scripts that say so (push_report.h); not in the JSON */
    struct status_metric metrics[STATUS_METRICS_MAX];
    unsigned metric_count;
    double examples_per_second;
    int64_t seconds_remaining;
    int64_t last_checkpoint_step;
    int64_t
        failed_saves; /* saves that failed since the last success; STATUS_UNKNOWN: this process has not completed a save yet */
    enum save_failure save_failure;
    char save_message[256];
    int64_t refused_per_minute; /* connections that did not prove that they belong to the job; STATUS_UNKNOWN: none */
    char refused_from[48];      /* the address with the most of them */
    char refused_reason[192];   /* at which port it was refused last, and why */
    char straggler_role[32];    /* of the member that is slower than the rest, as the chief finds; "": none is */
    int64_t straggler_index;
    double straggler_ms;       /* how long it takes for its own part of a step */
    double straggler_due_ms;   /* how long that part should take */
    int64_t straggler_seconds; /* for how long it has been the straggler */
    double goodput; /* share of the time since this process began that went into steps that were kept, 0 to 1 */
    char message[256];
    int64_t updated_at_ms;
};

/* Makes an empty document: phase Starting, all numbers unknown, all texts "". */
void status_document_init(struct status_document *document);

/* Returns the metric of that name; NULL: there is none. */
const struct status_metric *status_document_metric(const struct status_document *document, const char *name);
/* Sets the value and the step of a metric, which is added if it is new, and returns it. NULL if the document has STATUS_METRICS_MAX other
 * metrics already, or the name is too long. */
struct status_metric *status_document_set_metric(struct status_document *document, const char *name, double value,
                                                 int64_t step);
/* Removes the metric of that name, if there is one. */
void status_document_remove_metric(struct status_document *document, const char *name);
/* Returns whether a metric's name has a control character, which a terminal might obey. */
bool status_name_has_control_character(const char *name);
/* Sets a step, an epoch or a total of them to the value that a script reports, rounded down: some scripts report fractions of epochs.
 * Leaves `count` unchanged if the value is negative or above STATUS_COUNT_MAX. */
void status_count_set(int64_t *count, double value);
/* Returns whether the document has a step, a total of steps, an epoch, a percentage or a metric. */
bool status_document_has_progress(const struct status_document *document);

/* The caller frees the result. */
struct json *status_document_to_json(const struct status_document *document);
int status_document_print(const struct status_document *document, struct buffer *out, struct error *error);
/* Parses untrusted text. Fails with ERROR_INVALID or ERROR_TOO_LARGE. */
int status_document_parse(const char *text, size_t length, struct status_document *ret_document, struct error *error);

#endif
