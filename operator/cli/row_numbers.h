/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the columns of a table that only number its rows, such as Id or PassengerId: a model that gets them learns the order of the rows.
 *
 *     struct row_numbers numbers = {.list = NULL};
 *     row_numbers_add(&numbers, &csv);                each row with values
 *     … row_numbers_has(&numbers, column, name) …
 *     row_numbers_release(&numbers);
 */
#ifndef COXSWAIN_CLI_ROW_NUMBERS_H
#define COXSWAIN_CLI_ROW_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/data/csv.h"

struct row_numbers {
    struct row_number {
        double first;
        bool counts; /* each row so far has the next integer */
    } * list;        /* one for each column; owned */
    int64_t rows;
};

/* All rows must have as many fields as the first one. */
void row_numbers_add(struct row_numbers *numbers, const struct csv *row);
/* Returns whether the column has consecutive integers in the order of the rows: from 0 or 1 on in at least ten rows or, if `name` is that
 * of an identifier ("", index, id, or a name that ends in an id of its own, such as user_id and PassengerId), from any integer on in at
 * least three. `name` NULL: the table has no names. */
bool row_numbers_has(const struct row_numbers *numbers, unsigned column, const char *name);
void row_numbers_release(struct row_numbers *numbers);

#endif
