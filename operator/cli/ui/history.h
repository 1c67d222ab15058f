/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the curves of one job for `cox ui`: loss and throughput by step, the results on held-out examples, and what happened on the
 * way. They are read from the chief's log, which every framework has and which stays with the pod when the job is over. Does no I/O.
 */
#ifndef COXSWAIN_CLI_UI_HISTORY_H
#define COXSWAIN_CLI_UI_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/json.h"

/* When there are more points, every second one is dropped, and from then on only every second new point is kept. */
#define HISTORY_POINTS_MAX 2048
#define HISTORY_TESTS_MAX 1024
/* When there are more marks, every second checkpoint is dropped or, if there are no checkpoints, the oldest mark. */
#define HISTORY_MARKS_MAX 256

struct history_point {
    int64_t step;
    double loss, rate; /* rate: NAN when the line has none */
    bool begins;       /* the first of a chief: no line leads to it */
};

struct history_test {
    int64_t step;
    double loss, accuracy; /* NAN: unknown */
};

enum history_event { HISTORY_RESTART, HISTORY_WHOLE_AGAIN, HISTORY_CHECKPOINT };

struct history_mark {
    enum history_event event;
    int64_t step;
};

/* How long the members of the crew took over their own parts of a step (chief_line.h). */
#define HISTORY_PACES_MAX 512 /* more are halved, as points are */
#define HISTORY_MEMBERS_MAX 64
struct history_pace {
    int64_t step;
    float step_ms, own_ms[HISTORY_MEMBERS_MAX]; /* NAN: not in the crew */
};

struct history {
    struct history_pace paces[HISTORY_PACES_MAX];
    char members[HISTORY_MEMBERS_MAX][24];
    unsigned pace_count, member_count;
    unsigned pace_stride, paces_skipped; /* every pace_stride-th line is kept */
    struct history_point points[HISTORY_POINTS_MAX];
    struct history_test tests[HISTORY_TESTS_MAX];
    struct history_mark marks[HISTORY_MARKS_MAX];
    unsigned point_count, test_count, mark_count;
    unsigned stride, skipped; /* every stride-th point is kept */
    char unit[32];            /* of the rate */
    int64_t last_step;        /* -1: none yet */
    bool chief_is_new;        /* its log has no step yet */
    uint64_t version;         /* changes with every change */
};

void history_init(struct history *history);
/* Call it before the first line of another chief's log. */
void history_begin_log(struct history *history);
/* Takes one line of the chief's log, without its time. */
void history_take_line(struct history *history, const char *line);
/* Takes the step of the newest checkpoint, from the job's status, which may be older than what the log says; -1: none. */
void history_take_checkpoint(struct history *history, int64_t step);

/* Returns {"version", "unit", "points": [[step, loss, rate, begins]], "tests": [[step, loss, accuracy]], "marks": [[event, step]],
 * "crew": {"members": [name], "paces": [[step, milliseconds of a step, [own milliseconds of each member]]]}}; of the version that the
 * caller has, only {"version"}. Free it with json_free. */
struct json *history_json(const struct history *history, uint64_t known_version);

#endif
