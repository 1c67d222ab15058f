/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes are rows whose fields lie inside them or inside what the table keeps, or an error that says where. Every label is found again.
 * Columns become as many numbers by the words that are kept of them as by the table itself.
 */
#include <stdlib.h>

#include "common/data/csv_columns.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_field(const struct csv_field *field, const char *begin, const char *end)
{
    double number;
    if (field->text < begin || field->text > end || field->length > (size_t)(end - field->text))
        abort();
    (void)csv_number(field, &number);
    (void)csv_is_missing(field);
}

static void check_columns(struct csv_columns *columns)
{
    static const struct csv_choice choice = {.skip_before = "", .skip_after = ""};
    struct error error = ERROR_INIT;
    struct csv_columns known;
    if (csv_columns_finish(columns, &choice, &error) < 0) {
        if (error.message[0] == '\0')
            abort();
        return;
    }
    struct json *words = csv_columns_words(columns);
    if (csv_columns_known(&known, words, csv_columns_inputs(columns), &error) < 0 ||
        csv_columns_width(&known) != csv_columns_width(columns))
        abort();
    csv_columns_release(&known);
    json_free(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const struct csv_choice choice = {.label = NULL};
    struct csv_columns columns = {.list = NULL};
    struct error error = ERROR_INIT;
    struct csv_labels labels = {.list = NULL};
    const char *text = (const char *)bytes;
    struct csv csv;
    int result;
    csv_init(&csv, bytes, length);
    while ((result = csv_next(&csv, &error)) > 0) {
        if (csv.count == 0)
            abort();
        for (unsigned i = 0; i < csv.count; i++)
            if (csv.unquoted_length > 0 && csv.fields[i].text >= csv.unquoted &&
                csv.fields[i].text <= csv.unquoted + csv.unquoted_length)
                check_field(&csv.fields[i], csv.unquoted, csv.unquoted + csv.unquoted_length);
            else
                check_field(&csv.fields[i], text, text + length);
        if (columns.count == 0)
            (void)csv_columns_start(&columns, &csv, csv_is_header(&csv), &choice, NULL);
        if (columns.count == csv.count)
            csv_columns_add(&columns, &csv);
        (void)csv_labels_add(&labels, &csv.fields[csv.count - 1], NULL);
    }
    if (result < 0 && error.message[0] == '\0')
        abort();
    check_columns(&columns);
    csv_columns_release(&columns);
    csv_labels_sort(&labels);
    for (unsigned i = 0; i < labels.count; i++)
        if (csv_labels_find(&labels, &labels.list[i]) != (int)i)
            abort();
    csv_labels_release(&labels);
    csv_release(&csv);
    return 0;
}
