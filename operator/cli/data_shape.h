/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks into the training files that data_folder.h has found, so that `cox generate` can print a job that fits them:
 * how many examples there are, what one looks like, and how many classes the labels name. Formats whose files it
 * does not look into (CIFAR10, whose examples are always the same; Tokens, TFRecord) leave `examples` 0.
 */
#ifndef COXSWAIN_CLI_DATA_SHAPE_H
#define COXSWAIN_CLI_DATA_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/data/csv_columns.h"
#include "common/json.h"
#include "operator/cli/data_folder.h"

#define DATA_SHAPE_RANK_MAX 3
/* Bytes that the model of texts (gpt-bytes) reads at a time. */
#define DATA_SHAPE_CONTEXT 256

/* Why a column of a table has the labels. */
enum label_reason {
    LABEL_NO_TABLE,
    LABEL_GIVEN, /* data_columns.label */
    LABEL_NAMED, /* it is called class, label, target, y, species, outcome or survived, and the last one is not */
    LABEL_LAST,  /* the last one that is not left out */
};

struct data_shape {
    int64_t examples; /* 0: not known, and so is the rest */
    int64_t tested;   /* examples of the files for the test; 0: there are none */
    unsigned rank;    /* of an example; 0: a text */
    int64_t sides[DATA_SHAPE_RANK_MAX];
    int64_t columns; /* of a table, without the label's: fewer than the values if some hold words; 0: it is no table */
    unsigned dates;  /* the first column of a table, from 1 on, that has dates, which become words; 0: none */
    bool pixels;     /* bytes, which the worker divides by 255 */
    bool images;     /* in a folder for each class; the worker resizes those that do not have the sizes of `sides` */
    bool resized;    /* some images do not */
    int64_t classes; /* labels are below this; 0: they are numbers, or it is a text */
    int64_t least;   /* the smallest label, where classes are integers that are taken as they are */
    bool alike;      /* all examples have the same class */
    int64_t numbers; /* of an example's label */
    unsigned
        row_numbers; /* how many of the columns that were left out number the rows; they are the last in `skipped` */
    enum label_reason label_reason;
    unsigned label, table_columns;      /* the column of a table with the labels, from 1 on, and how many it has */
    char label_name[CSV_SHOWN_MAX + 1]; /* its name, shortened; empty: the table has no names */
    bool whole;                         /* the numbers are whole and have few different values: they may be classes */
    int64_t dropped;                    /* rows of a table that were left out */
    bool one_hot; /* of each example's numbers one is 1 and the others are 0: they may be classes */
};

/* The user's choice among the columns of a table, by names or by numbers from 1 on. */
struct data_columns {
    const char *label;    /* as data.labelColumn takes it; NULL: one is chosen (enum label_reason) */
    struct json *skipped; /* array of the columns to leave out, as in data.skipColumns; data_shape_read appends to it */
    bool drop_rows;       /* leave out the rows with missing values, as data.missing: DropRow does */
};

/* Columns that look like identifiers, and then those that number the rows, are appended to `columns->skipped`. A table to test
 * with that has no labels becomes `found->unlabelled`. ERROR_INVALID, ERROR_NOT_FOUND and ERROR_CORRUPT name the file and what to
 * do about it. */
int data_shape_read(const char *folder, struct data_files_found *found, const struct data_columns *columns,
                    struct data_shape *ret_shape, struct error *error);

/* Appends "150 examples of 4 values, 3 classes". */
void data_shape_describe(const struct data_shape *shape, struct buffer *out);

/* Of a table, appends which column has the labels, and why: "label: price, the last column". */
void data_shape_describe_label(const struct data_shape *shape, struct buffer *out);

#endif
