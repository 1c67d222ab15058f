/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/placement_rows.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/scope.h"

/* A large matrix between small tensors: 1000 x 100 floats are 400 KB. */
static struct parameter_tensor tensors[] = {
    {.name = "a.weight", .shape = {10, 4}, .rank = 2, .offset = 0, .elements = 40},
    {.name = "a.bias", .shape = {10}, .rank = 1, .offset = 40, .elements = 10},
    {.name = "b.weight", .shape = {1000, 100}, .rank = 2, .offset = 50, .elements = 100000},
    {.name = "b.bias", .shape = {7}, .rank = 1, .offset = 100050, .elements = 7},
};
static const struct parameter_layout layout = {.tensors = tensors, .tensor_count = 4, .elements = 100057};

Test(placement, one_server_holds_all_in_one_run)
{
    SCOPED(placement_release) struct placement placement;
    placement_init(&placement, &layout, 1);
    cr_expect(placement.piece_count == 4 && placement.run_counts[0] == 1 && placement.elements[0] == layout.elements);
    cr_expect(placement_is_whole(&placement.pieces[2]));
}

Test(placement, small_tensors_go_in_turn_and_large_ones_are_cut_by_rows)
{
    SCOPED(placement_release) struct placement placement;
    placement_init(&placement, &layout, 3);
    cr_assert(placement.piece_count == 6);
    cr_expect(placement.pieces[0].server == 0 && placement.pieces[1].server == 1);
    int64_t rows = 0;
    for (unsigned i = 2; i < 5; i++) {
        const struct placement_piece *piece = &placement.pieces[i];
        cr_expect(piece->first_row == rows && piece->offset == 50 + rows * 100 && piece->elements == piece->rows * 100);
        cr_expect(!placement_is_whole(piece) && piece->server == (2 + i - 2) % 3);
        rows += piece->rows;
    }
    cr_expect(rows == 1000);
    cr_expect(placement.elements[0] + placement.elements[1] + placement.elements[2] == layout.elements);
}

Test(placement, packing_and_unpacking_visit_every_element_once)
{
    SCOPED(placement_release) struct placement placement;
    placement_init(&placement, &layout, 2);
    float *flat = calloc(layout.elements, sizeof *flat), *back = calloc(layout.elements, sizeof *back);
    for (int64_t i = 0; i < layout.elements; i++)
        flat[i] = (float)(i + 1);
    for (unsigned server = 0; server < 2; server++) {
        float *packed = calloc(placement.elements[server], sizeof *packed);
        placement_pack(&placement, server, flat, packed);
        placement_unpack(&placement, server, packed, back);
        free(packed);
    }
    for (int64_t i = 0; i < layout.elements; i++)
        cr_assert(back[i] == flat[i], "element %lld", (long long)i);
    free(flat);
    free(back);
}

/* ---------------------------------------------------------------- tables */

#define TABLE_ROWS 1001
#define TABLE_ELEMENTS (8 + TABLE_ROWS * 100 + 7)
static struct parameter_tensor table_tensors[] = {
    {.name = "before", .shape = {8}, .rank = 1, .offset = 0, .elements = 8},
    {.name = "table",
     .shape = {TABLE_ROWS, 100},
     .rank = 2,
     .offset = 8,
     .elements = TABLE_ROWS * 100,
     .by_rows = true},
    {.name = "after", .shape = {7}, .rank = 1, .offset = 8 + TABLE_ROWS * 100, .elements = 7},
};
static const struct parameter_layout table_layout = {
    .tensors = table_tensors, .tensor_count = 3, .elements = TABLE_ELEMENTS};

/* Marks some rows, both ends of every piece among them. */
static void mark_some(bool marked[TABLE_ROWS])
{
    for (int i = 0; i < TABLE_ROWS; i++)
        marked[i] = i % 37 == 5 || i == 0 || i == TABLE_ROWS - 1 || i == TABLE_ROWS / 2 || i == TABLE_ROWS / 2 - 1;
}

Test(placement, only_the_chosen_rows_of_a_table_are_sent)
{
    SCOPED(placement_release) struct placement placement;
    static bool marked[TABLE_ROWS];
    struct row_set sets[2] = {0};
    static float flat[TABLE_ELEMENTS], packed[TABLE_ELEMENTS], carried[TABLE_ELEMENTS], back[TABLE_ELEMENTS];
    placement_init(&placement, &table_layout, 2);
    cr_assert(placement_has_tables(&placement));
    mark_some(marked);
    placement_choose_rows(&placement, &table_tensors[1], marked, sets);
    for (int i = 0; i < TABLE_ELEMENTS; i++)
        flat[i] = (float)(i + 1);
    for (unsigned server = 0; server < 2; server++) {
        cr_expect(sets[server].listed &&
                  placement_elements_of(&placement, server, &sets[server]) < placement.elements[server] / 10);
        placement_pack(&placement, server, flat, packed);
        placement_carry(&placement, server, &sets[server], packed, ORDER_PACKED, carried, ORDER_CARRIED);
        placement_carry(&placement, server, &sets[server], carried, ORDER_CARRIED, back, ORDER_LAYOUT);
        row_set_release(&sets[server]);
    }
    for (int i = 0; i < TABLE_ELEMENTS; i++) {
        bool travels = i < 8 || i >= 8 + TABLE_ROWS * 100 || marked[(i - 8) / 100];
        cr_assert(back[i] == (travels ? flat[i] : 0), "element %d", i);
    }
}

Test(placement, all_rows_travel_where_a_list_would_save_nothing)
{
    SCOPED(placement_release) struct placement placement;
    static bool marked[TABLE_ROWS];
    struct row_set set = {0};
    placement_init(&placement, &table_layout, 1);
    for (int i = 0; i < TABLE_ROWS; i++)
        marked[i] = i != 7;
    placement_choose_rows(&placement, &table_tensors[1], marked, &set);
    cr_expect(!set.listed);
    row_set_release(&set);
}

Test(placement, a_list_that_names_a_row_too_many_is_not_known)
{
    SCOPED(placement_release) struct placement placement, plain;
    struct row_set set = {.listed = true};
    placement_init(&placement, &table_layout, 1);
    placement_init(&plain, &layout, 1);
    cr_expect(placement_knows_rows(&placement, 0, &set) && placement_knows_rows(&plain, 0, &set));
    row_set_add(&set, TABLE_ROWS - 1);
    cr_expect(placement_knows_rows(&placement, 0, &set) && !placement_knows_rows(&plain, 0, &set));
    row_set_add(&set, TABLE_ROWS);
    cr_expect(!placement_knows_rows(&placement, 0, &set));
    row_set_release(&set);
}
