/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns the rows of a table (csv.h) into the numbers that a model takes. Which numbers a column becomes depends on all of its values:
 *
 *   numbers   one number, as it is
 *   booleans  true, false, yes and no, in any case of letters: one number, 1 or 0
 *   words     one number for each different word of the column, in the order of their bytes: 1 in rows with this word, else 0
 *
 * One column has the labels, and others may be left out; the rest are the inputs.
 *
 *     csv_columns_start(&columns, &csv, header, &choice, &error);      with the first row of the table
 *     csv_columns_add(&columns, &csv);                                  each row with values
 *     csv_columns_finish(&columns, &choice, &error);
 *     … csv_column_encode(&columns.list[i], &csv.fields[i], values) …
 *     csv_columns_release(&columns);
 */
#ifndef COXSWAIN_COMMON_DATA_CSV_COLUMNS_H
#define COXSWAIN_COMMON_DATA_CSV_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/data/csv.h"
#include "common/error.h"
#include "common/json.h"

#define CSV_WORDS_MAX 64 /* different words of a column */
#define CSV_SHOWN_MAX 40 /* bytes of a name or a word in messages */

enum csv_kind { CSV_NUMBERS, CSV_BOOLEANS, CSV_WORDS };

struct csv_column {
    enum csv_kind kind;
    bool is_input;
    struct csv_labels words; /* CSV_WORDS: the different words, sorted; owned */
    /* Found in the rows that were added: */
    int64_t dropped; /* values that are missing in rows that were not added (csv_columns_drop) */
    int64_t numbers, booleans, missing, missing_line, word_line; /* counts, and the lines of the first ones; 0: none */
    int64_t commas, dates;                                       /* words such as "3,5", and such as "2026-11-27" */
    bool repeats, many, bytes;    /* a word occurs twice; there are too many words; one is not UTF-8 */
    char word[CSV_SHOWN_MAX + 1]; /* the first one that is no number, shortened */
    char name[CSV_SHOWN_MAX + 1]; /* shortened; empty: the table has no names */
};

/* The columns of a table, and what was found in the rows so far. Zero-initialise it before the first row. */
struct csv_columns {
    struct csv_column *list; /* owned */
    unsigned count;          /* with the label's and those that are left out */
    unsigned label;          /* the label's column */
    int64_t rows;
};

/* The user's choice of the label's column and of columns to leave out, and the names of these options in error messages. */
struct csv_choice {
    const char *label;          /* a name, or a number from 1 on; NULL: the last column that is not left out */
    const char *const *skipped; /* names or numbers of the columns that are left out */
    unsigned skipped_count;
    const char *label_title, *skip_title; /* such as "--label", "--skip" */
    const char *skip_before, *skip_after; /* around a list of columns to leave out, such as "--skip " and "" */
    const char *drop_rows; /* what leaves out rows with missing values, such as "--drop-rows"; NULL: nothing does */
};

/* Initialises the columns from the first row of a table, and their names if that row is a header. No column is an input yet: the caller
 * sets `is_input`. */
void csv_columns_init(struct csv_columns *columns, const struct csv *row, bool header);
/* Initialises the columns as csv_columns_init does, and finds the label's column and the inputs. ERROR_INVALID: the table has only one
 * column, a chosen column is missing, the label's column is left out, or no input is left. */
int csv_columns_start(struct csv_columns *columns, const struct csv *row, bool header, const struct csv_choice *choice,
                      struct error *error);
/* Returns whether a value of an input, or the label, is missing in a row that has as many fields as the first one, and counts it (dropped):
 * for callers that do not add such rows. */
bool csv_columns_drop(struct csv_columns *columns, const struct csv *row);
/* Looks at the inputs of a row, which has as many fields as the first one. Keeps at most CSV_LABELS_MAX words of a column. */
void csv_columns_add(struct csv_columns *columns, const struct csv *row);
/* Decides the kinds after the last row. ERROR_INVALID: values are missing, a column has numbers and words, numbers with a decimal comma,
 * too many different words, or a word that is not UTF-8. The message names all such columns. */
int csv_columns_finish(struct csv_columns *columns, const struct csv_choice *choice, struct error *error);
/* Checks only that no value is missing, for rows that are turned into numbers by the columns of another table. */
int csv_columns_check_missing(const struct csv_columns *columns, struct error *error);
/* Returns whether a column looks like an identifier: another word in each of at least three rows, none missing, unless they are numbers
 * with a comma. */
bool csv_column_identifies(const struct csv_column *column, int64_t rows);
/* Returns whether a field is a number with a decimal comma, such as "3,5". */
bool csv_has_comma_number(const struct csv_field *field);
/* Returns whether all values of a column are dates or times, which become words. */
bool csv_column_has_dates(const struct csv_column *column, int64_t rows);
void csv_columns_release(struct csv_columns *columns);

/* Return how many numbers one column becomes, and how many all inputs become together. */
unsigned csv_column_width(const struct csv_column *column);
int64_t csv_columns_width(const struct csv_columns *columns);
int64_t csv_columns_inputs(const struct csv_columns *columns); /* how many columns are inputs */

/* How a field became numbers. */
enum csv_encoding {
    CSV_ENCODED,
    CSV_UNKNOWN_WORD, /* all numbers are 0 */
    CSV_NOT_ENCODED,  /* the column has numbers or booleans, and the field is none */
};
/* Writes csv_column_width numbers. */
enum csv_encoding csv_column_encode(const struct csv_column *column, const struct csv_field *field, double *values);

/* Returns the inputs' words as JSON, an array for each input: empty for numbers, ["false","true"] for booleans; NULL if all are numbers. */
struct json *csv_columns_words(const struct csv_columns *columns);
/* Makes columns from the JSON that csv_columns_words has returned, or `count` columns of numbers if `words` is NULL. All columns are
 * inputs. ERROR_INVALID if the JSON is malformed. */
int csv_columns_known(struct csv_columns *columns, const struct json *words, int64_t count, struct error *error);

#endif
