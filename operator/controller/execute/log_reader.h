/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the progress of scripts of other frameworks from their logs. While a job with spec.<framework>.progress.logPatterns runs, it gets
 * the end of the log of the chief (the pod that leads the job) from the API server and searches it with these expressions
 * (log_report.h). What is found is kept in the job's entry like a status document of our own worker, and the next plan writes it to
 * status.progress.
 *
 * The log of a running chief is read every LOG_INTERVAL_MS; with many jobs less often (progress_pace.h), and also if its expressions take
 * much work, up to once a minute, so that the jobs of one user cannot keep the operator busy. When the chief has succeeded, its
 * log is read once more, so that the last values are those of the end.
 */
#ifndef COXSWAIN_CONTROLLER_LOG_READER_H
#define COXSWAIN_CONTROLLER_LOG_READER_H

#include "operator/controller/execute/job_entry.h"
#include "operator/controller/execute/progress_poll.h"
#include "operator/kube/client.h"

#define LOG_INTERVAL_MS 5000

struct log_reader;

/* Creates a reader. `client` must outlive it. `received` is called after each answer. */
struct log_reader *log_reader_new(struct kube_client *client, progress_received *received, void *context);
void log_reader_free(struct log_reader *reader);

/* Reads the chief's log if it is time to. Returns when to call again; PLAN_NEVER: when the crew changes or an
 * answer has come. */
int64_t log_reader_look(struct log_reader *reader, struct job_entry *entry, const struct training_job *job,
                        int64_t now_ms);

/* Returns when it was first seen that the chief has succeeded and its log must be read once more; FIELD_UNSET: it need not be, or has
 * been. */
int64_t log_reader_unread_since(struct job_entry *entry, const struct training_job *job, int64_t now_ms);

/* Adjusts the reader after the wall clock was set by `by_ms`. */
void log_reader_clock_set(struct log_reader *reader, int64_t by_ms);

/* Cancels the entry's request, if there is one. */
void log_reader_forget(struct job_entry *entry);

#endif
