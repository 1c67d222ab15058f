/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/text_table.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

#define FIRST_ROOM 64

void text_table_init(struct text_table *table, unsigned columns)
{
    *table = (struct text_table){.columns = columns};
}

void text_table_release(struct text_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct text_table){.columns = 0};
}

void text_table_add(struct text_table *table, const char *text)
{
    if (table->count == table->room) {
        table->room = table->room ? 2 * table->room : FIRST_ROOM;
        table->cells = memory_resize(table->cells, table->room, sizeof *table->cells);
    }
    table->cells[table->count++] = memory_copy_string(text ? text : "");
}

static int width_of(const struct text_table *table, unsigned column)
{
    size_t width = 0;
    for (size_t at = column; at < table->count; at += table->columns)
        width = strlen(table->cells[at]) > width ? strlen(table->cells[at]) : width;
    return (int)width;
}

void text_table_end_line(struct buffer *out)
{
    while (out->length > 0 && out->data[out->length - 1] == ' ')
        out->length--;
    buffer_append_byte(out, '\n', NULL);
}

static void print_line(const struct text_table *table, size_t first, const int *widths, struct buffer *out)
{
    for (unsigned i = 0; i < table->columns; i++)
        buffer_format(out, "%-*s", widths[i] + TEXT_TABLE_GAP, table->cells[first + i]);
    text_table_end_line(out);
}

void text_table_print(const struct text_table *table, struct buffer *out)
{
    SCOPED_FREE int *widths = memory_allocate(table->columns, sizeof *widths);
    for (unsigned i = 0; i < table->columns; i++)
        widths[i] = width_of(table, i);
    for (size_t first = 0; first + table->columns <= table->count; first += table->columns)
        print_line(table, first, widths, out);
}
