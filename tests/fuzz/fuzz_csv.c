/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes are rows whose fields lie inside them or inside what the table keeps, or an error that says where. Every label is found again.
 */
#include <stdlib.h>

#include "common/data/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_field(const struct csv_field *field, const char *begin, const char *end)
{
    double number;
    if (field->text < begin || field->text > end || field->length > (size_t)(end - field->text))
        abort();
    (void)csv_number(field, &number);
    (void)csv_is_missing(field);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
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
        (void)csv_labels_add(&labels, &csv.fields[csv.count - 1], NULL);
    }
    if (result < 0 && error.message[0] == '\0')
        abort();
    csv_labels_sort(&labels);
    for (unsigned i = 0; i < labels.count; i++)
        if (csv_labels_find(&labels, &labels.list[i]) != (int)i)
            abort();
    csv_labels_release(&labels);
    csv_release(&csv);
    return 0;
}
