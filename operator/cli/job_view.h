/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects the figures and events of one running job that `cox run` and `cox top NAME` show. job_follow.h
 * fills the view; view_print.h formats it, and terminal.h shows it. The sources are the TrainingJob, its
 * pods, and the status document and the log of the chief, the pod that leads the others.
 *
 * Newer sources win: the status in the TrainingJob is some seconds old, and the status document is read twice
 * a second. Log lines report events, and also the figures if the document cannot be read. Does no I/O.
 */
#ifndef COXSWAIN_CLI_JOB_VIEW_H
#define COXSWAIN_CLI_JOB_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/contract/status_document.h"
#include "common/failure_line.h"
#include "common/json.h"
#include "operator/cli/job_score.h"

#define VIEW_TEXT_MAX 256
#define VIEW_MESSAGE_MAX 2048
#define VIEW_LOSSES_MAX 4096
#define VIEW_EVENTS_MAX (64 * 1024)
#define VIEW_STRAGGLER_MS 15000

struct pod_line {
    char name[VIEW_TEXT_MAX], role[32];
    int64_t index;
    char words[64]; /* "ready", "starting", "killed", … */
    bool ready, ended;
    int64_t process;    /* PID of the trainer, from the containerID process://…; 0: none */
    char address[64];   /* the pod's IP address, "" while it has none */
    char container[64]; /* the one that trains */
    bool container_ended;
    char failure_line[FAILURE_LINE_MAX +
                      1]; /* why it failed, from its termination message; "": it did not fail, or gives no reason */
    bool earlier;         /* it was created before view->since_ms */
    bool failure_line_printed,
        failure_line_own; /* printed already; written by Coxswain's worker as "exit 71 (meaning): cause" */
};

/* The first step of a crew after it was incomplete. */
struct view_recovery {
    int64_t step;      /* -1: there was none */
    int64_t repeated;  /* steps done twice; after a new chief: those that its predecessor had reported as done */
    int64_t logged_ms; /* when the log reported it */
};

struct job_view {
    char name[64], name_space[64], strategy[64];
    char state[32], reason[VIEW_TEXT_MAX],
        message[VIEW_MESSAGE_MAX]; /* reason and message of the condition that ended the job */
    bool deleted;                  /* the TrainingJob was deleted */
    bool suspended;                /* a user has suspended it, and it is not over */
    bool seen, was_over;           /* the job has been read; it was over already when it was first read */
    /* The job continues from an earlier command: what pods did that were created before this time is not shown. 0: it is new. */
    int64_t since_ms;
    int64_t stale_step;       /* of the status when the job was first read, if the job continues; -1: none */
    char hold[64];            /* the reason why no pods are created; "": none */
    bool checkpoints_failing; /* the condition CheckpointsFailing */
    int64_t workers;
    int64_t step, total_steps, seconds_left; /* -1: unknown */
    double loss, examples_per_second;        /* NAN: unknown */
    double accuracy, validation_loss, rmse;  /* of the newest evaluation on the held-out examples; NAN: unknown */
    struct job_score
        best; /* of the best evaluation, whose weights the job exports; best_step -1: none, or others are exported */
    bool loss_alone;          /* the loss is a mean squared error, or that of a script: no perplexity follows from it */
    int64_t validation_step;  /* of the newest evaluation in the log; -1: none */
    double goodput;           /* per cent; NAN: not reported yet */
    int64_t trained_examples; /* by the last chief in all its steps, which took trained_seconds; 0: not reported */
    double trained_seconds;
    struct view_recovery recovery; /* the newest one */
    int64_t document_ms;           /* when the chief's document was last received; 0: never */
    bool log_is_new;               /* the current chief's log has no step line yet */
    bool shares_processors;        /* the pods share this machine's processors, so each is late now and then */
    char straggler[VIEW_TEXT_MAX]; /* the line about a straggler, kept back for VIEW_STRAGGLER_MS; "": none */
    int64_t straggler_ms;          /* when it came */
    int64_t restarts;
    char unit[32];             /* of the throughput: "examples" */
    char doing[VIEW_TEXT_MAX]; /* the chief's last log line that is not about a step */
    double losses[VIEW_LOSSES_MAX];
    int64_t loss_steps[VIEW_LOSSES_MAX]; /* ascending; -1: unknown */
    unsigned loss_count;
    unsigned loss_stride, loss_skipped; /* every loss_stride-th loss is kept */
    struct pod_line *pods;              /* sorted by role and index, then oldest first */
    unsigned pod_count, pod_room;
    int64_t first_step_ms, last_step_ms; /* 0: none yet */
    struct buffer events;                /* whole lines that are still to be printed */
};

void job_view_init(struct job_view *view, const char *name_space, const char *name);
void job_view_release(struct job_view *view);

/* Update the view from its sources. For a pod that is gone, `pod` is NULL. */
void job_view_take_job(struct job_view *view, const struct json *job);
void job_view_take_pod(struct job_view *view, const char *name, const struct json *pod);
void job_view_take_document(struct job_view *view, const struct status_document *document, int64_t now_ms);
/* Call it before the first line of another chief's log. */
void job_view_begin_log(struct job_view *view);
/* Takes one line of the chief's log. */
void job_view_take_log(struct job_view *view, const char *line, int64_t now_ms);

/* Fills the fields of a line, except name, role and index, from a Pod. */
void pod_line_describe(struct pod_line *line, const struct json *pod);

/* Returns the score of the weights that the job exports: the best evaluation's or the newest one's. */
struct job_score job_view_score(const struct job_view *view);

bool job_view_succeeded(const struct job_view *view);
/* Returns whether the job has succeeded or failed. */
bool job_view_over(const struct job_view *view);
/* Returns the pod of a role and index that has not ended, else the newest that has; NULL if there is none. */
const struct pod_line *job_view_pod(const struct job_view *view, const char *role, int64_t index);

#endif
