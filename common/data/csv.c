/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/memory.h"
#include "common/scope.h"
#include "common/terminal_text.h"

#define NUMBER_LENGTH_MAX 63
#define ROWS_LOOKED_AT 1000
#define INTEGER_DIGITS_MAX 15 /* exact as a double */

/* ---------------------------------------------------------------- rows */

static char separator_of(const char *at, const char *end)
{
    static const char separators[] = {',', ';', '\t'};
    size_t counts[sizeof separators] = {0}, most = 0;
    bool quoted = false;
    for (; at < end && *at != '\n'; at++) {
        quoted ^= *at == '"';
        for (size_t i = 0; i < sizeof separators; i++)
            counts[i] += !quoted && *at == separators[i];
    }
    for (size_t i = 1; i < sizeof separators; i++)
        most = counts[i] > counts[most] ? i : most;
    return separators[most];
}

void csv_init(struct csv *csv, const uint8_t *bytes, size_t length)
{
    const char *text = (const char *)bytes;
    size_t mark = length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    *csv = (struct csv){.at = text + mark, .end = text + length};
    csv->separator = separator_of(csv->at, csv->end);
}

void csv_init_file(struct csv *csv, const char *path, const uint8_t *bytes, size_t length)
{
    csv_init(csv, bytes, length);
    csv->is_json = json_lines_named(path);
    json_lines_init(&csv->lines, bytes, length);
}

void csv_release(struct csv *csv)
{
    json_free(csv->names);
    json_free(csv->object);
    csv->names = csv->object = NULL;
    free(csv->fields);
    free(csv->unquoted);
    csv->fields = NULL;
    csv->unquoted = NULL;
}

static bool is_space(const struct csv *csv, char byte)
{
    return byte == ' ' || byte == '\r' || (byte == '\t' && csv->separator != '\t');
}

static int add_field(struct csv *csv, struct csv_field field, struct error *error)
{
    if (csv->count == CSV_COLUMNS_MAX)
        return error_set(error, ERROR_INVALID, "line %lld has more than %d columns", (long long)csv->line,
                         CSV_COLUMNS_MAX);
    if (csv->count == csv->capacity) {
        csv->capacity = csv->capacity > 0 ? 2 * csv->capacity : 16;
        csv->fields = memory_resize(csv->fields, csv->capacity, sizeof *csv->fields);
    }
    csv->fields[csv->count++] = field;
    return 0;
}

static struct csv_field trim(const struct csv *csv, const char *begin, const char *end)
{
    while (begin < end && is_space(csv, *begin))
        begin++;
    while (begin < end && is_space(csv, end[-1]))
        end--;
    return (struct csv_field){begin, (size_t)(end - begin)};
}

/* From the byte after the first quote; returns the one after the last quote. */
static const char *skip_quoted(const char *at, const char *end)
{
    for (; at < end; at++)
        if (*at == '"' && (at + 1 == end || at[1] != '"'))
            return at + 1;
        else if (*at == '"')
            at++;
    return NULL;
}

/* Returns the field with each doubled quote as one. The first such field of a row makes room for the rest of the line, so that
 * the buffer does not move when further fields are added. */
static struct csv_field undo_doubling(struct csv *csv, const char *begin, const char *end, const char *line_end)
{
    if (csv->unquoted_length == 0 && csv->unquoted_capacity < (size_t)(line_end - begin)) {
        csv->unquoted_capacity = (size_t)(line_end - begin);
        csv->unquoted = memory_resize(csv->unquoted, csv->unquoted_capacity, 1);
    }
    char *text = csv->unquoted + csv->unquoted_length, *out = text;
    for (; begin < end; begin += *begin == '"' ? 2 : 1)
        *out++ = *begin;
    csv->unquoted_length += (size_t)(out - text);
    return (struct csv_field){text, (size_t)(out - text)};
}

static struct csv_field unquote(struct csv *csv, const char *begin, const char *end, const char *line_end)
{
    if (memchr(begin, '"', (size_t)(end - begin)))
        return undo_doubling(csv, begin, end, line_end);
    return (struct csv_field){begin, (size_t)(end - begin)};
}

static int next_field(struct csv *csv, const char **at, const char *end, struct error *error)
{
    const char *begin = *at;
    while (begin < end && is_space(csv, *begin))
        begin++;
    bool quoted = begin < end && *begin == '"';
    const char *after = quoted ? skip_quoted(begin + 1, end) : begin, *stop = NULL;
    if (after)
        stop = memchr(after, csv->separator, (size_t)(end - after));
    *at = stop ? stop + 1 : NULL;
    if (!stop)
        stop = end;
    if (!after || (quoted && trim(csv, after, stop).length > 0))
        return error_set(error, ERROR_INVALID, "line %lld, column %u: a quote is not closed before the column ends",
                         (long long)csv->line, csv->count + 1);
    return add_field(csv, quoted ? unquote(csv, begin + 1, after - 1, end) : trim(csv, begin, stop), error);
}

/* ---------------------------------------------------------------- rows of JSON Lines */

#define NAME_SHOWN 40

static const char *show_name(const char *name, char shown[NAME_SHOWN + 1])
{
    return terminal_text_shorten(name, strlen(name), NAME_SHOWN, shown);
}

/* Gives the names of the first object's fields as a row. The object is read again for the first row of values. */
static int give_names(struct csv *csv, struct error *error)
{
    struct json_lines first = csv->lines;
    int result = json_lines_next(&first, &csv->names, error);
    csv->line = first.line;
    csv->gave_names = true;
    for (const struct json *item = json_first(csv->names); result > 0 && item; item = json_next(item)) {
        const char *name = json_key(item);
        if (add_field(csv, (struct csv_field){name, strlen(name)}, error) < 0)
            return -1;
    }
    if (result > 0 && csv->count == 0)
        return error_set(error, ERROR_INVALID, "line %lld is an empty object", (long long)csv->line);
    return result;
}

/* Adds a field and the text of its value. The field gets its pointer later, since the texts may still move. */
static int add_value(struct csv *csv, const char *name, const struct json *value, struct error *error)
{
    char shown[NAME_SHOWN + 1];
    if (!value)
        return error_set(error, ERROR_INVALID, "line %lld has no field \"%s\", which the first line has",
                         (long long)csv->line, show_name(name, shown));
    if (json_type(value) == JSON_OBJECT || json_type(value) == JSON_ARRAY)
        return error_set(error, ERROR_INVALID,
                         "line %lld: the field \"%s\" is a JSON %s; a table has numbers, strings and booleans",
                         (long long)csv->line, show_name(name, shown), json_type_name(json_type(value)));
    SCOPED_FREE char *text = json_scalar_text(value);
    size_t length = text ? strlen(text) : 0, wanted = csv->unquoted_length + length;
    if (wanted > csv->unquoted_capacity) {
        csv->unquoted_capacity = 2 * wanted;
        csv->unquoted = memory_resize(csv->unquoted, csv->unquoted_capacity, 1);
    }
    if (length > 0)
        memcpy(csv->unquoted + csv->unquoted_length, text, length);
    csv->unquoted_length = wanted;
    return add_field(csv, (struct csv_field){NULL, length}, error);
}

static int refuse_more(const struct csv *csv, struct error *error)
{
    char shown[NAME_SHOWN + 1];
    for (const struct json *item = json_first(csv->object); item; item = json_next(item))
        if (!json_member(csv->names, json_key(item)))
            return error_set(error, ERROR_INVALID, "line %lld has a field \"%s\", which the first line does not have",
                             (long long)csv->line, show_name(json_key(item), shown));
    return error_set(error, ERROR_INVALID, "line %lld has %zu fields, the first line has %zu", (long long)csv->line,
                     json_count(csv->object), json_count(csv->names));
}

/* Fields mostly have the order of the first object, so only others are searched for. */
static int give_values(struct csv *csv, struct error *error)
{
    json_free(csv->object);
    csv->object = NULL;
    csv->gave_names = false;
    int result = json_lines_next(&csv->lines, &csv->object, error);
    csv->line = csv->lines.line;
    if (result <= 0)
        return result;
    const struct json *next = json_first(csv->object);
    for (const struct json *name = json_first(csv->names); name; name = json_next(name)) {
        const char *key = json_key(name);
        const struct json *value = next && strcmp(json_key(next), key) == 0 ? next : json_member(csv->object, key);
        if (add_value(csv, key, value, error) < 0)
            return -1;
        next = value ? json_next(value) : NULL;
    }
    if (json_count(csv->object) != csv->count)
        return refuse_more(csv, error);
    const char *text = csv->unquoted ? csv->unquoted : ""; /* nothing was copied if all fields are empty */
    for (unsigned i = 0; i < csv->count; text += csv->fields[i++].length)
        csv->fields[i].text = csv->fields[i].length > 0 ? text : "";
    return 1;
}

int csv_next(struct csv *csv, struct error *error)
{
    if (csv->is_json) {
        csv->count = 0;
        csv->unquoted_length = 0;
        return csv->names ? give_values(csv, error) : give_names(csv, error);
    }
    while (csv->at < csv->end) {
        const char *begin = csv->at, *line_end = memchr(begin, '\n', (size_t)(csv->end - begin));
        const char *end = line_end ? line_end : csv->end;
        csv->at = line_end ? line_end + 1 : csv->end;
        csv->line++;
        csv->count = 0;
        csv->unquoted_length = 0;
        if (trim(csv, begin, end).length == 0)
            continue;
        for (const char *at = begin; at;)
            if (next_field(csv, &at, end, error) < 0)
                return -1;
        return 1;
    }
    return 0;
}

/* ---------------------------------------------------------------- fields */

bool csv_field_is(const struct csv_field *field, const char *text)
{
    return field->length == strlen(text) && memcmp(field->text, text, field->length) == 0;
}

/* Reads digits with at most one point, such as "-12.75". Both the digits and the power of ten are exact as doubles, so their quotient is
 * rounded once, as strtod does, in a tenth of the time. Returns false for other texts. */
static bool read_plain(const struct csv_field *field, double *ret_number)
{
    static const double powers[INTEGER_DIGITS_MAX + 1] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                          1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    size_t at = field->length > 0 && field->text[0] == '-', digits = 0, decimals = 0;
    int64_t number = 0;
    for (bool point = false; at < field->length; at++) {
        char byte = field->text[at];
        if (byte == '.' && !point) {
            point = true;
            continue;
        }
        if (byte < '0' || byte > '9' || ++digits > INTEGER_DIGITS_MAX)
            return false;
        number = 10 * number + (byte - '0');
        decimals += point;
    }
    double value = (double)number / powers[decimals];
    *ret_number = field->length > 0 && field->text[0] == '-' ? -value : value;
    return digits > 0;
}

bool csv_number(const struct csv_field *field, double *ret_number)
{
    static const char allowed[] = "0123456789+-.eE";
    char text[NUMBER_LENGTH_MAX + 1], *end;
    if (read_plain(field, ret_number))
        return true;
    if (field->length == 0 || field->length > NUMBER_LENGTH_MAX || !strchr(allowed, field->text[0]))
        return false;
    memcpy(text, field->text, field->length);
    text[field->length] = '\0';
    if (strspn(text, allowed) != field->length)
        return false;
    *ret_number = strtod(text, &end);
    return *end == '\0' && isfinite(*ret_number);
}

bool csv_is_missing(const struct csv_field *field)
{
    static const char *const words[] = {"", "NA", "N/A", "NaN", "null", "none", "?"};
    if (field->length > strlen("null"))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == field->length && strncasecmp(words[i], field->text, field->length) == 0)
            return true;
    return false;
}

/* ---------------------------------------------------------------- labels */

static bool is_integer(const struct csv_field *label)
{
    size_t sign = label->length > 0 && (label->text[0] == '-' || label->text[0] == '+');
    if (label->length == sign || label->length - sign > INTEGER_DIGITS_MAX)
        return false;
    for (size_t i = sign; i < label->length; i++)
        if (label->text[i] < '0' || label->text[i] > '9')
            return false;
    return true;
}

static int compare_bytes(const void *one, const void *other)
{
    const struct csv_field *a = one, *b = other;
    int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

static int compare_numbers(const void *one, const void *other)
{
    double a = 0, b = 0;
    csv_number(one, &a);
    csv_number(other, &b);
    return a != b ? (a > b) - (a < b) : compare_bytes(one, other);
}

/* The place of `label`, or the one that it would have. */
static unsigned place_of(const struct csv_labels *labels, const struct csv_field *label,
                         int (*compare)(const void *, const void *), bool *ret_found)
{
    unsigned low = 0, high = labels->count;
    *ret_found = false;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        int order = compare(&labels->list[middle], label);
        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int csv_labels_add(struct csv_labels *labels, const struct csv_field *label, struct error *error)
{
    bool found;
    unsigned place = place_of(labels, label, compare_bytes, &found);
    if (found)
        return 0;
    if (labels->count == CSV_LABELS_MAX)
        return error_set(error, ERROR_TOO_LARGE, "the labels have more than %d different values", CSV_LABELS_MAX);
    if (label->length > CSV_LABEL_LENGTH_MAX)
        return error_set(error, ERROR_TOO_LARGE, "a label has %zu bytes; at most %d are allowed", label->length,
                         CSV_LABEL_LENGTH_MAX);
    if (labels->count == labels->capacity) {
        labels->capacity = labels->capacity > 0 ? 2 * labels->capacity : 16;
        labels->list = memory_resize(labels->list, labels->capacity, sizeof *labels->list);
    }
    memmove(&labels->list[place + 1], &labels->list[place], (labels->count - place) * sizeof *labels->list);
    labels->list[place] = (struct csv_field){memory_copy_bytes(label->text, label->length), label->length};
    labels->integers = (labels->count == 0 || labels->integers) && is_integer(label);
    labels->count++;
    return 0;
}

void csv_labels_sort(struct csv_labels *labels)
{
    if (labels->integers)
        qsort(labels->list, labels->count, sizeof *labels->list, compare_numbers);
}

int csv_labels_find(const struct csv_labels *labels, const struct csv_field *label)
{
    bool found;
    /* A label that is no integer is none of those. */
    if (labels->integers && !is_integer(label))
        return -1;
    unsigned place = place_of(labels, label, labels->integers ? compare_numbers : compare_bytes, &found);
    return found ? (int)place : -1;
}

void csv_labels_release(struct csv_labels *labels)
{
    for (unsigned i = 0; i < labels->count; i++)
        free((char *)labels->list[i].text);
    free(labels->list);
    *labels = (struct csv_labels){.list = NULL};
}

/* ---------------------------------------------------------------- the line with names */

/* Whether no label of the rows after the one read last is `name`, and the labels are all numbers or some are the same. */
static bool names_labels(const struct csv *csv, const struct csv_field *name)
{
    struct csv below = {.at = csv->at, .end = csv->end, .separator = csv->separator};
    struct csv_labels labels = {.list = NULL};
    int64_t rows = 0;
    double number;
    bool numbers = true, found = false, many = false;
    while (!found && csv_next(&below, NULL) > 0) {
        const struct csv_field *label = &below.fields[below.count - 1];
        rows++;
        numbers = numbers && csv_number(label, &number);
        found = compare_bytes(label, name) == 0;
        many = many || csv_labels_add(&labels, label, NULL) < 0;
    }
    bool repeated = !many && labels.count < rows;
    csv_labels_release(&labels);
    csv_release(&below);
    return !found && rows > 0 && (numbers || repeated);
}

/* Whether the row read last, which has no number, is an example as those below it are: they have one of its words again in its column, and
 * no number where it has a word. */
static bool is_example(const struct csv *csv)
{
    struct csv below = {.at = csv->at, .end = csv->end, .separator = csv->separator};
    bool again = false, names = false;
    double number;
    for (int row = 0; row < ROWS_LOOKED_AT && !names && csv_next(&below, NULL) > 0; row++) {
        unsigned same = 0, words = 0;
        for (unsigned i = 0; i < csv->count && i < below.count; i++) {
            const struct csv_field *field = &csv->fields[i];
            words += field->length > 0;
            same += field->length > 0 && compare_bytes(field, &below.fields[i]) == 0;
            names = names || (!csv_is_missing(field) && csv_number(&below.fields[i], &number));
        }
        again = again || (same > 0 && same < words); /* the same names again are no example */
    }
    csv_release(&below);
    return again && !names;
}

static bool has_digits_only(const struct csv_field *field)
{
    return is_integer(field) && field->text[0] != '-' && field->text[0] != '+';
}

bool csv_is_header(const struct csv *csv)
{
    if (csv->is_json)
        return csv->gave_names;
    const struct csv_field *last = &csv->fields[csv->count - 1];
    bool words = true;
    double number;
    if (csv_number(last, &number))
        return false;
    for (unsigned i = 0; i < csv->count; i++) {
        bool is_number = csv_number(&csv->fields[i], &number);
        if (is_number && !has_digits_only(&csv->fields[i]))
            return false;
        words = words && !is_number;
    }
    return words ? !is_example(csv) : !csv_is_missing(last) && names_labels(csv, last);
}

bool csv_find_column(const struct csv *csv, bool header, const char *wanted, unsigned *ret_column)
{
    const struct csv_field name = {wanted, strlen(wanted)};
    double number;
    for (unsigned i = 0; header && i < csv->count; i++)
        if (csv_field_is(&csv->fields[i], wanted)) {
            *ret_column = i;
            return true;
        }
    if (!is_integer(&name) || !csv_number(&name, &number) || number < 1 || number > csv->count)
        return false;
    *ret_column = (unsigned)number - 1;
    return true;
}

/* ---------------------------------------------------------------- writing */

int csv_append_cell(struct buffer *out, const char *text, const char *end, struct error *error)
{
    if (!strpbrk(text, "\",\r\n"))
        return buffer_append_string(out, text, error) < 0 ? -1 : buffer_append_string(out, end, error);
    if (buffer_append_byte(out, '"', error) < 0)
        return -1;
    for (; *text; text++)
        if ((*text == '"' && buffer_append_byte(out, '"', error) < 0) || buffer_append_byte(out, *text, error) < 0)
            return -1;
    return buffer_append_byte(out, '"', error) < 0 ? -1 : buffer_append_string(out, end, error);
}
