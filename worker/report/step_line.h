/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats the line that report.c prints for a training step, as text or as JSON.
 *
 *       step  120/1080  loss 0.0832  |g| 0.91  lr 9.8e-04  12.3 ms  20812 examples/s  8s left
 *       step  120/1080  loss 3.2871  |g| 0.91  lr 6.0e-04  523.1 ms  979 examples/s  MFU 41.2 %  8m 22s left
 *       {"step":120,"totalSteps":1080,"loss":0.0832,…}
 */
#ifndef COXSWAIN_REPORT_STEP_LINE_H
#define COXSWAIN_REPORT_STEP_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/log.h"

struct step_report {
    int64_t step, total_steps; /* this step's number, from 1, and that of the last step */
    int64_t data_epoch;
    double loss;          /* mean over the global batch */
    double gradient_norm; /* before clipping; NAN when not computed */
    double learning_rate;
    double milliseconds;
    double examples_per_second; /* of the whole crew */
    double utilisation;         /* model FLOPs utilisation, as a share of the devices' peak; 0: unknown */
    int64_t seconds_remaining;  /* -1: unknown */
    const char *unit;           /* "examples", "tokens" */
    int64_t steps;              /* steps since the last report; 0 means 1 */
    unsigned devices;           /* of the whole crew, to compute its utilisation; 0: unknown */
    int64_t loss_scale;         /* of the next step; 0: losses are not scaled */
    bool skipped;               /* the step was not applied because its gradient was not finite */
    int64_t skipped_steps;      /* of the whole run, this one included */
};

#define STEP_LINE_MAX 512
void step_line_format(const struct step_report *report, enum log_format format, char text[STEP_LINE_MAX]);

#endif
