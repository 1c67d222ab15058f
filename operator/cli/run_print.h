/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats the runs of this machine (run_list.h) for `cox runs`: the table, the JSON for programs, and the comparison of two runs. Does no
 * I/O: the text is appended to a buffer.
 */
#ifndef COXSWAIN_CLI_RUN_PRINT_H
#define COXSWAIN_CLI_RUN_PRINT_H

#include "operator/cli/run_list.h"

#define RUN_PRINT_MAX (16 * 1024 * 1024)

/* Appends a header and a line for each run that has a record. `bytes`: what each entry takes on the disk. `wide`: with the directories. */
void run_print_table(const struct run_list *list, const int64_t *bytes, bool wide, int64_t now_ms, struct buffer *out);
/* Returns a list with an object for each entry; one without a record has its trouble. Free it with json_free. */
struct json *run_list_json(const struct run_list *list, const int64_t *bytes);

/* Appends the fields in which two manifests differ, then how the runs stand. */
void run_print_comparison(const struct run_entry *left, const struct json *left_manifest, const struct run_entry *right,
                          const struct json *right_manifest, struct buffer *out);

/* Appends "512 B", "3.4 KB" or "1.2 GB". */
void run_print_bytes(int64_t bytes, struct buffer *out);

#endif
