/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/csv_columns.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/memory.h"
#include "common/nearest_word.h"
#include "common/scope.h"
#include "common/terminal_text.h"
#include "common/utf8.h"

#define IDENTIFIER_ROWS_LEAST 3
#define COMMAS_MOST 5
#define DATE_SEPARATORS_MOST 6
#define NAMES_TEXT_MAX 1024
#define LIST_TEXT_MAX 300 /* bytes of the names of columns in a message */

static const char *const booleans[] = {"false", "no", "true", "yes"};

/* Returns 0 or 1; -1: it is neither. */
static int boolean_of(const struct csv_field *field)
{
    for (size_t i = 0; i < sizeof booleans / sizeof *booleans && field->length <= strlen("false"); i++)
        if (strlen(booleans[i]) == field->length && strncasecmp(booleans[i], field->text, field->length) == 0)
            return i >= 2;
    return -1;
}

static bool is_utf8(const struct csv_field *field)
{
    for (size_t at = 0, step; at < field->length; at += step) {
        step = utf8_sequence(field->text + at, field->length - at);
        if (step == 0 || field->text[at] == '\0')
            return false;
    }
    return true;
}

void csv_columns_release(struct csv_columns *columns)
{
    for (unsigned i = 0; i < columns->count; i++)
        csv_labels_release(&columns->list[i].words);
    free(columns->list);
    *columns = (struct csv_columns){.list = NULL};
}

/* ---------------------------------------------------------------- the first row */

/* Appends the name that was probably meant, else the table's names as far as there is room. */
static void append_names(const struct csv *row, const char *wanted, struct buffer *out)
{
    SCOPED_FREE char(*names)[CSV_SHOWN_MAX + 1] = memory_allocate(row->count, sizeof *names);
    SCOPED_FREE const char **known = memory_allocate(row->count, sizeof *known);
    for (unsigned i = 0; i < row->count; i++) {
        terminal_text_shorten(row->fields[i].text, row->fields[i].length, CSV_SHOWN_MAX, names[i]);
        known[i] = names[i];
    }
    const char *meant = nearest_word(wanted, known, row->count);
    if (meant)
        buffer_format(out, "; did you mean \"%s\"?", meant);
    for (unsigned i = 0; i < row->count && !meant; i++) {
        bool fits = out->length < LIST_TEXT_MAX;
        buffer_format(out, "%s%s", i == 0 ? ": " : ", ", fits ? names[i] : "...");
        if (!fits)
            return;
    }
}

static int find_column(const struct csv *row, bool header, const char *wanted, const char *title, unsigned *ret_column,
                       struct error *error)
{
    if (csv_find_column(row, header, wanted, ret_column))
        return 0;
    SCOPED_BUFFER names = BUFFER_INIT(NAMES_TEXT_MAX);
    if (header)
        append_names(row, wanted, &names);
    return error_set(error, ERROR_INVALID, "%s: there is no column %s among the %u of the table%s", title, wanted,
                     row->count, header ? buffer_text(&names) : ", which has no line with names");
}

static int choose(struct csv_columns *columns, const struct csv *row, bool header, const struct csv_choice *choice,
                  struct error *error)
{
    unsigned column;
    for (unsigned i = 0; i < columns->count; i++)
        columns->list[i].is_input = true;
    for (unsigned i = 0; i < choice->skipped_count; i++) {
        if (find_column(row, header, choice->skipped[i], choice->skip_title, &column, error) < 0)
            return -1;
        columns->list[column].is_input = false;
    }
    for (unsigned i = 0; i < columns->count; i++)
        if (columns->list[i].is_input)
            columns->label = i;
    if (choice->label && find_column(row, header, choice->label, choice->label_title, &columns->label, error) < 0)
        return -1;
    if (!columns->list[columns->label].is_input)
        return error_set(error, ERROR_INVALID, "%s: column %u has the labels; take it out of the list",
                         choice->skip_title, columns->label + 1);
    columns->list[columns->label].is_input = false;
    if (csv_columns_inputs(columns) == 0)
        return error_set(error, ERROR_INVALID, "%s: no column is left to learn from", choice->skip_title);
    return 0;
}

void csv_columns_init(struct csv_columns *columns, const struct csv *row, bool header)
{
    *columns = (struct csv_columns){.list = memory_allocate(row->count, sizeof *columns->list), .count = row->count};
    for (unsigned i = 0; i < row->count && header; i++)
        terminal_text_shorten(row->fields[i].text, row->fields[i].length, CSV_SHOWN_MAX, columns->list[i].name);
}

int csv_columns_start(struct csv_columns *columns, const struct csv *row, bool header, const struct csv_choice *choice,
                      struct error *error)
{
    if (row->count < 2)
        return error_set(error, ERROR_INVALID, "line %lld has one column; a table has values and a label",
                         (long long)row->line);
    csv_columns_init(columns, row, header);
    return choose(columns, row, header, choice, error);
}

/* ---------------------------------------------------------------- rows */

/* Whether a word consists of digits with separators between them, at least `least` and at most `most`, such as "2026-11-27 10:30". */
static bool is_digits_with(const struct csv_field *field, const char *separators, unsigned least, unsigned most)
{
    unsigned found = 0;
    bool digit = false;
    for (size_t i = 0; i < field->length; i++) {
        bool before = digit;
        digit = field->text[i] >= '0' && field->text[i] <= '9';
        if (digit)
            continue;
        if (!before || field->text[i] == '\0' || !strchr(separators, field->text[i]))
            return false;
        found++;
    }
    return digit && found >= least && found <= most;
}

/* "3,5" and "-1.234,5": the parser of tables does not read them as numbers. */
bool csv_has_comma_number(const struct csv_field *field)
{
    size_t sign = field->length > 0 && (field->text[0] == '-' || field->text[0] == '+');
    const struct csv_field digits = {field->text + sign, field->length - sign};
    const char *comma = memchr(digits.text, ',', digits.length);
    return comma && comma == memrchr(digits.text, ',', digits.length) && is_digits_with(&digits, ",.", 1, COMMAS_MOST);
}

static bool is_date(const struct csv_field *field)
{
    return is_digits_with(field, "-/.:T ", 2, DATE_SEPARATORS_MOST);
}

static void add_word(struct csv_column *column, const struct csv_field *field, int64_t line)
{
    unsigned known = column->words.count;
    if (column->word_line == 0) {
        column->word_line = line;
        terminal_text_shorten(field->text, field->length, CSV_SHOWN_MAX, column->word);
    }
    column->booleans += boolean_of(field) >= 0;
    column->commas += csv_has_comma_number(field);
    column->dates += is_date(field);
    if (csv_labels_add(&column->words, field, NULL) < 0)
        column->many = true;
    else if (column->words.count == known)
        column->repeats = true;
    else
        column->bytes = column->bytes || !is_utf8(field);
}

bool csv_columns_drop(struct csv_columns *columns, const struct csv *row)
{
    bool lacks = false;
    for (unsigned i = 0; i < columns->count; i++) {
        struct csv_column *column = &columns->list[i];
        bool missing = (column->is_input || i == columns->label) && csv_is_missing(&row->fields[i]);
        column->dropped += missing;
        lacks = lacks || missing;
    }
    return lacks;
}

void csv_columns_add(struct csv_columns *columns, const struct csv *row)
{
    double number;
    columns->rows++;
    for (unsigned i = 0; i < columns->count; i++) {
        struct csv_column *column = &columns->list[i];
        const struct csv_field *field = &row->fields[i];
        if (!column->is_input)
            continue;
        if (csv_number(field, &number)) {
            column->numbers++;
        } else if (!csv_is_missing(field)) {
            add_word(column, field, row->line);
        } else if (column->missing++ == 0) {
            column->missing_line = row->line;
        }
    }
}

bool csv_column_identifies(const struct csv_column *column, int64_t rows)
{
    return rows >= IDENTIFIER_ROWS_LEAST && column->numbers == 0 && column->missing + column->dropped == 0 &&
           !column->repeats && column->word_line > 0 && column->commas < rows;
}

bool csv_column_has_dates(const struct csv_column *column, int64_t rows)
{
    return column->is_input && column->dates == rows;
}

/* ---------------------------------------------------------------- what is wrong with them */

enum problem { NO_PROBLEM, VALUES_MISSING, DECIMAL_COMMAS, NUMBERS_AND_WORDS, TOO_MANY_WORDS, NOT_UTF8 };

static enum problem problem_of(const struct csv_columns *columns, const struct csv_column *column)
{
    return !column->is_input                                                         ? NO_PROBLEM
           : column->missing > 0                                                     ? VALUES_MISSING
           : column->commas > 0 && column->commas + column->numbers == columns->rows ? DECIMAL_COMMAS
           : column->numbers > 0 && column->word_line > 0                            ? NUMBERS_AND_WORDS
           : column->many || column->words.count > CSV_WORDS_MAX                     ? TOO_MANY_WORDS
           : column->bytes                                                           ? NOT_UTF8
                                                                                     : NO_PROBLEM;
}

/* Appends "age" or, if the table has no names or this one does not suit a shell or YAML, "column 3" or "3". */
static void append_name(const struct csv_columns *columns, unsigned place, bool choice, struct buffer *out)
{
    const char *name = columns->list[place].name;
    bool suits =
        *name && (!choice || (strlen(name) < CSV_SHOWN_MAX && !strpbrk(name, " ,;:#&|<>()[]{}*?!$`'\"\\~%@=^")));
    if (suits)
        buffer_append_string(out, name, NULL);
    else
        buffer_format(out, choice ? "%u" : "column %u", place + 1);
}

static void append_problem(const struct csv_columns *columns, unsigned place, enum problem problem, struct buffer *out)
{
    const struct csv_column *column = &columns->list[place];
    if (problem == NUMBERS_AND_WORDS) {
        buffer_format(out, "line %lld, column %u%s%s%s: \"%s\" is not a number, but other values of the column are",
                      (long long)column->word_line, place + 1, *column->name ? " (" : "", column->name,
                      *column->name ? ")" : "", column->word);
        return;
    }
    append_name(columns, place, false, out);
    if (problem == DECIMAL_COMMAS)
        buffer_format(out, " has numbers with a comma, such as \"%s\" in line %lld: write them with a decimal point",
                      column->word, (long long)column->word_line);
    else if (problem == VALUES_MISSING)
        buffer_format(out, " (%lld of %lld, the first in line %lld)", (long long)column->missing,
                      (long long)columns->rows, (long long)column->missing_line);
    else if (problem == NOT_UTF8)
        buffer_append_string(out, " has words that are not UTF-8", NULL);
    else
        buffer_format(out, " has more than %d different %s", CSV_WORDS_MAX,
                      csv_column_has_dates(column, columns->rows)
                          ? "dates; to learn from them, make numbers of them, such as the day of the year"
                          : "words, as identifiers and texts do");
}

/* Appends all columns with a problem, as far as there is room. */
static void append_problems(const struct csv_columns *columns, enum problem problem, const char *head,
                            struct buffer *out)
{
    size_t begin = out->length, found = 0;
    for (unsigned i = 0; i < columns->count; i++) {
        if (problem_of(columns, &columns->list[i]) != problem)
            continue;
        if (out->length - begin < LIST_TEXT_MAX) {
            buffer_append_string(out, found > 0 ? ", " : begin > 0 ? "; " : "", NULL);
            buffer_append_string(out, found > 0 ? "" : head, NULL);
            append_problem(columns, i, problem, out);
        } else {
            buffer_append_string(out, " and others", NULL);
            return;
        }
        found++;
    }
}

/* Appends the columns to leave out, unless they are too many for a message. */
static void append_choice(const struct csv_columns *columns, const struct csv_choice *choice, struct buffer *out)
{
    SCOPED_BUFFER list = BUFFER_INIT((size_t)columns->count * (CSV_SHOWN_MAX + 1));
    bool lacks = false;
    for (unsigned i = 0; i < columns->count; i++)
        if (problem_of(columns, &columns->list[i]) != NO_PROBLEM) {
            lacks = lacks || columns->list[i].missing > 0;
            buffer_append_string(&list, list.length > 0 ? "," : "", NULL);
            append_name(columns, i, true, &list);
        }
    buffer_append_string(out, "; correct the table, or leave columns out", NULL);
    if (list.length <= LIST_TEXT_MAX)
        buffer_format(out, ": %s%s%s", choice->skip_before, buffer_text(&list), choice->skip_after);
    if (lacks && choice->drop_rows)
        buffer_format(out, "; %s leaves out the rows with missing values instead", choice->drop_rows);
}

static int check(const struct csv_columns *columns, const struct csv_choice *choice, struct error *error)
{
    SCOPED_BUFFER text = BUFFER_INIT((size_t)16 * LIST_TEXT_MAX);
    append_problems(columns, VALUES_MISSING, "values are missing in ", &text);
    append_problems(columns, DECIMAL_COMMAS, "", &text);
    append_problems(columns, NUMBERS_AND_WORDS, "", &text);
    append_problems(columns, TOO_MANY_WORDS, "", &text);
    append_problems(columns, NOT_UTF8, "", &text);
    if (text.length == 0)
        return 0;
    append_choice(columns, choice, &text);
    return error_set(error, ERROR_INVALID, "%s", buffer_text(&text));
}

int csv_columns_check_missing(const struct csv_columns *columns, struct error *error)
{
    SCOPED_BUFFER text = BUFFER_INIT((size_t)4 * LIST_TEXT_MAX);
    append_problems(columns, VALUES_MISSING, "values are missing in ", &text);
    return text.length == 0
               ? 0
               : error_set(error, ERROR_INVALID, "%s; fill them, or leave the rows out", buffer_text(&text));
}

int csv_columns_finish(struct csv_columns *columns, const struct csv_choice *choice, struct error *error)
{
    if (check(columns, choice, error) < 0)
        return -1;
    for (unsigned i = 0; i < columns->count; i++) {
        struct csv_column *column = &columns->list[i];
        if (column->word_line > 0)
            column->kind = column->booleans == columns->rows ? CSV_BOOLEANS : CSV_WORDS;
    }
    return 0;
}

/* ---------------------------------------------------------------- numbers */

unsigned csv_column_width(const struct csv_column *column)
{
    return column->kind == CSV_WORDS ? column->words.count : 1;
}

int64_t csv_columns_width(const struct csv_columns *columns)
{
    int64_t width = 0;
    for (unsigned i = 0; i < columns->count; i++)
        width += columns->list[i].is_input ? csv_column_width(&columns->list[i]) : 0;
    return width;
}

int64_t csv_columns_inputs(const struct csv_columns *columns)
{
    int64_t inputs = 0;
    for (unsigned i = 0; i < columns->count; i++)
        inputs += columns->list[i].is_input;
    return inputs;
}

enum csv_encoding csv_column_encode(const struct csv_column *column, const struct csv_field *field, double *values)
{
    if (column->kind == CSV_NUMBERS)
        return csv_number(field, values) ? CSV_ENCODED : CSV_NOT_ENCODED;
    if (column->kind == CSV_BOOLEANS) {
        *values = boolean_of(field);
        return *values < 0 ? CSV_NOT_ENCODED : CSV_ENCODED;
    }
    int word = csv_labels_find(&column->words, field);
    for (unsigned i = 0; i < column->words.count; i++)
        values[i] = (int)i == word;
    return word < 0 ? CSV_UNKNOWN_WORD : CSV_ENCODED;
}

/* ---------------------------------------------------------------- as JSON */

static void append_words(const struct csv_column *column, struct json *list)
{
    for (unsigned i = 0; i < column->words.count && column->kind == CSV_WORDS; i++) {
        const struct csv_field *word = &column->words.list[i];
        SCOPED_FREE char *text = memory_copy_bytes(word->text, word->length);
        json_append_string(list, text);
    }
    if (column->kind == CSV_BOOLEANS) {
        json_append_string(list, "false");
        json_append_string(list, "true");
    }
}

struct json *csv_columns_words(const struct csv_columns *columns)
{
    struct json *words = json_new_array();
    bool numbers = true;
    for (unsigned i = 0; i < columns->count; i++) {
        if (!columns->list[i].is_input)
            continue;
        numbers = numbers && columns->list[i].kind == CSV_NUMBERS;
        append_words(&columns->list[i], json_append(words, json_new_array()));
    }
    if (!numbers)
        return words;
    json_free(words);
    return NULL;
}

static int take_words(struct csv_column *column, const struct json *words, struct error *error)
{
    bool others = false;
    if (json_type(words) != JSON_ARRAY || json_count(words) > CSV_WORDS_MAX)
        return error_set(error, ERROR_INVALID, "the words of the columns that are kept with the weights are malformed");
    for (const struct json *word = json_first(words); word; word = json_next(word)) {
        const char *text = json_string(word, "");
        const struct csv_field field = {text, strlen(text)};
        if (json_type(word) != JSON_STRING || csv_labels_add(&column->words, &field, error) < 0)
            return error_set(error, ERROR_INVALID,
                             "the words of the columns that are kept with the weights are malformed");
        others = others || boolean_of(&field) < 0;
    }
    if (column->words.count > 0)
        column->kind = others ? CSV_WORDS : CSV_BOOLEANS;
    return 0;
}

int csv_columns_known(struct csv_columns *columns, const struct json *words, int64_t count, struct error *error)
{
    size_t inputs = words ? json_count(words) : (size_t)count;
    *columns = (struct csv_columns){.list = memory_allocate(inputs, sizeof *columns->list), .count = (unsigned)inputs};
    const struct json *list = json_first(words);
    for (size_t i = 0; i < inputs; i++, list = list ? json_next(list) : NULL) {
        columns->list[i].is_input = true;
        if (words && take_words(&columns->list[i], list, error) < 0)
            return -1;
    }
    return 0;
}
