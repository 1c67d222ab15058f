/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats the table that `cox top` refreshes: throughput, loss curve and remaining time of each job. The
 * caller keeps one row per job between refreshes, because a TrainingJob has only its newest loss. Does no
 * I/O.
 */
#ifndef COXSWAIN_CLI_TOP_TABLE_H
#define COXSWAIN_CLI_TOP_TABLE_H

#include "common/buffer.h"
#include "common/json.h"

#define TOP_LOSSES_MAX 24 /* columns of the curve */
#define TOP_TEXT_MAX (1024 * 1024)

/* A job and its last losses. Zero it before the first top_row_take; release it with
 * top_row_release. */
struct top_row {
    struct json *job;
    double losses[TOP_LOSSES_MAX];
    unsigned loss_count;
    int64_t step; /* of the last one */
};

/* Copies the job, and appends its loss if its step has changed. Drops the losses if `job` has
 * another UID than before. */
void top_row_take(struct top_row *row, const struct json *job);
void top_row_release(struct top_row *row);

/* Sorts the jobs that train first, by throughput, then the others by name. */
void top_table_sort(struct top_row *rows, unsigned count);
/* Appends a header and a line for each job, none wider than `width` columns. */
void top_table_print(const struct top_row *rows, unsigned count, unsigned width, bool with_namespace,
                     struct buffer *out);

#endif
