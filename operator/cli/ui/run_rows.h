/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the rows of the list of runs (run_list.h) for the page of `cox ui --runs`. As in list.h, each row has the version of the list at
 * which it last changed, and a page gets only newer rows. Disk usage is measured little by little, that of the newest runs first.
 */
#ifndef COXSWAIN_CLI_UI_RUN_ROWS_H
#define COXSWAIN_CLI_UI_RUN_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"

struct run_rows;

/* `is_shown` returns whether the control plane that uses a state directory was started by this `cox ui`: then the run does not go on. */
struct run_rows *run_rows_new(bool (*is_shown)(void *context, const char *directory), void *context);
void run_rows_free(struct run_rows *rows);

/* Appends {"version", "whole", "unlisted": how many runs cannot be read, "rows", …} as ui_list_write does, with "runs": true. A row has
 * "run", by which run_rows_directory finds the run. Reads the directories first, as run_rows_read does. */
int run_rows_write(struct run_rows *rows, uint64_t version, struct buffer *out, struct error *error);

/* Reads the directories of the runs again, unless they were read less than 0.3 s ago. After a reading that took long, the next one waits
 * four times as long as it took, at most 5 s. */
int run_rows_read(struct run_rows *rows, struct error *error);
/* Returns the version of the rows that were read last: it changes with each row that is new, changed or gone. */
uint64_t run_rows_version(const struct run_rows *rows);

/* Returns the state directory of a run; NULL: the list does not have it. The rows own it, until the next call of run_rows_write. */
const char *run_rows_directory(struct run_rows *rows, const char *run, struct error *error);

#endif
