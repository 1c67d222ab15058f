/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/row_numbers.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/memory.h"

/* In fewer rows, other values may happen to count. */
#define ROWS_LEAST 10
#define ROWS_LEAST_OF_IDENTIFIER 3

void row_numbers_add(struct row_numbers *numbers, const struct csv *row)
{
    double number = 0;
    if (!numbers->list)
        numbers->list = memory_allocate(row->count, sizeof *numbers->list);
    for (unsigned i = 0; i < row->count; i++) {
        struct row_number *column = &numbers->list[i];
        if (numbers->rows > 0 && !column->counts)
            continue;
        column->counts = csv_number(&row->fields[i], &number);
        if (numbers->rows == 0)
            column->first = number;
        column->counts = column->counts && number == trunc(number) && number == column->first + (double)numbers->rows;
    }
    numbers->rows++;
}

/* Whether a name ends in a word "id": "user_id" and "PassengerId" do, "acid" does not. */
static bool ends_in_id(const char *name)
{
    size_t length = strlen(name);
    const char *id = length >= 2 ? name + length - 2 : "";
    if (strcasecmp(id, "id") != 0)
        return false;
    return id == name || !isalpha((unsigned char)id[-1]) ||
           (islower((unsigned char)id[-1]) && isupper((unsigned char)*id));
}

bool row_numbers_has(const struct row_numbers *numbers, unsigned column, const char *name)
{
    bool identifier = name && (*name == '\0' || strcasecmp(name, "index") == 0 || ends_in_id(name));
    if (numbers->rows == 0 || !numbers->list[column].counts)
        return false;
    if (identifier)
        return numbers->rows >= ROWS_LEAST_OF_IDENTIFIER;
    double first = numbers->list[column].first;
    return numbers->rows >= ROWS_LEAST && (first == 0 || first == 1);
}

void row_numbers_release(struct row_numbers *numbers)
{
    free(numbers->list);
    *numbers = (struct row_numbers){.list = NULL};
}
