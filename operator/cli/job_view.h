/* SPDX-License-Identifier: Apache-2.0
 *
 * What a person wants to know of a running job, as a value: fed with the
 * TrainingJob, its pods, the chief's status document and its log lines, read by
 * what prints it. The operator's progress comes every few seconds; the document is
 * asked for twice a second and has the figures; log lines tell what happens, and
 * the figures where no document can be had.
 */
#ifndef COXSWAIN_CLI_JOB_VIEW_H
#define COXSWAIN_CLI_JOB_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/contract/status_document.h"
#include "common/json.h"
#include "common/last_words.h"

#define VIEW_TEXT_MAX 256
#define VIEW_MESSAGE_MAX 2048
#define VIEW_LOSSES_MAX 4096
#define VIEW_EVENTS_MAX (64 * 1024)

struct pod_line {
    char name[VIEW_TEXT_MAX], role[32];
    int64_t index;
    char words[64]; /* "ready", "starting", "killed", … */
    bool ready, ended;
    int64_t process;    /* of the trainer, from process://…; 0: none */
    char address[64];   /* of the pod, "" while it has none */
    char container[64]; /* that trains */
    bool container_ended;
    char last_words[LAST_WORDS_MAX +
                    1]; /* why it failed, as its termination message says; "": it did not, or nothing says */
    bool last_words_told, last_words_own; /* own: left by Coxswain's worker as "exit 71 (meaning): cause" */
};

/* A crew that was incomplete steps again. */
struct view_recovery {
    int64_t step; /* the first one it made; -1: never */
    int64_t
        repeated; /* steps that were begun before and made again; of a new chief: those that its predecessor told as done */
    int64_t told_ms; /* when that was heard */
};

struct job_view {
    char name[64], name_space[64], strategy[64];
    char state[32], reason[VIEW_TEXT_MAX], message[VIEW_MESSAGE_MAX]; /* of the condition that ended it */
    bool deleted;                                                     /* somebody has removed the job itself */
    bool checkpoints_failing;                                         /* as the operator has told last */
    int64_t workers;
    int64_t step, total_steps, seconds_left; /* -1: unknown */
    double loss, examples_per_second;        /* NAN: unknown */
    double accuracy, validation_loss;        /* of the held-out examples; NAN: unknown */
    bool loss_alone;                         /* a mean squared error: nothing is right or wrong, no perplexity */
    int64_t validation_step;                 /* of the newest evaluation in the log; -1: none */
    double goodput;                          /* per cent; NAN: not told yet */
    struct view_recovery recovery;           /* the last one */
    int64_t document_ms;                     /* when the chief's document came last; 0: never */
    bool log_is_new;                         /* no step line of the current chief came yet */
    int64_t restarts;
    char unit[32];             /* "examples" */
    char doing[VIEW_TEXT_MAX]; /* what the chief says while it does not step */
    double losses[VIEW_LOSSES_MAX];
    unsigned loss_count;
    unsigned loss_stride, loss_skipped; /* every loss_stride-th line is kept */
    struct pod_line *pods;              /* by role and index; of one place the later ones last */
    unsigned pod_count, pod_room;
    int64_t first_step_ms, last_step_ms; /* 0: none yet */
    struct buffer events;                /* whole lines that nobody has printed yet */
};

void job_view_init(struct job_view *view, const char *name_space, const char *name);
void job_view_release(struct job_view *view);

void job_view_take_job(struct job_view *view, const struct json *job);
/* `pod` NULL: the pod of that name is gone. */
void job_view_take_pod(struct job_view *view, const char *name, const struct json *pod);
/* The chief's own figures. */
void job_view_take_document(struct job_view *view, const struct status_document *document, int64_t now_ms);
/* The log of another chief begins. */
void job_view_begin_log(struct job_view *view);
/* One line of the chief's log. */
void job_view_take_log(struct job_view *view, const char *line, int64_t now_ms);

/* State and words of a pod, from its JSON. */
void pod_line_describe(struct pod_line *line, const struct json *pod);

bool job_view_succeeded(const struct job_view *view);
bool job_view_over(const struct job_view *view);
/* The current pod of a role and index; NULL when there is none. */
const struct pod_line *job_view_pod(const struct job_view *view, const char *role, int64_t index);

#endif
