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

static void add_run(struct placement *placement, const struct placement_piece *piece)
{
    struct placement_run *runs = placement->runs[piece->server];
    unsigned *count = &placement->run_counts[piece->server];
    struct placement_run *last = *count > 0 ? &runs[*count - 1] : NULL;
    if (last && last->offset + last->elements == piece->offset)
        last->elements += piece->elements;
    else
        runs[(*count)++] = (struct placement_run){piece->offset, piece->local, piece->elements};
}

void placement_init(struct placement *placement, const struct parameter_layout *layout, unsigned servers)
{
    *placement = (struct placement){
        .server_count = servers,
        .pieces = memory_allocate((size_t)layout->tensor_count * servers, sizeof *placement->pieces),
        .runs = memory_allocate(servers, sizeof *placement->runs),
        .run_counts = memory_allocate(servers, sizeof *placement->run_counts),
        .elements = memory_allocate(servers, sizeof *placement->elements),
        .statistics = memory_allocate(servers, sizeof *placement->statistics),
        .layout_statistics = layout->statistics,
    };
    unsigned server = 0;
    for (unsigned i = 0; i < layout->tensor_count; i++)
        server = place_tensor(placement, &layout->tensors[i], server);
    for (unsigned i = 0; i < servers; i++)
        placement->runs[i] = memory_allocate(placement->piece_count, sizeof **placement->runs);
    for (unsigned i = 0; i < placement->piece_count; i++)
        add_run(placement, &placement->pieces[i]);
}

void placement_release(struct placement *placement)
{
    for (unsigned i = 0; i < placement->server_count; i++)
        free(placement->runs[i]);
    free(placement->runs);
    free(placement->run_counts);
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
