/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/data_shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/data/csv_columns.h"
#include "common/data/file_bytes.h"
#include "common/data/idx.h"
#include "common/data/image_folder.h"
#include "common/data/json_lines.h"
#include "common/data/npy.h"
#include "common/extremes.h"
#include "common/job/enum_words.h"
#include "common/job/job_document.h"
#include "common/memory.h"
#include "common/terminal_text.h"
#include "operator/cli/row_numbers.h"

/* Labels with few different values are classes; with more, only if there are several examples of each. */
#define CLASSES_FEW 10
#define CLASSES_MOST 1000
#define CLASS_EXAMPLES 5

#define WORDS_PART 10 /* of labels that are mostly numbers, fewer than one in so many is a word */
#define TEXT_SHOWN 40
#define IMAGES_LOOKED_AT 500
/* Those are decoded up to so many pixels together, which takes a second or two. */
#define PIXELS_DECODED ((int64_t)1 << 26)
#define KEPT_SIDE_MOST 128
#define SQUARE_MOST 64
#define SIDES_TEXT_MAX 65536
#define CHANNELS_FIRST_SIDE 8 /* of images, at least */
#define EXAMPLE_VALUES_MAX ((int64_t)1 << 40)

static void file_scope(struct file_bytes *file)
{
    file_bytes_release(file);
}

static int open_file(const char *folder, const char *name, struct file_bytes *ret_file, struct error *error)
{
    SCOPED_FREE char *path = memory_format("%s/%s", folder, name);
    return file_bytes_open(path, ret_file, error);
}

/* Whether so many different labels are classes, and not amounts. */
static bool are_classes(int64_t different, int64_t examples)
{
    return different <= CLASSES_FEW || (different <= CLASSES_MOST && examples / CLASS_EXAMPLES >= different);
}

/* The presets take two classes at least. */
static int64_t classes_of(int64_t different)
{
    return different < 2 ? 2 : different;
}

/* Sets the classes of labels that are integers from `least` to `most`. */
static void set_classes(struct data_shape *shape, int64_t least, int64_t most)
{
    shape->classes = classes_of(most + 1);
    shape->least = least;
    shape->alike = least == most;
}

static int check_counts(const char *images, int64_t image_count, const char *labels, int64_t label_count,
                        struct error *error)
{
    if (image_count == 0)
        return error_set(error, ERROR_INVALID, "%s holds no examples", images);
    if (image_count != label_count)
        return error_set(error, ERROR_INVALID, "%s holds %lld examples, but %s %lld labels", images,
                         (long long)image_count, labels, (long long)label_count);
    return 0;
}

/* Sets the shape of an example from an array's. Dimensions beyond those that a model's input may have are joined. */
static int set_sides(struct data_shape *shape, const char *name, const int64_t *extents, unsigned rank,
                     struct error *error)
{
    int64_t values = 1;
    for (unsigned i = 1; i < rank; i++) {
        if (extents[i] < 1 || __builtin_mul_overflow(values, extents[i], &values) || values > EXAMPLE_VALUES_MAX)
            return error_set(error, ERROR_INVALID, "%s: dimension %u is %lld; an example has 1 to %lld values", name,
                             i + 1, (long long)extents[i], (long long)EXAMPLE_VALUES_MAX);
        if (shape->rank < DATA_SHAPE_RANK_MAX)
            shape->sides[shape->rank++] = extents[i];
        else
            shape->sides[shape->rank - 1] *= extents[i];
    }
    return 0;
}

/* ---------------------------------------------------------------- IDX */

static int parse_idx(const char *folder, const char *name, struct file_bytes *file, struct idx *ret_idx,
                     struct error *error)
{
    if (open_file(folder, name, file, error) < 0)
        return -1;
    return idx_parse(file->bytes, file->length, ret_idx, error) < 0 ? error_wrap(error, "%s", name) : 0;
}

static int read_idx(const char *folder, const char *images_name, const char *labels_name, struct data_shape *shape,
                    struct error *error)
{
    SCOPED(file_scope) struct file_bytes images_file = {.bytes = NULL};
    SCOPED(file_scope) struct file_bytes labels_file = {.bytes = NULL};
    struct idx images, labels;
    int64_t least = INT64_MAX, most = 0, extents[sizeof images.dims / sizeof *images.dims];
    if (parse_idx(folder, images_name, &images_file, &images, error) < 0 ||
        parse_idx(folder, labels_name, &labels_file, &labels, error) < 0 ||
        check_counts(images_name, images.dims[0], labels_name, (int64_t)labels.element_count, error) < 0)
        return -1;
    shape->examples = images.dims[0];
    shape->pixels = true;
    for (unsigned i = 0; i < images.rank; i++)
        extents[i] = images.dims[i];
    for (size_t i = 0; i < labels.element_count; i++) {
        least = int64_min(least, labels.elements[i]);
        most = int64_max(most, labels.elements[i]);
    }
    set_classes(shape, least, most);
    return set_sides(shape, images_name, extents, images.rank, error);
}

/* ---------------------------------------------------------------- NPY */

static int parse_npy(const char *folder, const char *name, struct file_bytes *file, struct npy *ret_npy,
                     struct error *error)
{
    if (open_file(folder, name, file, error) < 0)
        return -1;
    if (npy_parse(file->bytes, file->length, ret_npy, error) < 0)
        return error_wrap(error, "%s", name);
    if (ret_npy->rank == 0)
        return error_set(error, ERROR_INVALID,
                         "%s holds a single number; save an array whose first dimension counts the examples", name);
    if (!npy_has_numbers(ret_npy))
        return error_set(error, ERROR_INVALID, "%s has values of type f%u; save them as float32", name,
                         ret_npy->item_bytes);
    return 0;
}

/* Whether each row of the array has one 1, and 0 elsewhere. */
static bool is_one_hot(const struct npy *labels, int64_t numbers)
{
    float value;
    int64_t ones = 0;
    for (int64_t i = 0; i < labels->elements; i++) {
        npy_floats(labels, i, 1, &value);
        ones += value == 1;
        if ((value != 0 && value != 1) || ones > 1 || ((i + 1) % numbers == 0 && ones != 1))
            return false;
        ones = (i + 1) % numbers == 0 ? 0 : ones;
    }
    return numbers > 1;
}

/* Numbers to predict. Says whether they may be classes that were saved as floats. */
static int read_npy_numbers(const struct npy *labels, const char *name, struct data_shape *shape, struct error *error)
{
    float seen[CLASSES_FEW], value;
    unsigned different = 0;
    bool whole = true;
    for (int64_t i = 0; i < labels->elements; i++) {
        npy_floats(labels, i, 1, &value);
        if (!isfinite(value))
            return error_set(error, ERROR_INVALID, "%s: label %lld is missing or too large; leave the example out",
                             name, (long long)i);
        unsigned place = 0;
        while (whole && place < different && seen[place] != value)
            place++;
        whole = whole && value == truncf(value) && place < CLASSES_FEW;
        if (whole && place == different)
            seen[different++] = value;
    }
    shape->numbers = labels->elements / labels->shape[0];
    shape->whole = whole && shape->numbers == 1;
    shape->one_hot = whole && is_one_hot(labels, shape->numbers);
    return 0;
}

static int read_npy_labels(const struct npy *labels, const char *name, struct data_shape *shape, struct error *error)
{
    int64_t of_example = labels->elements / labels->shape[0], least = INT64_MAX, most = 0;
    if (of_example < 1)
        return error_set(error, ERROR_INVALID, "%s holds no labels", name);
    if (labels->kind == 'f')
        return read_npy_numbers(labels, name, shape, error);
    if (of_example != 1)
        return error_set(error, ERROR_INVALID,
                         "%s has %lld integers for each example; save one that is its class%s, or floats to predict",
                         name, (long long)of_example, is_one_hot(labels, of_example) ? " (y.argmax(axis=1))" : "");
    for (int64_t i = 0; i < labels->elements; i++) {
        int64_t label = npy_integer_at(labels, i);
        if (label < 0)
            return error_set(error, ERROR_INVALID, "%s: label %lld is %lld; classes are counted from 0", name,
                             (long long)i, (long long)label);
        least = int64_min(least, label);
        most = int64_max(most, label);
    }
    if (most == INT64_MAX || !are_classes(most + 1, labels->elements))
        return error_set(error, ERROR_INVALID,
                         "%s: the labels of %lld examples go up to %lld: save them as float32 if they are numbers to "
                         "predict; classes are counted from 0, %d at most, with %d examples of each or more",
                         name, (long long)labels->elements, (long long)most, CLASSES_MOST, CLASS_EXAMPLES);
    set_classes(shape, least, most);
    return 0;
}

/* The worker refuses such values, too, but only when training reaches the example. */
static int check_finite(const struct npy *values, const char *name, struct error *error)
{
    int64_t of_example = values->elements / values->shape[0];
    float value;
    if (values->kind != 'f')
        return 0;
    for (int64_t i = 0; i < values->elements; i++) {
        npy_floats(values, i, 1, &value);
        if (!isfinite(value))
            return error_set(error, ERROR_INVALID,
                             "%s: example %lld has a value that is missing or too large (%s); fill it, or leave the "
                             "example out",
                             name, (long long)(i / of_example), isnan(value) ? "NaN" : "infinite");
    }
    return 0;
}

static int read_npy(const char *folder, const char *images_name, const char *labels_name, struct data_shape *shape,
                    struct error *error)
{
    SCOPED(file_scope) struct file_bytes images_file = {.bytes = NULL};
    SCOPED(file_scope) struct file_bytes labels_file = {.bytes = NULL};
    struct npy images, labels;
    if (parse_npy(folder, images_name, &images_file, &images, error) < 0 ||
        parse_npy(folder, labels_name, &labels_file, &labels, error) < 0 ||
        check_counts(images_name, images.shape[0], labels_name, labels.shape[0], error) < 0)
        return -1;
    shape->examples = images.shape[0];
    shape->pixels = images.kind == 'u' && images.item_bytes == 1;
    if (images.rank == 1)
        shape->sides[shape->rank++] = 1;
    if (set_sides(shape, images_name, images.shape, images.rank, error) < 0 ||
        check_finite(&images, images_name, error) < 0)
        return -1;
    return read_npy_labels(&labels, labels_name, shape, error);
}

/* ---------------------------------------------------------------- CSV */

struct table {
    struct csv csv;
    struct csv_columns columns;
    bool header;
    bool drop_rows;  /* leaves out rows with missing values */
    int64_t dropped; /* how many rows it has left out */
    struct row_numbers numbers_of_rows;
    enum label_reason label_reason;
    struct csv_labels labels;
    bool many;                 /* more different labels than are collected */
    bool whole;                /* all numbers among the labels are whole */
    int64_t numbers;           /* rows whose label is one */
    int64_t commas;            /* rows whose label is one with a decimal comma */
    int64_t word_line;         /* of the first label that is not */
    char word[TEXT_SHOWN + 1]; /* that label, shortened */
};

static void table_release(struct table *table)
{
    csv_columns_release(&table->columns);
    csv_labels_release(&table->labels);
    row_numbers_release(&table->numbers_of_rows);
    csv_release(&table->csv);
}

/* Sets an error about the label of a line: "line 3, column 2 (height): the label is missing". */
static int refuse_label(const struct table *table, int64_t line, const char *cell, const char *reason,
                        struct error *error)
{
    unsigned label = table->columns.label;
    const char *name = table->columns.list[label].name;
    return error_set(error, ERROR_INVALID, "line %lld, column %u%s%s%s: %s%s%s%s", (long long)line, label + 1,
                     *name ? " (" : "", name, *name ? ")" : "", cell ? "\"" : "", cell ? cell : "", cell ? "\" " : "",
                     reason);
}

/* Names of columns that have labels. The earlier one takes precedence: a table of passengers may have their class as a value. */
static const char *const label_names[] = {"target", "label", "y", "survived", "outcome", "species", "class"};
#define LABEL_NAME_COUNT (sizeof label_names / sizeof *label_names)

/* Returns the name's position in label_names; LABEL_NAME_COUNT: it is none of them. */
static size_t label_rank(const char *name)
{
    size_t rank = 0;
    while (rank < LABEL_NAME_COUNT && strcasecmp(name, label_names[rank]) != 0)
        rank++;
    return rank;
}

/* Takes the column with the name of a label instead of the last one, unless that has such a name, too. */
static void choose_label(struct table *table)
{
    struct csv_columns *columns = &table->columns;
    unsigned best = columns->label;
    if (label_rank(columns->list[best].name) < LABEL_NAME_COUNT)
        return;
    for (unsigned i = 0; i < columns->count; i++)
        if (columns->list[i].is_input && label_rank(columns->list[i].name) < label_rank(columns->list[best].name))
            best = i;
    if (best == columns->label)
        return;
    columns->list[columns->label].is_input = true;
    columns->list[best].is_input = false;
    columns->label = best;
    table->label_reason = LABEL_NAMED;
}

static int start_table(struct table *table, const struct csv_choice *choice, struct error *error)
{
    table->header = csv_is_header(&table->csv);
    table->whole = true;
    table->label_reason = choice->label ? LABEL_GIVEN : LABEL_LAST;
    if (csv_columns_start(&table->columns, &table->csv, table->header, choice, error) < 0)
        return -1;
    if (table->label_reason == LABEL_LAST)
        choose_label(table);
    return 0;
}

static int take_label(struct table *table, struct error *error)
{
    const struct csv_field *cell = &table->csv.fields[table->columns.label];
    double number;
    if (csv_is_missing(cell))
        return refuse_label(table, table->csv.line, NULL,
                            "the label is missing; leave the line out, or such lines by --drop-rows", error);
    if (csv_number(cell, &number)) {
        table->numbers++;
        table->whole = table->whole && number == trunc(number);
    } else if (table->word_line == 0) {
        table->word_line = table->csv.line;
        terminal_text_shorten(cell->text, cell->length, TEXT_SHOWN, table->word);
    }
    table->commas += csv_has_comma_number(cell);
    table->many = table->many || csv_labels_add(&table->labels, cell, NULL) < 0;
    return 0;
}

static int take_row(struct table *table, struct error *error)
{
    const struct csv *row = &table->csv;
    if (row->count != table->columns.count)
        return error_set(error, ERROR_INVALID, "line %lld has %u columns, those before it have %u",
                         (long long)row->line, row->count, table->columns.count);
    row_numbers_add(&table->numbers_of_rows, row);
    if (table->drop_rows && csv_columns_drop(&table->columns, row)) {
        table->dropped++;
        return 0;
    }
    csv_columns_add(&table->columns, row);
    return take_label(table, error);
}

/* What the labels are: words are classes, and so are integers unless there are very many; the others are predicted. */
static int judge_labels(const struct table *table, struct data_shape *shape, struct error *error)
{
    int64_t rows = table->columns.rows, words = rows - table->numbers;
    bool classes = !table->many && are_classes(table->labels.count, rows);
    if (table->commas > 0 && table->commas == words)
        return refuse_label(table, table->word_line, table->word,
                            "has a comma; write the numbers of this column with a decimal point", error);
    if (words > 0 && words * WORDS_PART < rows)
        return refuse_label(table, table->word_line, table->word,
                            "is not a number, but most labels are; correct it, or leave the line out", error);
    if (words > 0 && !classes)
        return error_set(error, ERROR_INVALID,
                         "column %u: the labels of %lld rows have %s%u different words, too many for classes; --label "
                         "names another column",
                         table->columns.label + 1, (long long)rows, table->many ? "more than " : "",
                         table->labels.count);
    shape->numbers = words == 0 && !(classes && table->labels.integers);
    shape->classes = shape->numbers ? 0 : classes_of(table->labels.count);
    shape->alike = shape->classes > 0 && table->labels.count == 1;
    shape->whole = shape->numbers && table->whole && !table->many && table->labels.count <= CLASSES_FEW;
    return 0;
}

static const char *name_of(const struct table *table, unsigned column)
{
    return table->header ? table->columns.list[column].name : NULL;
}

/* Leaves out the columns that number the rows (`row_numbers`), or those that look like identifiers, but not the last input. Returns how
 * many. */
static unsigned leave_out(struct table *table, bool row_numbers, struct json *skipped)
{
    struct csv_columns *columns = &table->columns;
    int64_t left = csv_columns_inputs(columns);
    unsigned found = 0;
    for (unsigned i = 0; i < columns->count; i++) {
        struct csv_column *column = &columns->list[i];
        if (!column->is_input || left == 1 ||
            !(row_numbers ? row_numbers_has(&table->numbers_of_rows, i, name_of(table, i))
                          : csv_column_identifies(column, columns->rows)))
            continue;
        SCOPED_FREE char *number = memory_format("%u", i + 1);
        bool whole = *column->name && strlen(column->name) < CSV_SHOWN_MAX; /* the name is not shortened */
        column->is_input = false;
        left--;
        found++;
        json_append_string(skipped, whole ? column->name : number);
    }
    return found;
}

static int read_rows(struct table *table, const struct csv_choice *choice, struct json *skipped,
                     struct data_shape *shape, struct error *error)
{
    int result;
    while ((result = csv_next(&table->csv, error)) > 0) {
        bool first = table->columns.count == 0;
        if (first && start_table(table, choice, error) < 0)
            return -1;
        if (!(first && table->header) && take_row(table, error) < 0)
            return -1;
    }
    if (result < 0)
        return -1;
    if (table->columns.rows == 0 && table->dropped > 0)
        return error_set(error, ERROR_INVALID,
                         "values are missing in all %lld rows; leave out the columns that lack most by --skip",
                         (long long)table->dropped);
    if (table->columns.rows == 0)
        return error_set(error, ERROR_INVALID,
                         "the table has no rows; write one for each example, with values and a label");
    if (skipped)
        leave_out(table, false, skipped);
    shape->row_numbers = skipped ? leave_out(table, true, skipped) : 0;
    if ((skipped ? csv_columns_finish(&table->columns, choice, error)
                 : csv_columns_check_missing(&table->columns, error)) < 0)
        return -1;
    shape->examples = table->columns.rows;
    shape->dropped = table->dropped;
    shape->columns = csv_columns_inputs(&table->columns);
    shape->label_reason = table->label_reason;
    shape->label = table->columns.label + 1;
    shape->table_columns = table->columns.count;
    memcpy(shape->label_name, table->columns.list[table->columns.label].name, sizeof shape->label_name);
    shape->sides[shape->rank++] = csv_columns_width(&table->columns);
    for (unsigned i = 0; i < table->columns.count && shape->dates == 0; i++)
        shape->dates = csv_column_has_dates(&table->columns.list[i], shape->examples) ? i + 1 : 0;
    return judge_labels(table, shape, error);
}

/* `learned`: the table is the one to learn from, whose columns that look like identifiers are appended to the ones to leave out. */
static int read_csv(const char *folder, const char *name, const struct data_columns *wanted, bool learned,
                    struct data_shape *shape, struct error *error)
{
    SCOPED(file_scope) struct file_bytes file = {.bytes = NULL};
    SCOPED(table_release) struct table table = {.header = false};
    SCOPED_FREE const char **skipped = memory_allocate(json_count(wanted->skipped), sizeof *skipped);
    struct csv_choice choice = {.label = wanted->label,
                                .skipped = skipped,
                                .label_title = "--label",
                                .skip_title = "--skip",
                                .skip_before = "--skip ",
                                .skip_after = "",
                                .drop_rows = "--drop-rows"};
    for (const struct json *item = json_first(wanted->skipped); item; item = json_next(item))
        skipped[choice.skipped_count++] = json_string(item, "");
    if (open_file(folder, name, &file, error) < 0)
        return -1;
    csv_init_file(&table.csv, name, file.bytes, file.length);
    table.drop_rows = wanted->drop_rows;
    if (read_rows(&table, &choice, learned ? wanted->skipped : NULL, shape, error) == 0)
        return 0;
    const char *end = strrchr(name, '.');
    bool is_plain = file.file && end && strcasecmp(end, ".gz") == 0;
    if (is_plain)
        error_wrap(error, "it is not gzip, though its name ends in .gz (compress it, or rename it)");
    return error_wrap(error, "%s", name);
}

/* ---------------------------------------------------------------- images */

static int list_images(const char *folder, const char *name, struct image_folder *ret_images, struct error *error)
{
    SCOPED_FREE char *path = memory_format("%s/%s", folder, name);
    return image_folder_list(strcmp(name, DATA_FILES_HERE) == 0 ? folder : path, ret_images, error);
}

static int compare_sides(const void *left, const void *right)
{
    int64_t one = *(const int64_t *)left, other = *(const int64_t *)right;
    return (one > other) - (one < other);
}

/* Images of one size that is small keep it; others become squares, of the median of their shorter sides if that is small. */
static int choose_sides(const struct image_folder *images, struct data_shape *shape, struct error *error)
{
    int64_t looked = images->count < IMAGES_LOOKED_AT ? images->count : IMAGES_LOOKED_AT;
    SCOPED_FREE int64_t *shorter = memory_allocate((size_t)looked, sizeof *shorter);
    struct image first = {.width = 0}, image;
    bool same = true, colour = false;
    int64_t decoded = 0;
    for (int64_t i = 0; i < looked; i++) {
        int64_t index = i * images->count / looked;
        if (image_folder_look(images, index, &image, error) < 0)
            return -1;
        decoded += image.width * image.height;
        if (decoded <= PIXELS_DECODED && image_folder_check(images, index, error) < 0)
            return -1;
        first = i == 0 ? image : first;
        same = same && image.width == first.width && image.height == first.height;
        colour = colour || image.channels > 2;
        shorter[i] = image.width < image.height ? image.width : image.height;
    }
    qsort(shorter, (size_t)looked, sizeof *shorter, compare_sides);
    int64_t median = shorter[looked / 2], side = median < SQUARE_MOST ? median : SQUARE_MOST;
    bool keeps = same && first.width <= KEPT_SIDE_MOST && first.height <= KEPT_SIDE_MOST;
    shape->sides[0] = keeps ? first.height : side;
    shape->sides[1] = keeps ? first.width : side;
    shape->sides[2] = colour ? 3 : 1;
    shape->resized = !keeps;
    shape->rank = 3;
    return 0;
}

static int read_images(const char *folder, const char *name, struct data_shape *shape, struct error *error)
{
    SCOPED(image_folder_release) struct image_folder images = {.root = NULL};
    if (list_images(folder, name, &images, error) < 0 || choose_sides(&images, shape, error) < 0)
        return -1;
    shape->examples = images.count;
    shape->classes = classes_of(images.class_count);
    shape->pixels = shape->images = true;
    return 0;
}

/* ---------------------------------------------------------------- all of them */

static int read_text(const char *folder, const char *name, struct data_shape *shape, struct error *error)
{
    SCOPED(file_scope) struct file_bytes file = {.bytes = NULL};
    SCOPED_BUFFER texts = BUFFER_INIT(JSON_LINES_TEXTS_MAX);
    if (open_file(folder, name, &file, error) < 0)
        return -1;
    bool is_json = json_lines_named(name);
    if (is_json && json_lines_texts(file.bytes, file.length, &texts, error) < 0)
        return error_wrap(error, "%s", name);
    int64_t length = (int64_t)(is_json ? texts.length : file.length);
    shape->examples = length > 0 ? (length - 1) / DATA_SHAPE_CONTEXT : 0;
    if (shape->examples < 2)
        return error_set(error, ERROR_INVALID,
                         "%s is too short: at least %d bytes are needed (two examples of %d, and one more)", name,
                         2 * DATA_SHAPE_CONTEXT + 1, DATA_SHAPE_CONTEXT);
    return 0;
}

static int read_files(const char *folder, const char *format, const char *files, const char *labels,
                      const struct data_columns *columns, bool learned, struct data_shape *ret_shape,
                      struct error *error)
{
    struct data_shape shape = {.examples = 0};
    int result = 0;
    switch (words_find(data_format_words, format)) {
    case DATA_FORMAT_IDX:
        result = read_idx(folder, files, labels, &shape, error);
        break;
    case DATA_FORMAT_NPY:
        result = read_npy(folder, files, labels, &shape, error);
        break;
    case DATA_FORMAT_CSV:
        result = read_csv(folder, files, columns, learned, &shape, error);
        break;
    case DATA_FORMAT_BYTES:
        result = read_text(folder, files, &shape, error);
        break;
    case DATA_FORMAT_IMAGE_FOLDER:
        result = read_images(folder, files, &shape, error);
        break;
    default:
        break;
    }
    if (result == 0)
        *ret_shape = shape;
    return result;
}

static bool same_sides(const struct data_shape *one, const struct data_shape *other)
{
    if (one->columns > 0) /* a file to test with may lack some of the words */
        return one->columns == other->columns;
    return one->rank == other->rank && memcmp(one->sides, other->sides, sizeof one->sides) == 0;
}

static void append_sides(const struct data_shape *shape, struct buffer *out)
{
    for (unsigned i = 0; i < shape->rank; i++)
        buffer_format(out, i > 0 ? "x%lld" : "%lld", (long long)shape->sides[i]);
}

static int check_tested(const struct data_files_found *found, const struct data_shape *shape,
                        const struct data_shape *tested, struct error *error)
{
    SCOPED_BUFFER sides = BUFFER_INIT(SIDES_TEXT_MAX);
    if (shape->images || same_sides(shape, tested))
        return 0;
    buffer_format(&sides, "%s has examples of ", found->files);
    append_sides(shape, &sides);
    buffer_format(&sides, " values, but %s of ", found->test_files);
    append_sides(tested, &sides);
    return error_set(error, ERROR_INVALID, "%s; they must have the same values", buffer_text(&sides));
}

static int read_tested(const char *folder, const struct data_files_found *found, const struct data_columns *columns,
                       struct data_shape *shape, struct error *error)
{
    struct data_shape tested = {.examples = 0};
    const struct data_columns same = {shape->label_reason == LABEL_NAMED ? shape->label_name : columns->label,
                                      columns->skipped, columns->drop_rows};
    if (read_files(folder, found->format, found->test_files, found->test_labels, &same, false, &tested, error) < 0 ||
        check_tested(found, shape, &tested, error) < 0)
        return -1;
    shape->tested = tested.examples;
    if (shape->classes > 0 && tested.classes > shape->classes)
        shape->classes = tested.classes;
    return 0;
}

/* Returns whether a table to test with has no column with the labels, as Kaggle's test.csv has none. */
static bool lacks_label(const char *folder, const char *name, const struct data_shape *shape)
{
    SCOPED(file_scope) struct file_bytes file = {.bytes = NULL};
    SCOPED(table_release) struct table table = {.header = false};
    if (open_file(folder, name, &file, NULL) < 0)
        return false;
    csv_init_file(&table.csv, name, file.bytes, file.length);
    if (csv_next(&table.csv, NULL) <= 0)
        return false;
    table.header = csv_is_header(&table.csv);
    csv_columns_init(&table.columns, &table.csv, table.header);
    if (!table.header || !*shape->label_name)
        return table.columns.count + 1 == shape->table_columns;
    for (unsigned i = 0; i < table.columns.count; i++)
        if (strcmp(table.columns.list[i].name, shape->label_name) == 0)
            return false;
    return true;
}

int data_shape_read(const char *folder, struct data_files_found *found, const struct data_columns *columns,
                    struct data_shape *ret_shape, struct error *error)
{
    struct data_shape shape;
    if (read_files(folder, found->format, found->files, found->labels, columns, true, &shape, error) < 0)
        return -1;
    if (found->test_files && shape.label_reason != LABEL_NO_TABLE && lacks_label(folder, found->test_files, &shape)) {
        found->unlabelled = found->test_files;
        found->test_files = NULL;
    }
    if (found->test_files && read_tested(folder, found, columns, &shape, error) < 0)
        return -1;
    if (shape.examples == 1 && shape.tested == 0)
        return error_set(error, ERROR_INVALID,
                         "%s holds only one example; add more, so that some can train the model and others test it",
                         found->files);
    if (shape.alike)
        return error_set(error, ERROR_INVALID,
                         "%s: all examples have the same label, so there is nothing to learn; add examples of another "
                         "class, or name the right labels%s",
                         found->labels ? found->labels : found->files, shape.columns > 0 ? " by --label COLUMN" : "");
    *ret_shape = shape;
    return 0;
}

/* Whether the first of three sizes looks like the number of colours, which the worker expects last. */
static bool has_channels_first(const struct data_shape *shape)
{
    const int64_t *sides = shape->sides;
    bool channels = shape->rank == 3 && (sides[0] == 1 || sides[0] == 3);
    return channels && sides[1] >= CHANNELS_FIRST_SIDE && sides[2] >= CHANNELS_FIRST_SIDE;
}

void data_shape_describe(const struct data_shape *shape, struct buffer *out)
{
    if (shape->rank == 0) {
        buffer_format(out, "%lld windows of %d bytes", (long long)shape->examples, DATA_SHAPE_CONTEXT);
        return;
    }
    buffer_format(out, "%lld examples of ", (long long)shape->examples);
    append_sides(shape, out);
    buffer_append_string(out,
                         shape->resized                             ? " pixels after resizing"
                         : shape->pixels                            ? " pixels"
                         : shape->rank == 1 && shape->sides[0] == 1 ? " value"
                                                                    : " values",
                         NULL);
    if (shape->dropped > 0)
        buffer_format(out, " (%lld row%s left out, since values are missing)", (long long)shape->dropped,
                      shape->dropped == 1 ? "" : "s");
    if (has_channels_first(shape))
        buffer_append_string(out,
                             " (if the first size is the number of colours, save X.transpose(0, 2, 3, 1), which puts "
                             "it last)",
                             NULL);
    if (shape->columns > 0 && shape->columns != shape->sides[0])
        buffer_format(out, " from %lld column%s", (long long)shape->columns, shape->columns == 1 ? "" : "s");
    if (shape->dates > 0)
        buffer_format(out,
                      " (dates, as in column %u, become one value for each different date: make numbers of them, or "
                      "leave them out by --skip)",
                      shape->dates);
    if (shape->classes > 0)
        buffer_format(out, ", %lld classes", (long long)shape->classes);
    else
        buffer_format(out, ", %lld number%s to predict", (long long)shape->numbers, shape->numbers == 1 ? "" : "s");
    if (shape->classes > 0 && shape->least > 0)
        buffer_format(out, " (no example has a label below %lld; subtract %lld if classes begin there)",
                      (long long)shape->least, (long long)shape->least);
    if (shape->one_hot)
        buffer_append_string(out, " (save y.argmax(axis=1) as the labels if these are one-hot classes)", NULL);
    if (shape->whole)
        buffer_append_string(out, " (save the labels as integers if they are classes)", NULL);
}

void data_shape_describe_label(const struct data_shape *shape, struct buffer *out)
{
    if (*shape->label_name)
        buffer_format(out, "label: %s", shape->label_name);
    else
        buffer_format(out, "label: column %u", shape->label);
    if (shape->label_reason == LABEL_GIVEN)
        buffer_append_string(out, ", as --label says", NULL);
    else
        buffer_format(out, ", %s%s; --label COLUMN takes another",
                      shape->label_reason == LABEL_NAMED ? "because of its name, though it is not the last column"
                                                         : "the last column",
                      shape->label_reason == LABEL_LAST && shape->label < shape->table_columns ? " that is not left out"
                                                                                               : "");
}
