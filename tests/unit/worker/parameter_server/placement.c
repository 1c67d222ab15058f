/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/placement.h"

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
