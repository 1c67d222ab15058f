/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the chiefs of running jobs for their status document over HTTP. No redirect
 * is followed, at most STATUS_DOCUMENT_MAX bytes are read, and the document must
 * name the job's UID, since pod addresses are reused.
 *
 * A lone job is asked once a second; with many the interval stretches (progress_pace.h),
 * so that the status writes which follow are at most twenty a second in all.
 */
#ifndef COXSWAIN_CONTROLLER_PROGRESS_POLL_H
#define COXSWAIN_CONTROLLER_PROGRESS_POLL_H

#include "common/http_client.h"
#include "operator/controller/execute/job_entry.h"

/* For so long may a chief that is ready not tell its status before the status says so. */
#define PROGRESS_SILENCE_MS 60000

/* Questions, by what came of them. */
struct progress_counts {
    uint64_t answered;
    uint64_t refused;    /* an answer, but no status document of the job */
    uint64_t unanswered; /* no connection, or nothing in time */
};

struct progress_poller;

/* A document came and lies in the entry, or the chief is not heard. */
typedef void progress_told(void *context, struct job_entry *entry);

/* `client` is for plain HTTP to pods; it must outlive the poller. */
struct progress_poller *progress_poller_new(struct http_client *client, progress_told *told, void *context);
void progress_poller_free(struct progress_poller *poller);

/* Asks the chief, then the evaluator where there is one, when it is time and the chief's pod can be asked. Returns when to call again, PLAN_NEVER: when the crew changes. */
int64_t progress_poll(struct progress_poller *poller, struct job_entry *entry, const struct training_job *job,
                      int64_t now_ms);
struct progress_counts progress_poller_counts(const struct progress_poller *poller);
/* The wall clock was set. */
void progress_poller_clock_set(struct progress_poller *poller, int64_t by_ms);
/* Ends a question under way. */
void progress_forget(struct job_entry *entry);

/* What the chief says it waits for; NULL: nothing, or whoever said so is not the ready chief any more. Lies in the entry. */
const char *progress_crew_waits(const struct job_entry *entry, const struct training_job *job);

/* The chief of this pod is asked from now on: what is known of another's silence is forgotten. */
void progress_ask_pod(struct job_entry *entry, const char *pod_uid);
/* What came of a question to it: its status, nothing, or something else. */
void progress_heard(struct job_entry *entry, const char *pod_uid, enum chief_voice voice, int64_t now_ms);
/* Where the chief is ready, and has not told its status for PROGRESS_SILENCE_MS: what it did instead at last. */
enum chief_voice progress_chief_voice(const struct job_entry *entry, const struct training_job *job);

/* The chief's last words: a status document as its termination message. Fills the entry as an answer would. */
void progress_read_last_words(struct job_entry *entry, const struct training_job *job);

#endif
