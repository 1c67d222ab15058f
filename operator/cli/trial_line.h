/* SPDX-License-Identifier: Apache-2.0
 *
 * Extracts from the TrainingJob of one trial what `cox` shows of that trial: its number, state, parameter
 * values and result. A trial is one of the jobs of a TrainingSweep. If the job is gone, the sweep's status
 * has the same. A trial_line keeps no pointer into the job or the sweep, which may be freed.
 */
#ifndef COXSWAIN_CLI_TRIAL_LINE_H
#define COXSWAIN_CLI_TRIAL_LINE_H

#include "common/job/training_sweep.h"

struct trial_line {
    int64_t number;                     /* -1: the job has no number, so it is no trial */
    const char *name, *state, *message; /* message: why it has failed or diverged; "": it has not, or unknown */
    const char *
        objective; /* value of the metric once the trial has succeeded, or when it was stopped or paused; NULL: none that is finite */
    const char *
        reported; /* the value of the metric that it has reported last, while it is not over; NULL: none that is finite */
    int64_t reported_step; /* after which that was measured; -1: unknown */
    const char **
        values; /* one for each of the sweep's parameters, as text; NULL: the job lacks it, or its `when` does not hold */
    unsigned value_count;
    bool succeeded, failed, diverged;        /* at most one; diverged: its loss became infinite or not a number */
    bool stopped, paused;                    /* by the sweep: only its results say so */
    bool has_job;                            /* its job exists */
    int64_t step, total_steps, seconds_left; /* -1: unknown */
    int64_t start_ms, end_ms; /* FIELD_UNSET: unknown; end_ms: when it was over, or since when it is suspended */
    int64_t suspended_ms;     /* how long it was suspended before */
    struct arena arena;
};

/* Free with trial_line_free. */
struct trial_line *trial_line_new(const struct training_sweep *sweep, const struct json *job);
/* Makes the line from the sweep's results, for a trial whose job is gone, or never was: its times are unknown, and its message is known
 * only if its values make no valid job. */
struct trial_line *trial_line_of_result(const struct training_sweep *sweep, unsigned number);
void trial_line_free(struct trial_line *line);

/* Returns the objective or, of a trial that is not over, the value reported last; NULL: there is none. */
const char *trial_line_value(const struct trial_line *line);
/* Returns the step after which that value was measured, if it is not that of the trial's end; -1: it is, or unknown. */
int64_t trial_line_value_step(const struct trial_line *line);
/* Returns whether the trial has succeeded, failed, diverged or been stopped early. */
bool trial_line_is_over(const struct trial_line *line);

#endif
