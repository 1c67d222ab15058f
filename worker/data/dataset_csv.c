/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/crc32c.h"
#include "common/data/csv_columns.h"
#include "common/data/file_name.h"
#include "common/memory.h"
#include "common/scope.h"
#include "common/terminal_text.h"
#include "worker/data/file_set.h"

/* As float32 they take 1 GiB. */
#define VALUES_MAX ((int64_t)1 << 28)
#define TEXT_SHOWN 40

/* The table as a whole is in memory; the files are closed once it is read. */
struct csv_dataset {
    struct dataset base;
    int64_t columns; /* of values, without the label */
    float *values;
    union {
        int32_t *classes;
        float *numbers;
        void *bytes;
    } labels;
};

static void csv_free(struct dataset *base)
{
    struct csv_dataset *dataset = (struct csv_dataset *)base;
    free(dataset->values);
    free(dataset->labels.bytes);
}

static const char *show(const struct csv_field *field, size_t most, char shown[TEXT_SHOWN + 1])
{
    return terminal_text_shorten(field->text, field->length, most, shown);
}

/* ---------------------------------------------------------------- the table */

/* The files of a table, and what was found in them. */
struct table {
    struct file_set set;
    struct csv_choice choice;   /* the job's, of the columns */
    struct csv_columns columns; /* `count` 0: no row was seen yet */
    bool drops;                 /* leaves out rows with missing values */
    int64_t dropped;            /* how many rows it has left out */
    unsigned *places;           /* of each input among the columns; NULL: no row was seen yet */
    int64_t inputs;
    struct csv_labels labels;
    struct json *names; /* of the inputs; NULL: no line has them */
    char *label_name;   /* of the label's column; NULL: no line has it, or JSON cannot hold it */
    /* Of new examples, which may have no label: */
    bool is_new;
    const struct json *wanted;       /* the names of the model's inputs; NULL: not known */
    const char *wanted_label;        /* the name of the label's column; NULL: not known */
    const struct csv_columns *known; /* how the model's inputs become numbers */
    bool may_have_label, has_label;  /* in the column columns.label */
};

static void table_release(struct table *table)
{
    csv_columns_release(&table->columns);
    csv_labels_release(&table->labels);
    json_free(table->names);
    free(table->label_name);
    free(table->places);
    file_set_release(&table->set);
}

static struct csv_choice choice_of(const struct data_spec *spec)
{
    return (struct csv_choice){.label = spec->label_column,
                               .skipped = spec->skipped_columns,
                               .skipped_count = spec->skipped_column_count,
                               .label_title = "data.labelColumn",
                               .skip_title = "data.skipColumns",
                               .skip_before = "data.skipColumns: [",
                               .skip_after = "]",
                               .drop_rows = "data.missing: DropRow"};
}

/* Takes the inputs in the order of the columns. */
static void place_in_order(struct table *table)
{
    table->inputs = csv_columns_inputs(&table->columns);
    table->places = memory_resize(table->places, (size_t)table->inputs, sizeof *table->places);
    for (unsigned i = 0, input = 0; i < table->columns.count; i++)
        if (table->columns.list[i].is_input)
            table->places[input++] = i;
}

/* Finds a column of that name which is not used yet, from `first` on and then from the beginning. */
static bool find_unused(const struct csv *row, const bool *used, const char *name, unsigned first, unsigned *ret_place)
{
    for (unsigned i = 0; i < row->count; i++) {
        unsigned place = (first + i) % row->count;
        if (!used[place] && csv_field_is(&row->fields[place], name)) {
            *ret_place = place;
            return true;
        }
    }
    return false;
}

/* Finds each of the model's inputs by its name. */
static int place_by_names(struct table *table, const struct csv *row, struct error *error)
{
    char shown[TEXT_SHOWN + 1];
    unsigned input = 0, next = 0, skipped;
    SCOPED_FREE bool *used = memory_allocate(row->count, sizeof *used);
    for (const struct json *item = json_first(table->wanted); item; item = json_next(item), input++) {
        const char *name = json_string(item, "");
        unsigned *place = &table->places[input];
        if (!find_unused(row, used, name, next, place))
            return error_set(error, ERROR_INVALID, "there is no column %s, which the model has learned from",
                             show(&(struct csv_field){name, strlen(name)}, TEXT_SHOWN, shown));
        used[*place] = true;
        next = *place + 1;
    }
    unsigned *label = &table->columns.label;
    table->has_label =
        table->may_have_label && table->wanted_label && find_unused(row, used, table->wanted_label, 0, label);
    for (unsigned i = 0; i < table->choice.skipped_count; i++)
        if (csv_find_column(row, true, table->choice.skipped[i], &skipped))
            used[skipped] = true;
    for (unsigned i = 0; i < row->count; i++)
        if (!used[i] && !(table->has_label && i == *label))
            return error_set(error, ERROR_INVALID, "the model has not learned from the column %s; leave it out",
                             show(&row->fields[i], TEXT_SHOWN, shown));
    return 0;
}

/* Columns without known names have the order of the training table: either its inputs alone, or all of its columns. */
static int place_by_order(struct table *table, const struct csv *row, struct error *error)
{
    if (row->count == table->inputs) {
        for (unsigned i = 0; i < row->count; i++)
            table->places[i] = i;
        return 0;
    }
    struct csv_columns whole = {.list = NULL};
    table->has_label = table->may_have_label && row->count == table->inputs + 1 + table->choice.skipped_count &&
                       csv_columns_start(&whole, row, false, &table->choice, NULL) == 0;
    table->columns.label = whole.label;
    for (unsigned i = 0, input = 0; i < whole.count && table->has_label; i++)
        if (whole.list[i].is_input)
            table->places[input++] = i;
    csv_columns_release(&whole);
    if (table->has_label)
        return 0;
    return error_set(error, ERROR_INVALID,
                     "line %lld has %u columns, but the model takes %lld; give those that it has learned from, "
                     "without the label",
                     (long long)row->line, row->count, (long long)table->inputs);
}

static int place_inputs(struct table *table, const struct csv *row, bool header, struct error *error)
{
    csv_columns_init(&table->columns, row, header);
    if ((header && table->wanted ? place_by_names : place_by_order)(table, row, error) < 0)
        return -1;
    for (int64_t i = 0; i < table->inputs; i++)
        table->columns.list[table->places[i]].is_input = true;
    return 0;
}

static void take_names(struct table *table, const struct csv *row)
{
    const struct csv_field *label = &row->fields[table->columns.label];
    table->label_name = training_facts_name(label->text, label->length);
    for (unsigned i = 0; i < row->count; i++)
        if (table->columns.list[i].is_input &&
            !training_facts_append(&table->names, row->fields[i].text, row->fields[i].length))
            return;
}

/* A file whose columns have other names, or another order, would be taken for what it is not. */
static int check_names(const struct table *table, const struct csv *row, struct error *error)
{
    const struct json *item = json_first(table->names);
    for (unsigned i = 0; i < row->count && item; i++) {
        const struct csv_field *field = &row->fields[i];
        const char *name = json_string(item, "");
        char shown[TEXT_SHOWN + 1], wanted[TEXT_SHOWN + 1];
        if (!table->columns.list[i].is_input)
            continue;
        if (!csv_field_is(field, name))
            return error_set(
                error, ERROR_INVALID,
                "line %lld calls column %u %s, but the training table calls it %s; give the files the same "
                "columns in the same order",
                (long long)row->line, i + 1, show(field, TEXT_SHOWN, shown),
                show(&(struct csv_field){name, strlen(name)}, TEXT_SHOWN, wanted));
        item = json_next(item);
    }
    return 0;
}

/* Finds where values and label are, by the first row of the table. */
static int look_at_first(struct table *table, const struct csv *row, bool header, struct error *error)
{
    if (table->is_new)
        return place_inputs(table, row, header, error);
    if (csv_columns_start(&table->columns, row, header, &table->choice, error) < 0)
        return -1;
    place_in_order(table);
    if (header && table->names)
        return check_names(table, row, error);
    if (header)
        take_names(table, row);
    return 0;
}

/* Checks a row's number of columns; the first one of the table decides. */
static int check_row(struct table *table, const struct csv *row, bool header, struct error *error)
{
    if (table->columns.count == 0)
        return look_at_first(table, row, header, error);
    if (row->count != table->columns.count)
        return error_set(error, ERROR_INVALID, "line %lld has %u columns, those before it have %u",
                         (long long)row->line, row->count, table->columns.count);
    return header && !table->is_new ? check_names(table, row, error) : 0;
}

struct row_taker {
    int (*take)(void *context, const struct csv *row, struct error *error);
    void *context;
};

static bool names_an_input(const struct json *names, const struct csv_field *field)
{
    for (const struct json *item = json_first(names); item; item = json_next(item))
        if (csv_field_is(field, json_string(item, "")))
            return true;
    return false;
}

/* Whether a row of a new table has a word of the training table where it would have it without a line of names. */
static bool has_known_word(const struct table *table, const struct csv *row)
{
    double numbers[CSV_WORDS_MAX];
    SCOPED_FREE unsigned *places = memory_allocate((size_t)table->inputs, sizeof *places);
    struct table trial = *table;
    trial.places = places;
    if (!table->is_new || place_by_order(&trial, row, NULL) < 0)
        return false;
    for (unsigned i = 0; i < table->known->count; i++) {
        const struct csv_column *column = &table->known->list[i];
        if (column->kind != CSV_NUMBERS && csv_column_encode(column, &row->fields[places[i]], numbers) == CSV_ENCODED)
            return true;
    }
    return false;
}

/* Names that are numbers look like values: here they are names if the training table has each of them as one. */
static bool is_header(const struct table *table, const struct csv *row)
{
    if (csv_is_header(row))
        return !has_known_word(table, row);
    for (unsigned i = 0; i < row->count; i++)
        if (!names_an_input(table->wanted, &row->fields[i]) &&
            !(table->wanted_label && csv_field_is(&row->fields[i], table->wanted_label)))
            return false;
    return true;
}

/* Gives a row below the names to the taker, unless it is to be left out. */
static int give_row(struct table *table, const struct csv *row, const struct row_taker *taker, struct error *error)
{
    if (!table->drops || !csv_columns_drop(&table->columns, row))
        return taker->take(taker->context, row, error);
    table->dropped++;
    return 0;
}

/* Gives each row with values to the taker. */
static int walk(struct table *table, const struct row_taker *taker, struct error *error)
{
    table->dropped = 0;
    for (unsigned i = 0; i < table->set.count; i++) {
        const struct file_set_entry *entry = &table->set.entries[i];
        struct csv csv;
        int result;
        csv_init_file(&csv, entry->path, entry->file.bytes, entry->file.length);
        for (bool first = true; (result = csv_next(&csv, error)) > 0; first = false) {
            bool header = first && is_header(table, &csv);
            if (check_row(table, &csv, header, error) < 0 || (!header && give_row(table, &csv, taker, error) < 0)) {
                result = -1;
                break;
            }
        }
        csv_release(&csv);
        if (result < 0)
            return table->is_new ? -1 /* the caller names the file */ : error_wrap(error, "%s", entry->path);
    }
    return 0;
}

static int take_label(void *context, const struct csv *row, struct error *error)
{
    struct table *table = context;
    unsigned column = table->columns.label;
    const struct csv_field *label = &row->fields[column];
    csv_columns_add(&table->columns, row);
    if (csv_is_missing(label))
        return error_set(error, ERROR_INVALID,
                         "line %lld, column %u: the label is missing; leave the line out, as "
                         "data.missing: DropRow does",
                         (long long)row->line, column + 1);
    if (csv_labels_add(&table->labels, label, error) < 0)
        return error_wrap(error, "line %lld, column %u", (long long)row->line, column + 1);
    return 0;
}

static int take_inputs_alone(void *context, const struct csv *row, struct error *error)
{
    (void)error;
    csv_columns_add(&((struct table *)context)->columns, row);
    return 0;
}

/* Opens the files, looks at all rows, and collects their labels if those are classes. The training files decide what each column holds. */
static int open_table(const struct dataset_source *source, const struct data_files *files, struct table *ret_table,
                      struct error *error)
{
    bool classes = source->format->target_type == ELEMENT_INT32, training = files == &source->spec->train;
    const struct row_taker taker = {classes ? take_label : take_inputs_alone, ret_table};
    struct csv_columns *columns = &ret_table->columns;
    ret_table->choice = choice_of(source->spec);
    ret_table->drops = source->spec->missing == DATA_MISSING_DROP_ROW;
    if (file_set_open(source, files->files, &ret_table->set, error) < 0 || walk(ret_table, &taker, error) < 0)
        return -1;
    csv_labels_sort(&ret_table->labels);
    int result =
        training ? csv_columns_finish(columns, &ret_table->choice, error) : csv_columns_check_missing(columns, error);
    const struct file_set *set = &ret_table->set;
    return result < 0 ? error_wrap(error, "%s", set->count == 1 ? set->entries[0].path : files->files) : 0;
}

/* ---------------------------------------------------------------- values */

struct filling {
    struct csv_dataset *dataset;
    const struct table *table;
    const struct csv_columns *columns; /* the training table's, whose words the inputs become numbers by */
    const struct csv_labels *labels;
    int64_t row;     /* the number of rows that were taken */
    int64_t unknown; /* words that the training table does not have */
};

static int take_value(const struct csv *row, unsigned column, double number, float *ret_value, struct error *error)
{
    *ret_value = (float)number;
    if (isfinite(*ret_value))
        return 0;
    return error_set(error, ERROR_INVALID, "line %lld, column %u: %g is too large for a float32, which reaches 3.4e38",
                     (long long)row->line, column + 1, number);
}

static int refuse_field(const struct csv *row, unsigned column, const char *reason, struct error *error)
{
    const struct csv_field *field = &row->fields[column];
    char shown[TEXT_SHOWN + 1];
    if (csv_is_missing(field))
        return error_set(error, ERROR_INVALID,
                         "line %lld, column %u: the value is missing; fill it, or leave the line out",
                         (long long)row->line, column + 1);
    return error_set(error, ERROR_INVALID, "line %lld, column %u: \"%s\" %s", (long long)row->line, column + 1,
                     show(field, TEXT_SHOWN, shown), reason);
}

static int take_number(const struct csv *row, unsigned column, float *ret_value, struct error *error)
{
    double number;
    return csv_number(&row->fields[column], &number) ? take_value(row, column, number, ret_value, error)
                                                     : refuse_field(row, column, "is not a number", error);
}

/* Notes the first word that the training table does not have, and how many there are. */
static void note_unknown(struct filling *filling, const struct csv *row, unsigned column)
{
    char shown[TEXT_SHOWN + 1], *notice = filling->dataset->base.notice;
    filling->unknown++;
    if (filling->unknown == 1)
        snprintf(
            notice, sizeof filling->dataset->base.notice,
            "line %lld, column %u: the training table does not have the word \"%s\" there, which counts as none of its "
            "words",
            (long long)row->line, column + 1, show(&row->fields[column], TEXT_SHOWN, shown));
}

/* Gives the numbers that a field becomes. */
static int take_input(struct filling *filling, const struct csv *row, unsigned place, const struct csv_column *column,
                      float *ret_values, struct error *error)
{
    double numbers[CSV_WORDS_MAX];
    unsigned width = csv_column_width(column);
    switch (csv_column_encode(column, &row->fields[place], numbers)) {
    case CSV_NOT_ENCODED:
        return refuse_field(row, place, column->kind == CSV_BOOLEANS ? "is neither true nor false" : "is not a number",
                            error);
    case CSV_UNKNOWN_WORD:
        note_unknown(filling, row, place);
        break;
    case CSV_ENCODED:
        break;
    }
    for (unsigned i = 0; i < width; i++)
        if (take_value(row, place, numbers[i], &ret_values[i], error) < 0)
            return -1;
    return 0;
}

static int take_target(const struct filling *filling, const struct csv *row, struct error *error)
{
    struct csv_dataset *dataset = filling->dataset;
    unsigned column = filling->table->columns.label;
    const struct csv_field *field = &row->fields[column];
    char shown[TEXT_SHOWN + 1];
    if (filling->table->is_new && csv_is_missing(field))
        return error_set(error, ERROR_INVALID,
                         "line %lld, column %u: the label is missing; fill it, or leave the column of the labels out",
                         (long long)row->line, column + 1);
    if (dataset->base.format.target_type == ELEMENT_FLOAT32)
        return take_number(row, column, &dataset->labels.numbers[filling->row - 1], error);
    int class = csv_labels_find(filling->labels, field);
    dataset->labels.classes[filling->row - 1] = class;
    if (class >= 0)
        return 0;
    return error_set(error, ERROR_INVALID, "line %lld, column %u: no training example has the label \"%s\"",
                     (long long)row->line, column + 1, show(field, TEXT_SHOWN, shown));
}

static int take_row(void *context, const struct csv *row, struct error *error)
{
    struct filling *filling = context;
    const struct table *table = filling->table;
    const struct csv_columns *columns = filling->columns;
    float *values = filling->dataset->values + filling->row * filling->dataset->columns;
    if (filling->row == table->columns.rows) /* a file has grown */
        return error_set(error, ERROR_INVALID, "the file has changed while it was read");
    filling->row++;
    for (unsigned i = 0, input = 0; i < columns->count; i++) {
        const struct csv_column *column = &columns->list[i];
        if (!column->is_input)
            continue;
        if (take_input(filling, row, table->places[input++], column, values, error) < 0)
            return -1;
        values += csv_column_width(column);
    }
    return table->is_new && !table->has_label ? 0 : take_target(filling, row, error);
}

static int check_size(const struct table *table, int64_t width, struct error *error)
{
    if (table->columns.rows == 0)
        return error_set(error, ERROR_INVALID,
                         table->dropped > 0 ? "values are missing in all rows, so that data.missing: DropRow leaves "
                                              "none; leave out columns with data.skipColumns"
                                            : "the files hold no examples");
    if (table->columns.rows > VALUES_MAX / width)
        return error_set(error, ERROR_TOO_LARGE,
                         "the table has %lld rows of %lld values, %lld values are the most; save it as NumPy arrays "
                         "(format NPY), which are not read into memory",
                         (long long)table->columns.rows, (long long)width, (long long)VALUES_MAX);
    return 0;
}

/* `columns`: those of the training table. */
static int check_table(const struct table *table, const struct csv_columns *columns, const struct csv_labels *labels,
                       const struct example_format *format, struct error *error)
{
    long long width = (long long)csv_columns_width(columns), inputs = (long long)csv_columns_inputs(columns);
    if (check_size(table, width, error) < 0)
        return -1;
    if (table->inputs != inputs)
        return error_set(error, ERROR_INVALID,
                         "the table has %lld columns besides the label, but the training table has %lld",
                         (long long)table->inputs, inputs);
    if (width != format->input_elements)
        return error_set(error, ERROR_INVALID,
                         "the table has %lld columns besides the label%s, the model's input has %lld values; make "
                         "model.inputShape [%lld]",
                         inputs, width == inputs ? "" : ", in which each different word takes a value of its own",
                         (long long)format->input_elements, width);
    if (format->target_type == ELEMENT_INT32 && (int64_t)labels->count > format->classes)
        return error_set(
            error, ERROR_INVALID,
            "the labels have %u different values, but the model has %lld classes; make model.classes %u, or "
            "the units of the last one of model.layers",
            labels->count, (long long)format->classes, labels->count);
    return 0;
}

static void describe(struct csv_dataset *dataset, const struct table *table, const struct csv_labels *labels,
                     const char *pattern)
{
    char files[120], shown[TEXT_SHOWN + 1];
    char *text = dataset->base.description;
    size_t size = sizeof dataset->base.description;
    file_set_describe(&table->set, pattern, files, sizeof files);
    size_t length = (size_t)snprintf(text, size, "rows of %lld values from %s", (long long)dataset->columns, files);
    if (table->dropped > 0 && length < size)
        length += (size_t)snprintf(text + length, size - length, ", without %lld rows with missing values",
                                   (long long)table->dropped);
    for (unsigned i = 0; i < labels->count && length + TEXT_SHOWN < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%s", i == 0 ? ", classes " : ", ",
                                   show(&labels->list[i], TEXT_SHOWN / 2, shown));
}

static void take_labels(struct dataset *dataset, const struct csv_labels *labels)
{
    struct json **names = &dataset->facts.classes;
    for (unsigned i = 0; i < labels->count; i++)
        if (!training_facts_append(names, labels->list[i].text, labels->list[i].length))
            break;

    dataset->has_labels = labels->count > 0;
    for (unsigned i = 0; i < labels->count; i++) {
        dataset->labels_digest = crc32c(dataset->labels_digest, labels->list[i].text, labels->list[i].length);
        dataset->labels_digest = crc32c(dataset->labels_digest, "\n", 1);
    }
}

static int take_values(struct csv_dataset *dataset, struct filling *filling, struct table *table, struct error *error)
{
    const struct row_taker taker = {take_row, filling};
    dataset->columns = csv_columns_width(filling->columns);
    size_t cells = (size_t)(table->columns.rows * dataset->columns);
    dataset->values = calloc(cells ? cells : 1, sizeof *dataset->values);
    if (!dataset->values)
        return error_set(error, ERROR_NO_SPACE,
                         "the table takes %zu MiB in memory, more than this process may have; give it a larger memory "
                         "limit, or leave columns out with data.skipColumns",
                         (cells * sizeof *dataset->values >> 20) + 1);
    if (walk(table, &taker, error) < 0)
        return -1;
    for (unsigned i = 0; i < table->set.count; i++)
        if (file_bytes_check(&table->set.entries[i].file, mapped_file_round(), error) < 0)
            return -1;
    dataset->base.count = filling->row;
    dataset->base.memory = filling->row * (dataset->columns * (int64_t)sizeof *dataset->values +
                                           (dataset->labels.bytes ? (int64_t)sizeof *dataset->labels.classes : 0));
    if (filling->unknown > 1) {
        size_t length = strlen(dataset->base.notice);
        snprintf(dataset->base.notice + length, sizeof dataset->base.notice - length, "; %lld fields have such words",
                 (long long)filling->unknown);
    }
    return 0;
}

/* Keeps the words of the training table, by which new rows become numbers. */
static int keep_words(struct csv_dataset *dataset, const struct csv_columns *columns, struct error *error)
{
    SCOPED_BUFFER text = BUFFER_INIT(TRAINING_FACTS_LIST_MAX);
    dataset->base.facts.words = csv_columns_words(columns);
    if (!dataset->base.facts.words || json_print(dataset->base.facts.words, &text, NULL) == 0)
        return 0;
    return error_set(
        error, ERROR_TOO_LARGE,
        "the different words of all columns take more than %zu bytes; leave columns out with data.skipColumns",
        TRAINING_FACTS_LIST_MAX);
}

static int fill(struct csv_dataset *dataset, const struct dataset_source *source, struct table *table,
                const struct table *training, struct error *error)
{
    struct filling filling = {dataset, table, &training->columns, &training->labels, 0, 0};
    if (check_table(table, &training->columns, &training->labels, source->format, error) < 0 ||
        keep_words(dataset, &training->columns, error) < 0)
        return -1;
    dataset->labels.bytes = memory_allocate((size_t)table->columns.rows, sizeof *dataset->labels.classes);
    if (take_values(dataset, &filling, table, error) < 0)
        return -1;
    describe(dataset, table, &training->labels, source->files->files);
    take_labels(&dataset->base, &training->labels);
    return 0;
}

static int labels_of_names(const struct json *names, struct csv_labels *labels, struct error *error)
{
    for (const struct json *name = json_first(names); name; name = json_next(name)) {
        const char *text = json_string(name, "");
        if (csv_labels_add(labels, &(struct csv_field){text, strlen(text)}, error) < 0)
            return -1;
    }
    csv_labels_sort(labels);
    return 0;
}

/* Finds out how the training table's columns become numbers, by the words that are kept with the weights. */
static int columns_of(const struct training_facts *known, const struct example_format *format,
                      struct csv_columns *ret_columns, struct error *error)
{
    if (csv_columns_known(ret_columns, known ? known->words : NULL, format->input_elements, error) < 0)
        return -1;
    if (csv_columns_width(ret_columns) != format->input_elements)
        return error_set(error, ERROR_INVALID, "the words that are kept with the weights do not fit the model's input");
    return 0;
}

static bool is_table(const char *name)
{
    bool ends_so = json_lines_named(name) || file_name_ends(name, ".csv") || file_name_ends(name, ".tsv");
    return ends_so && name[0] != '.';
}

/* Returns the path of the only table in a folder, or the path itself if it is a file; free it with free(). NULL: there is none, or more. */
static char *table_at(const char *path, struct error *error)
{
    DIR *folder = opendir(path);
    char *found = NULL;
    unsigned tables = 0;
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (is_table(entry->d_name) && tables++ == 0)
            found = memory_format("%s/%s", path, entry->d_name);
    if (!folder)
        return memory_copy_string(path);
    closedir(folder);
    if (tables == 1)
        return found;
    free(found);
    error_set(error, ERROR_INVALID, "the folder holds %u tables (*.csv, *.tsv, *.jsonl, *.ndjson); name one of them",
              tables);
    return NULL;
}

static int read_new(struct csv_dataset *dataset, const struct dataset_source *source, struct table *table,
                    const struct csv_columns *columns, struct error *error)
{
    const struct row_taker counter = {take_inputs_alone, table};
    struct filling filling = {dataset, table, columns, &table->labels, 0, 0};
    SCOPED_FREE char *path = table_at(source->files->files, error);
    if (!path || labels_of_names(source->known ? source->known->classes : NULL, &table->labels, error) < 0 ||
        file_set_open(source, path, &table->set, error) < 0 || walk(table, &counter, error) < 0 ||
        csv_columns_check_missing(&table->columns, error) < 0 ||
        check_size(table, csv_columns_width(columns), error) < 0)
        return -1;
    if (table->has_label)
        dataset->labels.bytes = memory_allocate((size_t)table->columns.rows, sizeof *dataset->labels.classes);
    dataset->base.has_targets = table->has_label;
    return take_values(dataset, &filling, table, error);
}

static void columns_scope(struct csv_columns *columns)
{
    csv_columns_release(columns);
}

/* Reads new examples, which may have labels. Columns are found by their names, if these are known, else by their order. */
static int fill_new(struct csv_dataset *dataset, const struct dataset_source *source, struct error *error)
{
    SCOPED(table_release) struct table table = {.is_new = true, .choice = choice_of(source->spec)};
    SCOPED(columns_scope) struct csv_columns columns = {.list = NULL};
    const struct training_facts *known = source->known;
    const struct json *names = known ? known->columns : NULL;
    bool numbers = source->format->target_type == ELEMENT_FLOAT32 && source->format->target_elements == 1;
    if (columns_of(known, source->format, &columns, error) < 0)
        return -1;
    table.known = &columns;
    table.inputs = columns.count;
    table.may_have_label = numbers || (known && known->classes);
    table.wanted_label = known && known->label ? known->label : source->spec->label_column;
    table.wanted = (int64_t)json_count(names) == table.inputs ? names : NULL;
    table.places = memory_allocate((size_t)table.inputs, sizeof *table.places);
    if (read_new(dataset, source, &table, &columns, error) < 0)
        return -1;
    describe(dataset, &table, &table.labels, source->files->files);
    return 0;
}

/* ---------------------------------------------------------------- opening */

/* Takes the classes, the names and the words of columns that are known, else reads the training files. */
static int open_training(const struct dataset_source *source, struct table *ret_table, struct error *error)
{
    const struct training_facts *known = source->known;
    if (source->files == &source->spec->train || !known || !known->classes)
        return open_table(source, &source->spec->train, ret_table, error);
    ret_table->names = json_copy(known->columns);
    ret_table->label_name = memory_copy_string(known->label);
    if (columns_of(known, source->format, &ret_table->columns, error) < 0)
        return -1;
    return labels_of_names(known->classes, &ret_table->labels, error);
}

/* The classes are those of the training files, also for files to test with. */
static int fill_with_labels(struct csv_dataset *dataset, const struct dataset_source *source, struct error *error)
{
    SCOPED(table_release) struct table training = {.inputs = 0};
    SCOPED(table_release) struct table own = {.inputs = 0};
    const struct example_format *format = source->format;
    bool same = source->files == &source->spec->train;
    if (format->input_type != ELEMENT_FLOAT32 || format->target_elements != 1)
        return error_set(
            error, ERROR_INVALID,
            "data.format CSV gives rows of numbers with one label each, but the model takes other examples");
    if (open_training(source, &training, error) < 0)
        return -1;
    own.names = json_copy(training.names);
    if (!same && open_table(source, source->files, &own, error) < 0)
        return -1;
    dataset->base.facts.columns = json_copy(training.names);
    dataset->base.facts.label = memory_copy_string(training.label_name);
    return fill(dataset, source, same ? &training : &own, &training, error);
}

static int csv_open(const struct dataset_source *source, struct dataset **ret_dataset, struct error *error)
{
    struct csv_dataset *dataset = memory_allocate(1, sizeof *dataset);
    dataset->base.kind = &dataset_csv;
    dataset->base.format = *source->format;
    if ((source->is_new ? fill_new : fill_with_labels)(dataset, source, error) < 0) {
        dataset_free(&dataset->base);
        return -1;
    }
    *ret_dataset = &dataset->base;
    return 0;
}

static int csv_read(const struct dataset *base, int64_t index, void *input, void *target, struct error *error)
{
    (void)error;
    const struct csv_dataset *dataset = (const struct csv_dataset *)base;
    memcpy(input, dataset->values + index * dataset->columns, (size_t)dataset->columns * sizeof *dataset->values);
    if (dataset->labels.bytes)
        memcpy(target, dataset->labels.classes + index, sizeof *dataset->labels.classes);
    else
        memset(target, 0, example_target_bytes(&base->format));
    return 0;
}

const struct dataset_kind dataset_csv = {.open = csv_open, .free = csv_free, .read = csv_read};
