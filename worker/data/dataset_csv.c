/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/crc32c.h"
#include "common/data/csv.h"
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
    unsigned columns; /* with the label; 0: no row was seen yet */
    unsigned label;   /* the label's column */
    int64_t rows;
    struct csv_labels labels;
    struct json *names; /* of the columns without the label; NULL: no line has them */
    char *label_name;   /* of the label's column; NULL: no line has it, or JSON cannot hold it */
    /* Of new examples, which may have no label: */
    const struct json *wanted; /* the names of the model's inputs; NULL: not known */
    const char *wanted_label;  /* the name of the label's column; NULL: not known */
    unsigned *places;          /* of each of the model's inputs among the columns; NULL: the examples are not new */
    int64_t inputs;
    bool may_have_label, has_label; /* in the column `label` */
};

static void table_release(struct table *table)
{
    csv_labels_release(&table->labels);
    json_free(table->names);
    free(table->label_name);
    free(table->places);
    file_set_release(&table->set);
}

static int find_label(const struct csv *row, bool header, const char *wanted, unsigned *ret_label, struct error *error)
{
    *ret_label = row->count - 1;
    if (!wanted || csv_find_column(row, header, wanted, ret_label))
        return 0;
    return error_set(error, ERROR_INVALID, "data.labelColumn: there is no column %s among the %u of the table%s",
                     wanted, row->count, header ? "" : ", which has no line with names");
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
    unsigned input = 0, next = 0;
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
    table->has_label =
        table->may_have_label && table->wanted_label && find_unused(row, used, table->wanted_label, 0, &table->label);
    for (unsigned i = 0; i < row->count; i++)
        if (!used[i] && !(table->has_label && i == table->label))
            return error_set(error, ERROR_INVALID, "the model has not learned from the column %s; leave it out",
                             show(&row->fields[i], TEXT_SHOWN, shown));
    return 0;
}

/* Columns without known names have the order of the training table. There may be one more, the label's, at its place in that table. */
static int place_inputs(struct table *table, const struct csv *row, bool header, const char *label, struct error *error)
{
    if (header && table->wanted)
        return place_by_names(table, row, error);
    table->has_label = table->may_have_label && row->count == table->inputs + 1 &&
                       find_label(row, header, label, &table->label, NULL) == 0;
    if (!table->has_label && row->count != table->inputs)
        return error_set(error, ERROR_INVALID,
                         "line %lld has %u columns, but the model takes %lld; give those that it has learned from, "
                         "without the label",
                         (long long)row->line, row->count, (long long)table->inputs);
    unsigned input = 0;
    for (unsigned i = 0; i < row->count; i++)
        if (!table->has_label || i != table->label)
            table->places[input++] = i;
    return 0;
}

static void take_names(struct table *table, const struct csv *row)
{
    table->label_name = training_facts_name(row->fields[table->label].text, row->fields[table->label].length);
    for (unsigned i = 0; i < row->count; i++)
        if (i != table->label && !training_facts_append(&table->names, row->fields[i].text, row->fields[i].length))
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
        if (i == table->label)
            continue;
        if (!csv_field_is(field, name))
            return error_set(error, ERROR_INVALID,
                             "line %lld, column %u is %s, but the training table has %s there; give the files the "
                             "same columns in the same order",
                             (long long)row->line, i + 1, show(field, TEXT_SHOWN, shown),
                             show(&(struct csv_field){name, strlen(name)}, TEXT_SHOWN, wanted));
        item = json_next(item);
    }
    return 0;
}

/* Finds where values and label are, by the first row of the table. */
static int look_at_first(struct table *table, const struct csv *row, bool header, const char *label,
                         struct error *error)
{
    table->columns = row->count;
    if (table->places)
        return place_inputs(table, row, header, label, error);
    if (row->count < 2)
        return error_set(error, ERROR_INVALID, "line %lld has one column; a table has values and a label",
                         (long long)row->line);
    if (find_label(row, header, label, &table->label, error) < 0)
        return -1;
    if (header && table->names)
        return check_names(table, row, error);
    if (header)
        take_names(table, row);
    return 0;
}

/* Checks a row's number of columns; the first one of the table decides. */
static int check_row(struct table *table, const struct csv *row, bool header, const char *label, struct error *error)
{
    if (table->columns == 0)
        return look_at_first(table, row, header, label, error);
    if (row->count != table->columns)
        return error_set(error, ERROR_INVALID, "line %lld has %u columns, those before it have %u",
                         (long long)row->line, row->count, table->columns);
    return header && !table->places ? check_names(table, row, error) : 0;
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

/* Names that are numbers look like values: here they are names if the training table has each of them as one. */
static bool is_header(const struct table *table, const struct csv *row)
{
    if (csv_is_header(row))
        return true;
    for (unsigned i = 0; i < row->count; i++)
        if (!names_an_input(table->wanted, &row->fields[i]) &&
            !(table->wanted_label && csv_field_is(&row->fields[i], table->wanted_label)))
            return false;
    return true;
}

/* Gives each row with values to the taker. */
static int walk(struct table *table, const char *label, const struct row_taker *taker, struct error *error)
{
    for (unsigned i = 0; i < table->set.count; i++) {
        const struct file_set_entry *entry = &table->set.entries[i];
        struct csv csv;
        int result;
        csv_init_file(&csv, entry->path, entry->file.bytes, entry->file.length);
        for (bool first = true; (result = csv_next(&csv, error)) > 0; first = false) {
            bool header = first && is_header(table, &csv);
            if (check_row(table, &csv, header, label, error) < 0 ||
                (!header && taker->take(taker->context, &csv, error) < 0)) {
                result = -1;
                break;
            }
        }
        csv_release(&csv);
        if (result < 0)
            return table->places ? -1
                                 : error_wrap(error, "%s", entry->path); /* new examples: the caller names the file */
    }
    return 0;
}

static int take_label(void *context, const struct csv *row, struct error *error)
{
    struct table *table = context;
    const struct csv_field *label = &row->fields[table->label];
    table->rows++;
    if (csv_is_missing(label))
        return error_set(error, ERROR_INVALID, "line %lld, column %u: the label is missing; leave the line out",
                         (long long)row->line, table->label + 1);
    if (csv_labels_add(&table->labels, label, error) < 0)
        return error_wrap(error, "line %lld, column %u", (long long)row->line, table->label + 1);
    return 0;
}

static int take_count(void *context, const struct csv *row, struct error *error)
{
    (void)row;
    (void)error;
    ((struct table *)context)->rows++;
    return 0;
}

/* Opens the files, counts their rows, and collects their labels if those are classes. */
static int open_table(const struct dataset_source *source, const struct data_files *files, struct table *ret_table,
                      struct error *error)
{
    bool classes = source->format->target_type == ELEMENT_INT32;
    const struct row_taker taker = {classes ? take_label : take_count, ret_table};
    if (file_set_open(source, files->files, &ret_table->set, error) < 0 ||
        walk(ret_table, source->spec->label_column, &taker, error) < 0)
        return -1;
    csv_labels_sort(&ret_table->labels);
    return 0;
}

/* ---------------------------------------------------------------- values */

struct filling {
    struct csv_dataset *dataset;
    const struct table *table;
    const struct csv_labels *labels;
    int64_t row; /* the number of rows that were taken */
};

static int take_number(const struct csv *row, unsigned column, float *ret_value, struct error *error)
{
    const struct csv_field *field = &row->fields[column];
    char shown[TEXT_SHOWN + 1];
    double number;
    if (csv_number(field, &number)) {
        *ret_value = (float)number;
        if (isfinite(*ret_value))
            return 0;
        return error_set(error, ERROR_INVALID,
                         "line %lld, column %u: %g is too large for a float32, which reaches 3.4e38",
                         (long long)row->line, column + 1, number);
    }
    if (csv_is_missing(field))
        return error_set(error, ERROR_INVALID,
                         "line %lld, column %u: the value is missing; fill it, or leave the line out",
                         (long long)row->line, column + 1);
    return error_set(error, ERROR_INVALID, "line %lld, column %u: \"%s\" is not a number", (long long)row->line,
                     column + 1, show(field, TEXT_SHOWN, shown));
}

static int take_target(const struct filling *filling, const struct csv *row, struct error *error)
{
    struct csv_dataset *dataset = filling->dataset;
    unsigned column = filling->table->label;
    const struct csv_field *field = &row->fields[column];
    char shown[TEXT_SHOWN + 1];
    if (filling->table->places && csv_is_missing(field))
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

static int take_inputs(const struct table *table, const struct csv *row, float *values, struct error *error)
{
    for (int64_t i = 0; i < table->inputs; i++)
        if (take_number(row, table->places[i], &values[i], error) < 0)
            return -1;
    return 0;
}

static int take_row(void *context, const struct csv *row, struct error *error)
{
    struct filling *filling = context;
    float *values = filling->dataset->values + filling->row * filling->dataset->columns;
    if (filling->row == filling->table->rows) /* a file has grown */
        return error_set(error, ERROR_INVALID, "the file has changed while it was read");
    filling->row++;
    if (filling->table->places) {
        int result = take_inputs(filling->table, row, values, error);
        return result == 0 && filling->table->has_label ? take_target(filling, row, error) : result;
    }
    for (unsigned i = 0; i < row->count; i++)
        if (i != filling->table->label && take_number(row, i, values++, error) < 0)
            return -1;
    return take_target(filling, row, error);
}

static int check_size(const struct table *table, int64_t columns, struct error *error)
{
    if (table->rows == 0)
        return error_set(error, ERROR_INVALID, "the files hold no examples");
    if (table->rows > VALUES_MAX / columns)
        return error_set(error, ERROR_TOO_LARGE,
                         "the table has %lld rows of %lld values, %lld values are the most; save it as NumPy arrays "
                         "(format NPY), which are not read into memory",
                         (long long)table->rows, (long long)columns, (long long)VALUES_MAX);
    return 0;
}

static int check_table(const struct table *table, const struct csv_labels *labels, const struct example_format *format,
                       struct error *error)
{
    long long columns = (long long)table->columns - 1;
    if (check_size(table, columns, error) < 0)
        return -1;
    if (columns != format->input_elements)
        return error_set(error, ERROR_INVALID,
                         "the table has %lld columns besides the label, the model's input has %lld values; make "
                         "model.inputShape [%lld]",
                         columns, (long long)format->input_elements, columns);
    if (format->target_type == ELEMENT_INT32 && (int64_t)labels->count > format->classes)
        return error_set(error, ERROR_INVALID,
                         "the labels have %u different values, but the model has %lld classes; make model.classes %u",
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

static int take_values(struct csv_dataset *dataset, const struct dataset_source *source, struct filling *filling,
                       struct table *table, struct error *error)
{
    const struct row_taker taker = {take_row, filling};
    dataset->values = memory_allocate((size_t)(table->rows * dataset->columns), sizeof *dataset->values);
    if (walk(table, source->spec->label_column, &taker, error) < 0)
        return -1;
    for (unsigned i = 0; i < table->set.count; i++)
        if (file_bytes_check(&table->set.entries[i].file, mapped_file_round(), error) < 0)
            return -1;
    dataset->base.count = filling->row;
    return 0;
}

static int fill(struct csv_dataset *dataset, const struct dataset_source *source, struct table *table,
                const struct csv_labels *labels, struct error *error)
{
    struct filling filling = {dataset, table, labels, 0};
    if (check_table(table, labels, source->format, error) < 0)
        return -1;
    dataset->columns = (int64_t)table->columns - 1;
    dataset->labels.bytes = memory_allocate((size_t)table->rows, sizeof *dataset->labels.classes);
    if (take_values(dataset, source, &filling, table, error) < 0)
        return -1;
    describe(dataset, table, labels, source->files->files);
    take_labels(&dataset->base, labels);
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

/* Reads new examples, which may have labels. Columns are found by their names, if these are known, else by their order. */
static int fill_new(struct csv_dataset *dataset, const struct dataset_source *source, struct error *error)
{
    SCOPED(table_release) struct table table = {.inputs = source->format->input_elements};
    const struct training_facts *known = source->known;
    const struct json *names = known ? known->columns : NULL;
    bool numbers = source->format->target_type == ELEMENT_FLOAT32 && source->format->target_elements == 1;
    const struct row_taker counter = {take_count, &table};
    struct filling filling = {dataset, &table, &table.labels, 0};
    table.may_have_label = numbers || (known && known->classes);
    table.wanted_label = known && known->label ? known->label : source->spec->label_column;
    table.wanted = (int64_t)json_count(names) == table.inputs ? names : NULL;
    table.places = memory_allocate((size_t)table.inputs, sizeof *table.places);
    dataset->columns = table.inputs;
    if (labels_of_names(known ? known->classes : NULL, &table.labels, error) < 0 ||
        file_set_open(source, source->files->files, &table.set, error) < 0 ||
        walk(&table, source->spec->label_column, &counter, error) < 0 || check_size(&table, table.inputs, error) < 0)
        return -1;
    if (table.has_label)
        dataset->labels.bytes = memory_allocate((size_t)table.rows, sizeof *dataset->labels.classes);
    dataset->base.has_targets = table.has_label;
    if (take_values(dataset, source, &filling, &table, error) < 0)
        return -1;
    describe(dataset, &table, &table.labels, source->files->files);
    return 0;
}

/* ---------------------------------------------------------------- opening */

/* Takes the classes and the names of columns that are known, else reads the training files. */
static int open_training(const struct dataset_source *source, struct table *ret_table, struct error *error)
{
    const struct training_facts *known = source->known;
    if (source->files == &source->spec->train || !known || !known->classes)
        return open_table(source, &source->spec->train, ret_table, error);
    ret_table->names = json_copy(known->columns);
    ret_table->label_name = memory_copy_string(known->label);
    return labels_of_names(known->classes, &ret_table->labels, error);
}

/* The classes are those of the training files, also for files to test with. */
static int fill_with_labels(struct csv_dataset *dataset, const struct dataset_source *source, struct error *error)
{
    SCOPED(table_release) struct table training = {.rows = 0};
    SCOPED(table_release) struct table own = {.rows = 0};
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
    return fill(dataset, source, same ? &training : &own, &training.labels, error);
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
