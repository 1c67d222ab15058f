/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/placement_rows.h"

#include <string.h>

bool placement_has_tables(const struct placement *placement)
{
    for (unsigned i = 0; i < placement->server_count; i++)
        if (placement->table_counts[i] > 0)
            return true;
    return false;
}

static int64_t row_total(const struct placement *placement, unsigned server)
{
    unsigned count = placement->table_counts[server];
    const struct placement_table *last = count > 0 ? &placement->tables[server][count - 1] : NULL;
    return last ? last->first + last->rows : 0;
}

bool placement_knows_rows(const struct placement *placement, unsigned server, const struct row_set *rows)
{
    return rows->count == 0 || (int64_t)rows->rows[rows->count - 1] < row_total(placement, server);
}

/* ---------------------------------------------------------------- walking */

static void walk_runs(const struct placement *placement, unsigned server, placement_visit *visit, void *context)
{
    for (unsigned i = 0; i < placement->run_counts[server]; i++) {
        const struct placement_run *run = &placement->runs[server][i];
        visit(context, &(struct placement_segment){run->offset, run->local, run->local, run->elements, false});
    }
}

static int64_t walk_dense(const struct placement *placement, unsigned server, placement_visit *visit, void *context)
{
    int64_t carried = 0;
    for (unsigned i = 0; i < placement->dense_counts[server]; i++) {
        const struct placement_run *run = &placement->dense[server][i];
        visit(context, &(struct placement_segment){run->offset, run->local, carried, run->elements, false});
        carried += run->elements;
    }
    return carried;
}

static void walk_rows(const struct placement *placement, unsigned server, const struct row_set *rows, int64_t carried,
                      placement_visit *visit, void *context)
{
    const struct placement_table *table = placement->tables[server];
    for (unsigned i = 0; i < rows->count; i++) {
        int64_t row = rows->rows[i];
        while (row >= table->first + table->rows)
            table++;
        int64_t at = (row - table->first) * table->row_elements;
        visit(context,
              &(struct placement_segment){table->offset + at, table->local + at, carried, table->row_elements, true});
        carried += table->row_elements;
    }
}

void placement_walk(const struct placement *placement, unsigned server, const struct row_set *rows,
                    placement_visit *visit, void *context)
{
    if (rows == NULL || !rows->listed) {
        walk_runs(placement, server, visit, context);
        return;
    }
    int64_t carried = walk_dense(placement, server, visit, context);
    walk_rows(placement, server, rows, carried, visit, context);
}

static void count_elements(void *context, const struct placement_segment *segment)
{
    *(int64_t *)context += segment->elements;
}

int64_t placement_elements_of(const struct placement *placement, unsigned server, const struct row_set *rows)
{
    int64_t elements = 0;
    placement_walk(placement, server, rows, count_elements, &elements);
    return elements;
}

/* ---------------------------------------------------------------- copying */

struct carriage {
    const float *from;
    float *to;
    enum placement_order from_order, to_order;
};

static int64_t place_in(const struct placement_segment *segment, enum placement_order order)
{
    switch (order) {
    case ORDER_LAYOUT:
        return segment->offset;
    case ORDER_PACKED:
        return segment->local;
    case ORDER_CARRIED:
        break;
    }
    return segment->carried;
}

static void carry(void *context, const struct placement_segment *segment)
{
    const struct carriage *carriage = context;
    memcpy(carriage->to + place_in(segment, carriage->to_order),
           carriage->from + place_in(segment, carriage->from_order), (size_t)segment->elements * sizeof(float));
}

void placement_carry(const struct placement *placement, unsigned server, const struct row_set *rows, const float *from,
                     enum placement_order from_order, float *to, enum placement_order to_order)
{
    struct carriage carriage = {from, to, from_order, to_order};
    placement_walk(placement, server, rows, carry, &carriage);
}

/* ---------------------------------------------------------------- choosing */

static bool list_rows(const struct placement_table *table, const bool *marked, struct row_set *set)
{
    for (int64_t row = 0; row < table->rows; row++)
        if (marked[table->first_row + row] && !row_set_add(set, (uint32_t)(table->first + row)))
            return false;
    return true;
}

static void choose(const struct placement *placement, unsigned server, const struct parameter_tensor *tensor,
                   const bool *marked, struct row_set *set)
{
    row_set_clear(set);
    for (unsigned i = 0; i < placement->table_counts[server]; i++) {
        const struct placement_table *table = &placement->tables[server][i];
        if (table->tensor == tensor && !list_rows(table, marked, set)) {
            row_set_all(set);
            return;
        }
    }
    size_t listed =
        (size_t)placement_elements_of(placement, server, set) * sizeof(float) + set->count * sizeof(uint32_t);
    if (listed >= (size_t)placement->elements[server] * sizeof(float))
        row_set_all(set);
}

void placement_choose_rows(const struct placement *placement, const struct parameter_tensor *tensor, const bool *marked,
                           struct row_set *sets)
{
    for (unsigned i = 0; i < placement->server_count; i++)
        choose(placement, i, tensor, marked, &sets[i]);
}
