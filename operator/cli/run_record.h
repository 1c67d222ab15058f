/* SPDX-License-Identifier: Apache-2.0
 *
 * Records the progress and result of a `cox run` on this machine in its state directory, so that `cox runs` and `cox predict` can read them
 * when no control plane runs. run.c writes the record, run.json (STATE_RUN), while the job runs and when it ends, and the manifest that it
 * applied, job.json (STATE_JOB).
 */
#ifndef COXSWAIN_CLI_RUN_RECORD_H
#define COXSWAIN_CLI_RUN_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/json.h"
#include "operator/cli/job_score.h"

#define RUN_TEXT_MAX 256

/* RUN_INTERRUPTED: the record says Running but no process uses the directory, because the run was killed. RUN_SUSPENDED: a user has
 * suspended the job or sweep; its `cox run` may go on or have ended (run_entry.goes_on). */
#define RUN_STATES(X)                                                                                                  \
    X(UNKNOWN, "Unknown")                                                                                              \
    X(RUNNING, "Running")                                                                                              \
    X(SUCCEEDED, "Succeeded")                                                                                          \
    X(FAILED, "Failed") X(INTERRUPTED, "Interrupted") X(SUSPENDED, "Suspended") X(DELETED, "Deleted")

enum run_state {
#define X(name, word) RUN_##name,
    RUN_STATES(X)
#undef X
};

struct run_record {
    char name[RUN_TEXT_MAX], name_space[RUN_TEXT_MAX];
    bool is_sweep;
    enum run_state state;
    int64_t step, total_steps;      /* of a sweep: trials that are done, and all; -1: unknown */
    double loss;                    /* NAN: unknown */
    struct job_score score;         /* of a job */
    char metric[RUN_TEXT_MAX];      /* of a sweep: what it compares its trials by, such as validationLoss */
    double best;                    /* of its best trial; NAN: none */
    int64_t started_ms, updated_ms; /* 0: unknown */
    struct json *volumes;           /* owned: {claim: directory}, the --volume options; NULL: none */
    char *command; /* owned: continues the run, from any directory; NULL: unknown, as in records of older versions */
};

void run_record_init(struct run_record *record);
void run_record_release(struct run_record *record);

const char *run_state_word(enum run_state state);

/* Reads and writes the record of a state directory. The record of run_record_read must be released even after a failure.
 * ERROR_NOT_FOUND: the directory has none; ERROR_INVALID: it is damaged. */
int run_record_read(const char *directory, struct run_record *ret_record, struct error *error);
int run_record_write(const char *directory, const struct run_record *record, struct error *error);
/* The record as JSON, for programs; free it with json_free. */
struct json *run_record_json(const struct run_record *record);

/* Reads and writes the manifest that was applied. Free it with json_free. */
int run_record_manifest(const char *directory, struct json **ret_manifest, struct error *error);
int run_record_write_manifest(const char *directory, const struct json *manifest, struct error *error);

/* Returns whether one of the run's --volume options names `directory`, an absolute path, or a directory within it. */
bool run_record_uses(const struct run_record *record, const char *directory);

/* Appends the run's score: a job's as job_score_print does, a sweep's such as "98.3 %", "loss 0.0625" or, with a metric of its own,
 * "0.0625 reward". Appends nothing if there is none. */
void run_record_score(const struct run_record *record, struct buffer *out);

#endif
