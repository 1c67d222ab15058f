/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads tables in memory, row by row: for the data format CSV, and for `cox generate`, which looks into them. A table is text with
 * separators, or JSON Lines (json_lines.h).
 *
 * In text, the separator is the comma, semicolon or tab that the first line has most of. Spaces around a field are left out, and so are
 * empty lines and a byte order mark. A field in double quotes may hold separators, but no line break; two double quotes within it stand
 * for one.
 *
 * In JSON Lines, the first row gives the names of the first object's fields. Each object, the first one included, is a further row, and
 * must have these fields, in any order.
 *
 *     csv_init(&csv, bytes, length);
 *     while ((result = csv_next(&csv, &error)) > 0) … csv.fields …
 *     csv_release(&csv);
 */
#ifndef COXSWAIN_COMMON_DATA_CSV_H
#define COXSWAIN_COMMON_DATA_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/data/json_lines.h"
#include "common/error.h"
#include "common/json.h"

#define CSV_COLUMNS_MAX 65536
#define CSV_LABELS_MAX 4096      /* different ones */
#define CSV_LABEL_LENGTH_MAX 255 /* bytes */

struct csv_field {
    const char *
        text; /* not NUL-terminated; lies in the caller's bytes or in the struct csv, and is valid until the next row */
    size_t length;
};

struct csv {
    const char *at, *end;
    char separator;
    int64_t line;             /* of the row read last, from 1 */
    struct csv_field *fields; /* of that row; owned */
    unsigned count, capacity;
    /* The texts of its fields that are not in the bytes: JSON values, and those with doubled quotes; owned. */
    char *unquoted;
    size_t unquoted_length, unquoted_capacity;
    /* JSON Lines: */
    bool is_json, gave_names; /* gave_names: the row read last is the row of names */
    struct json_lines lines;
    struct json *names;  /* the first object; NULL: not read yet; owned */
    struct json *object; /* the one whose values are the row read last; owned */
};

void csv_init(struct csv *csv, const uint8_t *bytes, size_t length);
/* Starts reading the bytes of the file `path`, as JSON Lines if the file's name says so (json_lines_named), else as CSV. */
void csv_init_file(struct csv *csv, const char *path, const uint8_t *bytes, size_t length);
void csv_release(struct csv *csv);
/* Returns 1 for a row, 0 at the end; -1, ERROR_INVALID: a quote is not closed, there are too many columns, or a line is not an object with
 * the first object's fields, none of them an object or an array; or ERROR_TOO_LARGE: a line of JSON Lines is longer than
 * JSON_LINES_LENGTH_MAX. The message names the line. */
int csv_next(struct csv *csv, struct error *error);

/* Returns whether the table's first row, which must be the row read last, names the columns. In JSON Lines it always does. In text
 * there are two cases. If none of its fields is a number, it does, unless it looks like an example: one of the thousand
 * rows below repeats some but not all of its words in the same columns, and none has a number where it has a word. If it
 * has numbers, it names the columns if all of these hold:
 * - its numbers consist of digits alone, such as 2020;
 * - its last field is neither a number nor missing;
 * - there are rows below it, and none of them has that last field as its own last field;
 * - the last fields of these rows are all numbers, or at least two of them are equal (so they are labels). */
bool csv_is_header(const struct csv *csv);
/* Finds a column by its number, from 1 on, or by its name if the row read last is the header. Returns false if there is no such column. */
bool csv_find_column(const struct csv *csv, bool header, const char *wanted, unsigned *ret_column);
/* Returns whether the field equals `text`. */
bool csv_field_is(const struct csv_field *field, const char *text);
/* Parses the field as a finite decimal number. Returns false if it is none. */
bool csv_number(const struct csv_field *field, double *ret_number);
/* Returns whether the field says that a value is missing: empty, NA, N/A, NaN, null, none or "?", in letters of either case. */
bool csv_is_missing(const struct csv_field *field);

/* The different labels of a column: the classes, in the order of their numbers if all are integers, else of their bytes. */
struct csv_labels {
    struct csv_field *list; /* sorted; owned, as the texts are */
    unsigned count, capacity;
    bool integers; /* all of them are */
};
/* Adds a copy of the label unless `labels` has it already. Zero `labels` before the first call. ERROR_TOO_LARGE if there would be more than
 * CSV_LABELS_MAX labels, or the label is longer than CSV_LABEL_LENGTH_MAX. */
int csv_labels_add(struct csv_labels *labels, const struct csv_field *label, struct error *error);
void csv_labels_sort(struct csv_labels *labels); /* after the last one */
/* Returns the label's position in the sorted list, which is the number of its class; -1 if the list does not have the label. */
int csv_labels_find(const struct csv_labels *labels, const struct csv_field *label);
void csv_labels_release(struct csv_labels *labels);

/* Appends one cell of a CSV file, in double quotes if necessary, followed by `end`, such as ",". */
int csv_append_cell(struct buffer *out, const char *text, const char *end, struct error *error);

#endif
