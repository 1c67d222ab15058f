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

/* The points of a curve are kept in groups. A group covers consecutive lines of the log, and keeps those with the lowest and the highest
 * loss and figure, so that a single peak stays. When the curve is full, pairs of groups are merged, and from then on a group covers twice
 * as many lines. The newest points are in a group that is still open. */
#define HISTORY_GROUP 4
#define HISTORY_POINTS_MAX (2048 + 2 * HISTORY_GROUP)
/* When there are more marks, every second checkpoint is dropped or, if there are no checkpoints, the oldest mark. */
#define HISTORY_MARKS_MAX 256

struct history_point {
    int64_t step;
    double loss;   /* not finite: as the line has it; it counts as higher than any number */
    double figure; /* rate of a training step, or accuracy on held-out examples (0 to 1); NAN: the line has none */
    bool begins;   /* the first of a chief: no line leads to it */
};

struct history_curve {
    struct history_point points[HISTORY_POINTS_MAX];
    unsigned count, closed;      /* the points from `closed` on are the open group */
    unsigned lines, group_lines; /* how many lines the open group covers, and a closed one */
};

enum history_event { HISTORY_RESTART, HISTORY_WHOLE_AGAIN, HISTORY_CHECKPOINT };

struct history_mark {
    enum history_event event;
    int64_t step;
};

/* How long the members of the crew took over their own parts of a step (chief_line.h). */
#define HISTORY_PACES_MAX 512 /* when there are more, every second one is dropped */
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
    struct history_curve points, tests;  /* training, held-out examples */
    struct history_mark marks[HISTORY_MARKS_MAX];
    unsigned mark_count;
    char unit[32];     /* of the rate */
    int64_t last_step; /* -1: none yet */
    bool chief_is_new; /* its log has no step yet */
    uint64_t version;  /* changes with every change */
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
