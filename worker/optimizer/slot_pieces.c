/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/optimizer/slot_pieces.h"

#include "common/memory.h"
#include "worker/optimizer/optimizer.h"

struct share {
    struct device *device;
    struct device_stream *copies;
    float *arrays[OPTIMIZER_SLOTS_MAX];
};

struct slot_pieces {
    struct shard_plan plan;
    struct shard_kept kept[SHARDS_KEPT_MAX];
    unsigned kept_count, arrays;
    struct share *shares;
};

/* ---------------------------------------------------------------- where each piece is */

static int64_t elements_before(const struct shard_plan *plan, const struct shard_kept *kept, unsigned count,
                               unsigned device)
{
    int64_t elements = 0;
    for (unsigned k = 0; k < count; k++)
        elements += shard_device_elements(plan, kept[k].owner, device);
    return elements;
}

int64_t slot_pieces_elements(const struct shard_plan *plan, unsigned rank, unsigned device)
{
    struct shard_kept kept[SHARDS_KEPT_MAX];
    return elements_before(plan, kept, shard_kept(plan, rank, kept), device);
}

float *slot_pieces_at(const struct slot_pieces *pieces, unsigned device, unsigned array, unsigned kept, int64_t index)
{
    return pieces->shares[device].arrays[array] + elements_before(&pieces->plan, pieces->kept, kept, device) +
           index * shard_piece_elements(&pieces->plan);
}

/* ---------------------------------------------------------------- copies for the host */

static void copy_share(struct slot_pieces *pieces, unsigned device, unsigned array, float *host, bool to_host)
{
    for (unsigned k = 0; k < pieces->kept_count; k++)
        for (int64_t i = 0; i < shard_stripes(&pieces->plan, pieces->kept[k].owner); i++) {
            struct shard_stripe piece = shard_piece(&pieces->plan, pieces->kept[k].owner, i, device);
            float *here = slot_pieces_at(pieces, device, array, k, i),
                  *there = host + pieces->kept[k].slot + piece.slot;
            if (piece.elements > 0)
                device_copy(pieces->shares[device].copies,
                            &(struct copy){.bytes = piece.elements * (int64_t)sizeof(float),
                                           .from = to_host ? here : there,
                                           .to = to_host ? there : here});
        }
}

static int copy_all(struct slot_pieces *pieces, float *const *host, bool to_host, struct error *error)
{
    for (unsigned device = 0; device < pieces->plan.devices; device++)
        for (unsigned array = 0; array < pieces->arrays; array++)
            copy_share(pieces, device, array, host[array], to_host);
    int result = 0;
    for (unsigned device = 0; device < pieces->plan.devices; device++)
        if (device_stream_synchronise(pieces->shares[device].copies, result == 0 ? error : NULL) < 0)
            result = -1;
    return result;
}

int slot_pieces_to_host(struct slot_pieces *pieces, float *const *host, struct error *error)
{
    return copy_all(pieces, host, true, error);
}

int slot_pieces_to_devices(struct slot_pieces *pieces, float *const *host, struct error *error)
{
    return copy_all(pieces, host, false, error);
}

/* ---------------------------------------------------------------- life cycle */

static int open_share(struct slot_pieces *pieces, unsigned device, struct error *error)
{
    struct share *share = &pieces->shares[device];
    int64_t elements = elements_before(&pieces->plan, pieces->kept, pieces->kept_count, device);
    if (device_stream_new(share->device, &share->copies, error) < 0)
        return -1;
    for (unsigned array = 0; array < pieces->arrays; array++) {
        void *memory;
        if (device_allocate(share->device, MEMORY_DEVICE, (size_t)elements * sizeof(float), &memory, error) < 0)
            return error_wrap(error, "optimizer slots on device %u", device);
        share->arrays[array] = memory;
    }
    return 0;
}

int slot_pieces_new(struct device *const *devices, const struct shard_plan *plan, unsigned rank, unsigned arrays,
                    struct slot_pieces **ret_pieces, struct error *error)
{
    struct slot_pieces *pieces = memory_allocate(1, sizeof *pieces);
    pieces->plan = *plan;
    pieces->kept_count = shard_kept(plan, rank, pieces->kept);
    pieces->arrays = arrays;
    pieces->shares = memory_allocate(plan->devices, sizeof *pieces->shares);
    for (unsigned device = 0; device < plan->devices; device++)
        pieces->shares[device].device = devices[device];
    for (unsigned device = 0; device < plan->devices; device++)
        if (open_share(pieces, device, error) < 0) {
            slot_pieces_free(pieces);
            return -1;
        }
    *ret_pieces = pieces;
    return 0;
}

void slot_pieces_free(struct slot_pieces *pieces)
{
    if (pieces == NULL)
        return;
    for (unsigned device = 0; device < pieces->plan.devices; device++) {
        struct share *share = &pieces->shares[device];
        device_stream_free(share->copies);
        for (unsigned array = 0; array < pieces->arrays; array++)
            device_free(share->device, share->arrays[array]);
    }
    free(pieces->shares);
    free(pieces);
}
