/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/row_numbers.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/memory.h"

/* Whether the first column of that name numbers the rows: its values are `first`, `first` + 1, … but for the last one, which is `last` more
 * than the one before. */
static bool numbers_rows(const char *name, int rows, double first, double last)
{
    struct row_numbers numbers = {.list = NULL};
    for (int i = 0; i < rows; i++) {
        double value = first + i - (i > 0 && i == rows - 1 ? 1 - last : 0);
        SCOPED_FREE char *text = memory_format("%g", value);
        struct csv_field fields[] = {{text, strlen(text)}, {"word", 4}};
        const struct csv row = {.fields = fields, .count = 2};
        row_numbers_add(&numbers, &row);
    }
    bool has = row_numbers_has(&numbers, 0, name);
    cr_expect_not(row_numbers_has(&numbers, 1, "id"));
    row_numbers_release(&numbers);
    return has;
}

Test(row_numbers, columns_that_number_the_rows)
{
    static const char *const identifiers[] = {"", "id", "Id", "index", "INDEX", "user_id", "PassengerId", "row ID"};
    static const char *const others[] = {"a", "humid", "acid", "ID3", "Idaho", "year", NULL};
    for (size_t i = 0; i < sizeof identifiers / sizeof *identifiers; i++) {
        cr_expect(numbers_rows(identifiers[i], 3, 892, 1), "%s", identifiers[i]);
        cr_expect_not(numbers_rows(identifiers[i], 2, 0, 1), "%s", identifiers[i]);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        cr_expect_not(numbers_rows(others[i], 9, 1, 1), "%s", others[i]);
        cr_expect_not(numbers_rows(others[i], 30, 1990, 1), "%s", others[i]);
        cr_expect(numbers_rows(others[i], 10, 1, 1), "%s", others[i]);
        cr_expect(numbers_rows(others[i], 10, 0, 1), "%s", others[i]);
    }
}

Test(row_numbers, a_gap_or_a_fraction_is_no_number_of_a_row)
{
    cr_expect_not(numbers_rows("id", 10, 1, 2));
    cr_expect_not(numbers_rows("id", 10, 1, 0));
    cr_expect_not(numbers_rows("id", 10, 1, -1));
    cr_expect_not(numbers_rows("id", 10, 0.5, 1));
}
