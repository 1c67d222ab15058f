/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs side by side: throughput, the curve of the loss, time left. Pure.
 */
#ifndef COXSWAIN_CLI_TOP_TABLE_H
#define COXSWAIN_CLI_TOP_TABLE_H

#include "common/buffer.h"
#include "common/json.h"

#define TOP_LOSSES_MAX 24 /* columns of the curve */
#define TOP_TEXT_MAX (1024 * 1024)

/* A job and what its loss was while somebody looked. Zeroed before the first top_row_take; release with top_row_release. */
struct top_row {
    struct json *job;
    double losses[TOP_LOSSES_MAX];
    unsigned loss_count;
    int64_t step; /* of the last one */
};

/* Copies the job, and keeps its loss when it has stepped on. */
void top_row_take(struct top_row *row, const struct json *job);
void top_row_release(struct top_row *row);

/* Those that train first, by throughput; then the others, by name. */
void top_table_sort(struct top_row *rows, unsigned count);
/* A head and a line for each, none wider than `width`. */
void top_table_print(const struct top_row *rows, unsigned count, unsigned width, bool with_namespace,
                     struct buffer *out);

#endif
