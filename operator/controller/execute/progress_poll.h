/* SPDX-License-Identifier: Apache-2.0
 *
 * Polls each running job of the project's own worker for its progress: GETs the status document, a
 * JSON text (common/contract/status_document.h), from the HTTP port of the chief, the pod that
 * leads the job, and then of the job's evaluator. The document is kept in the job's entry, and the
 * next plan writes it to status.progress.
 *
 * The answer comes from a pod and is not trusted: redirects are not followed, at most
 * STATUS_DOCUMENT_MAX bytes are read, and the document must contain the job's UID, because pod
 * addresses are reused. If the chief is ready but gives no valid document for PROGRESS_SILENCE_MS,
 * the job's status says so; the job goes on.
 *
 * A single job is polled once a second. With many jobs the interval grows (progress_pace.h), so
 * that at most twenty status writes a second follow from all of them.
 */
#ifndef COXSWAIN_CONTROLLER_PROGRESS_POLL_H
#define COXSWAIN_CONTROLLER_PROGRESS_POLL_H

#include "common/http_client.h"
#include "operator/controller/execute/job_entry.h"

/* How long a chief that is ready may fail to report before the job's status says so. */
#define PROGRESS_SILENCE_MS 60000

/* Counts requests by their outcome. */
struct progress_counts {
    uint64_t answered;
    uint64_t refused;    /* the answer was not a status document of the job */
    uint64_t unanswered; /* no connection, or no answer in time */
};

struct progress_poller;

/* Called when the entry has a new document, or when the chief could not be reached. */
typedef void progress_received(void *context, struct job_entry *entry);

/* Creates a poller. `client` speaks plain HTTP to pods and must outlive the poller. */
struct progress_poller *progress_poller_new(struct http_client *client, progress_received *received, void *context);
void progress_poller_free(struct progress_poller *poller);

/* Polls the chief, then the evaluator if the job has one, if the job's turn has come and the
 * chief's pod can be reached. Returns when to call again; PLAN_NEVER: only when the crew
 * changes. */
int64_t progress_poll(struct progress_poller *poller, struct job_entry *entry, const struct training_job *job,
                      int64_t now_ms);
struct progress_counts progress_poller_counts(const struct progress_poller *poller);
/* Adjusts the poller after the wall clock was set by `by_ms`. */
void progress_poller_clock_set(struct progress_poller *poller, int64_t by_ms);
/* Cancels the entry's request, if there is one. */
void progress_forget(struct job_entry *entry);

/* Returns what the chief reports that it waits for. NULL: nothing, or the pod that reported it is
 * no longer the ready chief. Borrowed from the entry. */
const char *progress_crew_waits(const struct job_entry *entry, const struct training_job *job);

/* Polls the chief in this pod from now on, and forgets how long another pod has been silent. */
void progress_ask_pod(struct job_entry *entry, const char *pod_uid);
/* Notes the outcome of a request to that pod: a status document (CHIEF_HEARD), no answer (CHIEF_SILENT) or another answer
 * (CHIEF_STRANGE). */
void progress_heard(struct job_entry *entry, const char *pod_uid, enum chief_voice voice, int64_t now_ms);
/* Returns CHIEF_SILENT or CHIEF_STRANGE if the chief is ready but has not reported its status for
 * PROGRESS_SILENCE_MS, by the outcome of the last request; else CHIEF_HEARD. */
enum chief_voice progress_chief_voice(const struct job_entry *entry, const struct training_job *job);

/* Reads the chief's last status document from its termination message into the entry, as if the
 * chief had answered. */
void progress_read_failure_line(struct job_entry *entry, const struct training_job *job);

#endif
