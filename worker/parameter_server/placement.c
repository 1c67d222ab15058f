/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/placement.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

static int64_t row_count(const struct parameter_tensor *tensor)
{
    return tensor->rank > 0 ? tensor->shape[0] : 1;
}

bool placement_is_whole(const struct placement_piece *piece)
{
    return piece->elements == piece->tensor->elements;
}

static void add_piece(struct placement *placement, const struct parameter_tensor *tensor, unsigned server,
                      int64_t first_row, int64_t rows)
{
    int64_t row_elements = tensor->elements / row_count(tensor);
    struct placement_piece *piece = &placement->pieces[placement->piece_count++];
    *piece = (struct placement_piece){.tensor = tensor,
                                      .server = server,
                                      .first_row = first_row,
                                      .rows = rows,
                                      .offset = tensor->offset + first_row * row_elements,
                                      .local = placement->elements[server],
                                      .elements = rows * row_elements};
    placement->elements[server] += piece->elements;
    if (piece->offset < placement->layout_statistics)
        placement->statistics[server] += piece->elements;
}

/* Returns the server that the next tensor starts with. */
static unsigned place_tensor(struct placement *placement, const struct parameter_tensor *tensor, unsigned server)
{
    int64_t rows = row_count(tensor), parts = 1;
    if (tensor->elements * (int64_t)sizeof(float) >= PLACEMENT_PARTITION_BYTES)
        parts = rows < placement->server_count ? rows : placement->server_count;
    for (int64_t part = 0; part < parts; part++) {
        int64_t first = rows * part / parts, end = rows * (part + 1) / parts;
        add_piece(placement, tensor, server, first, end - first);
        server = (server + 1) % placement->server_count;
    }
    return server;
}

static void add_run(struct placement_run *runs, unsigned *count, const struct placement_piece *piece)
{
    struct placement_run *last = *count > 0 ? &runs[*count - 1] : NULL;
    if (last && last->offset + last->elements == piece->offset && last->local + last->elements == piece->local)
        last->elements += piece->elements;
    else
        runs[(*count)++] = (struct placement_run){piece->offset, piece->local, piece->elements};
}

static bool is_table(const struct parameter_tensor *tensor)
{
    return tensor->by_rows && tensor->elements * (int64_t)sizeof(float) >= PLACEMENT_TABLE_BYTES &&
           tensor->shape[0] <= UINT32_MAX;
}

static void add_table(struct placement *placement, const struct placement_piece *piece)
{
    struct placement_table *tables = placement->tables[piece->server];
    unsigned *count = &placement->table_counts[piece->server];
    const struct placement_table *last = *count > 0 ? &tables[*count - 1] : NULL;
    tables[(*count)++] = (struct placement_table){.tensor = piece->tensor,
                                                  .offset = piece->offset,
                                                  .local = piece->local,
                                                  .first_row = piece->first_row,
                                                  .rows = piece->rows,
                                                  .row_elements = piece->elements / piece->rows,
                                                  .first = last ? last->first + last->rows : 0};
}

static void list_piece(struct placement *placement, const struct placement_piece *piece)
{
    unsigned server = piece->server;
    add_run(placement->runs[server], &placement->run_counts[server], piece);
    if (is_table(piece->tensor))
        add_table(placement, piece);
    else
        add_run(placement->dense[server], &placement->dense_counts[server], piece);
}

void placement_init(struct placement *placement, const struct parameter_layout *layout, unsigned servers)
{
    *placement = (struct placement){
        .server_count = servers,
        .pieces = memory_allocate((size_t)layout->tensor_count * servers, sizeof *placement->pieces),
        .runs = memory_allocate(servers, sizeof *placement->runs),
        .run_counts = memory_allocate(servers, sizeof *placement->run_counts),
        .dense = memory_allocate(servers, sizeof *placement->dense),
        .dense_counts = memory_allocate(servers, sizeof *placement->dense_counts),
        .tables = memory_allocate(servers, sizeof *placement->tables),
        .table_counts = memory_allocate(servers, sizeof *placement->table_counts),
        .elements = memory_allocate(servers, sizeof *placement->elements),
        .statistics = memory_allocate(servers, sizeof *placement->statistics),
        .layout_statistics = layout->statistics,
    };
    unsigned server = 0;
    for (unsigned i = 0; i < layout->tensor_count; i++)
        server = place_tensor(placement, &layout->tensors[i], server);
    for (unsigned i = 0; i < servers; i++) {
        placement->runs[i] = memory_allocate(placement->piece_count, sizeof **placement->runs);
        placement->dense[i] = memory_allocate(placement->piece_count, sizeof **placement->dense);
        placement->tables[i] = memory_allocate(placement->piece_count, sizeof **placement->tables);
    }
    for (unsigned i = 0; i < placement->piece_count; i++)
        list_piece(placement, &placement->pieces[i]);
}

void placement_release(struct placement *placement)
{
    for (unsigned i = 0; i < placement->server_count; i++) {
        free(placement->runs[i]);
        free(placement->dense[i]);
        free(placement->tables[i]);
    }
    free(placement->runs);
    free(placement->run_counts);
    free(placement->dense);
    free(placement->dense_counts);
    free(placement->tables);
    free(placement->table_counts);
    free(placement->elements);
    free(placement->statistics);
    free(placement->pieces);
    *placement = (struct placement){0};
}

void placement_pack(const struct placement *placement, unsigned server, const float *flat, float *packed)
{
    for (unsigned i = 0; i < placement->run_counts[server]; i++) {
        const struct placement_run *run = &placement->runs[server][i];
        memcpy(packed + run->local, flat + run->offset, (size_t)run->elements * sizeof *flat);
    }
}

void placement_unpack(const struct placement *placement, unsigned server, const float *packed, float *flat)
{
    for (unsigned i = 0; i < placement->run_counts[server]; i++) {
        const struct placement_run *run = &placement->runs[server][i];
        memcpy(flat + run->offset, packed + run->local, (size_t)run->elements * sizeof *flat);
    }
}
