/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes are rows that all have the columns of the first one, and texts, or an error that says where.
 */
#include <stdlib.h>
#include <string.h>

#include "common/data/csv.h"
#include "common/data/json_lines.h"

#define TEXTS_MAX (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct error error = ERROR_INIT;
    struct csv csv;
    unsigned columns = 0;
    volatile size_t total = 0; /* so that every byte of a field is read */
    int result;
    csv_init_file(&csv, "a.jsonl", bytes, length);
    while ((result = csv_next(&csv, &error)) > 0) {
        bool first = columns == 0;
        columns = first ? csv.count : columns;
        if (csv.count == 0 || csv.count != columns || csv_is_header(&csv) != first)
            abort();
        for (unsigned i = 0; i < csv.count; i++)
            total += strnlen(csv.fields[i].text, csv.fields[i].length);
    }
    if (result < 0 && error.message[0] == '\0')
        abort();
    csv_release(&csv);
    SCOPED_BUFFER texts = BUFFER_INIT(TEXTS_MAX);
    error_clear(&error);
    if (json_lines_texts(bytes, length, &texts, &error) < 0 && error.message[0] == '\0')
        abort();
    (void)json_lines_are_texts(bytes, length);
    return 0;
}
