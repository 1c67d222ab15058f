/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the figures in lines of a chief's log, such as "step 20/300 loss 0.5" or "validation after step 20: loss 0.4", for
 * job_view.h and for the curves of `cox ui`. Does no I/O.
 */
#ifndef COXSWAIN_CLI_CHIEF_LINE_H
#define COXSWAIN_CLI_CHIEF_LINE_H

#include <stdbool.h>
#include <stdint.h>

struct chief_step {
    int64_t step, total_steps;
    double loss;
};

struct chief_validation {
    int64_t step;
    double loss, accuracy, rmse; /* accuracy: 0 to 1; NAN: not in the line */
};

/* The time that each member of a crew takes for its own part of a step: to read examples and to compute, without communication and waiting
 * for others. */
#define CHIEF_MEMBERS_MAX 64
#define CHIEF_MEMBER_NAME_MAX 24
struct chief_pace {
    int64_t step; /* the last step that the line covers */
    double step_ms;
    unsigned count;
    struct {
        char name[CHIEF_MEMBER_NAME_MAX]; /* "worker 1" */
        double own_ms;
    } members[CHIEF_MEMBERS_MAX];
};

/* The unit of a rate, such as "examples". */
#define CHIEF_UNIT_MAX 32

/* Each of the following returns false, and sets nothing, if the line is of another form. */
bool chief_line_step(const char *line, struct chief_step *ret_step);
bool chief_line_validation(const char *line, struct chief_validation *ret_validation);
/* Reads the throughput from a line about a step: "… 12.3 ms  20812 examples/s  8s left". */
bool chief_line_rate(const char *line, double *ret_rate, char ret_unit[CHIEF_UNIT_MAX]);
/* Reads how much a chief has trained in all, and how long that took without what lies between steps, such as evaluations and saves:
 * "trained 12000 examples in 1.903 s of steps". */
bool chief_line_trained(const char *line, int64_t *ret_examples, double *ret_seconds);
/* Reads the first step of a crew after a lost member was replaced: "the crew is whole again: step 120 done 1.2 s …". */
bool chief_line_whole_again(const char *line, int64_t *ret_step);
/* Reads the step of a complete checkpoint: "checkpoint of step 200: 12.3 MB in 0.04 s". */
bool chief_line_checkpoint(const char *line, int64_t *ret_step);
/* Reads the time of each member: "pace of the crew to step 120: 13.4 ms a step; own parts worker 0 11.2 ms, worker 1 12.0 ms". */
bool chief_line_pace(const char *line, struct chief_pace *ret_pace);
/* Reads the step of the checkpoint that a new crew continues from: "resumes from the checkpoint of step 200". */
bool chief_line_resumes(const char *line, int64_t *ret_step);

#endif
