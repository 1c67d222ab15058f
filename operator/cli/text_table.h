/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines up cells in columns, each as wide as its longest cell. sweep_print.c prints its tables with it: it
 * adds all cells first, since the widths depend on all of them.
 */
#ifndef COXSWAIN_CLI_TEXT_TABLE_H
#define COXSWAIN_CLI_TEXT_TABLE_H

#include <stddef.h>

#include "common/buffer.h"

#define TEXT_TABLE_GAP 3 /* blanks between columns */

struct text_table {
    unsigned columns;
    char **cells; /* line by line */
    size_t count, room;
};

void text_table_init(struct text_table *table, unsigned columns);
void text_table_release(struct text_table *table);
/* Adds the next cell of the line, or the first one of the next line. Copies `text`; NULL: empty. */
void text_table_add(struct text_table *table, const char *text);
/* Appends all whole lines, without blanks at their ends. */
void text_table_print(const struct text_table *table, struct buffer *out);
/* Ends a line of a table that is printed by hand: removes the blanks at its end. */
void text_table_end_line(struct buffer *out);

#endif
