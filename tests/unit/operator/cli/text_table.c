/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/text_table.h"

#include <criterion/criterion.h>

Test(text_table, columns_are_as_wide_as_their_longest_cells)
{
    static const char *const cells[] = {"A", "B", NULL, "long", "", "end"};
    SCOPED(text_table_release) struct text_table table;
    SCOPED_BUFFER out = BUFFER_INIT(4096);
    text_table_init(&table, 3);
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        text_table_add(&table, cells[i]);
    text_table_print(&table, &out);
    cr_expect_str_eq(buffer_text(&out), "A      B\nlong       end\n");
}
