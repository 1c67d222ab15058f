/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/operation.h"

#include <string.h>

#include "common/crc32c.h"
#include "common/memory.h"
#include "worker/comm/operation_steps.h"

/* Chunks start at cache lines. */
#define CHUNK_ALIGNMENT 16

static size_t shard_start(const struct operation *operation, unsigned owner)
{
    const struct collective_shards *shards = &operation->shards;
    unsigned size = operation->setting->size;
    size_t start = shards_stripe(shards, size, shards_round(shards, size, shards->offset), owner);
    if (start <= shards->offset)
        return 0;
    return start - shards->offset < operation->elements ? start - shards->offset : operation->elements;
}

static size_t chunk_start(const struct operation *operation, unsigned owner)
{
    if (operation->kind == OPERATION_DIRECT)
        return 0;
    if (operation->kind == OPERATION_SCATTER || operation->kind == OPERATION_GATHER)
        return shard_start(operation, owner);
    if (owner == operation->setting->size)
        return operation->elements;
    return operation->elements * owner / operation->setting->size / CHUNK_ALIGNMENT * CHUNK_ALIGNMENT;
}

static size_t chunk_elements(const struct operation *operation, unsigned owner)
{
    if (operation->kind == OPERATION_DIRECT)
        return operation->elements;
    return chunk_start(operation, owner + 1) - chunk_start(operation, owner);
}

static unsigned own_parts(const struct operation_setting *setting)
{
    return setting->reduction.contributions[setting->rank];
}

/* Every input has its place in the staging area, own ones too (used by direct operations only). */
static float *staged(const struct operation *operation, unsigned input)
{
    return operation->staging + (size_t)input * chunk_elements(operation, operation->setting->rank);
}

static void reserve_staging(struct operation *operation)
{
    const struct operation_setting *setting = operation->setting;
    size_t needed = setting->first_input[setting->size] * chunk_elements(operation, setting->rank);
    if (needed <= operation->staging_elements)
        return;
    free(operation->staging);
    operation->staging = memory_allocate(needed, sizeof(float));
    operation->staging_elements = needed;
}

/* Frames must not move once queued, so all are reserved before the first is sent. */
static void reserve_frames(struct operation *operation, unsigned count)
{
    operation->frame_count = 0;
    if (count <= operation->frame_capacity)
        return;
    operation->frames = memory_resize(operation->frames, count, sizeof(*operation->frames));
    operation->frame_capacity = count;
}

void operation_send_frame(struct operation *operation, unsigned rank, enum frame_kind kind, unsigned part,
                          const void *payload, size_t length, operation_send *send, void *context)
{
    struct outgoing_frame *frame = &operation->frames[operation->frame_count++];
    *frame = (struct outgoing_frame){
        .unsent = &operation->unsent, .payload = payload, .length = length, .urgent = kind == FRAME_RESULT};
    bool checked = operation->setting->check_frames || kind == FRAME_BROADCAST || operation->sources;
    struct frame_header header = {.kind = kind,
                                  .checked = checked,
                                  .part = (uint16_t)part,
                                  .generation = operation->setting->generation,
                                  .sequence = operation->sequence,
                                  .length = (uint32_t)length,
                                  .payload_crc = checked ? crc32c(0, payload, length) : 0};
    frame_header_encode(&header, frame->header);
    operation->unsent++;
    send(context, rank, frame);
}

static void expect(struct operation *operation, unsigned rank, unsigned frames)
{
    operation->awaiting[rank] += frames;
    operation->awaiting_total += frames;
}

static void begin(struct operation *operation, const struct operation_setting *setting, uint64_t sequence,
                  enum operation_kind kind)
{
    operation->active = true;
    operation->kind = kind;
    operation->sequence = sequence;
    operation->setting = setting;
    memset(operation->awaiting, 0, sizeof(operation->awaiting));
    operation->awaiting_total = 0;
    operation->contributions_left = 0;
    operation->unsent = 0;
    operation->combined = true;
    operation->sources = NULL;
}

static unsigned rank_before(const struct operation_setting *setting)
{
    return (setting->rank + setting->size - 1) % setting->size;
}

/* How many ranks, from the one after this on, get what is combined here. */
static unsigned count_readers(const struct operation *operation)
{
    unsigned others = operation->setting->size - 1;
    return operation->kind == OPERATION_SCATTER && others > 1 ? 1 : others;
}

static void combine(struct operation *operation, operation_send *send, void *context)
{
    const struct operation_setting *setting = operation->setting;
    size_t start = chunk_start(operation, setting->rank), elements = chunk_elements(operation, setting->rank);
    const float *inputs[CREW_SIZE_MAX * OPERATION_PARTS_MAX];
    for (unsigned i = 0; i < setting->first_input[setting->size]; i++)
        inputs[i] = staged(operation, i);
    if (operation->kind != OPERATION_DIRECT)
        for (unsigned part = 0; part < own_parts(setting); part++)
            inputs[setting->first_input[setting->rank] + part] = operation->contributions[part] + start;
    setting->reduction.combine(setting->reduction.context, inputs, operation->result + start, elements);
    operation->combined = true;
    if (operation->kind == OPERATION_DIRECT || elements == 0)
        return;
    for (unsigned i = 1; i <= count_readers(operation); i++)
        operation_send_frame(operation, (setting->rank + i) % setting->size, FRAME_RESULT, 0, operation->result + start,
                             elements * sizeof(float), send, context);
}

/* Sends copies of the contributions, because the result may have the same memory, and a direct operation finishes before its last byte is
 * sent. */
static void stage_own(struct operation *operation)
{
    const struct operation_setting *setting = operation->setting;
    for (unsigned part = 0; part < own_parts(setting); part++) {
        float *copy = staged(operation, setting->first_input[setting->rank] + part);
        memcpy(copy, operation->contributions[part], operation->elements * sizeof(float));
        operation->contributions[part] = copy;
    }
}

static void send_contributions(struct operation *operation, unsigned rank, operation_send *send, void *context)
{
    size_t start = chunk_start(operation, rank), elements = chunk_elements(operation, rank);
    for (unsigned part = 0; part < own_parts(operation->setting) && elements > 0; part++)
        operation_send_frame(operation, rank, FRAME_CONTRIBUTION, part, operation->contributions[part] + start,
                             elements * sizeof(float), send, context);
}

/* Returns the schedule in pairs of ranks, which sends fewer messages than all to all, if its pairs match the tree (docs/performance.md
 * has the figures). */
static const struct schedule *find_pairs(const struct operation_setting *setting, size_t bytes)
{
    if (setting->size < OPERATION_PAIRS_RANKS_MIN)
        return NULL;
    if (bytes <= OPERATION_DIRECT_BYTES)
        return setting->doubling;
    return bytes <= OPERATION_HALVING_BYTES || setting->size >= OPERATION_HALVING_RANKS_MIN ? setting->halving : NULL;
}

/* The schedule that the setting's algorithm has for vectors of that length; NULL: none. */
static const struct schedule *find_schedule(const struct operation_setting *setting, size_t bytes)
{
    switch (setting->algorithm) {
    case COLLECTIVE_ALGORITHM_AUTO:
        return find_pairs(setting, bytes);
    case COLLECTIVE_ALGORITHM_DOUBLING:
        return setting->doubling;
    case COLLECTIVE_ALGORITHM_HALVING:
        return setting->halving;
    case COLLECTIVE_ALGORITHM_RING:
        return bytes <= OPERATION_DIRECT_BYTES ? NULL : setting->chosen;
    case COLLECTIVE_ALGORITHM_REDUCE_TO_ONE:
    case COLLECTIVE_ALGORITHM_HIERARCHICAL:
        return setting->chosen;
    default:
        return NULL;
    }
}

/* The same on every rank: by size and setting alone. Neither direct nor scheduled means by owners. */
static void choose(const struct operation_setting *setting, size_t elements, bool *ret_direct,
                   const struct schedule **ret_schedule)
{
    size_t bytes = elements * sizeof(float);
    *ret_schedule = setting->size > 1 ? find_schedule(setting, bytes) : NULL;
    if (*ret_schedule || setting->algorithm == COLLECTIVE_ALGORITHM_OWNED)
        *ret_direct = false;
    else
        *ret_direct = bytes <= OPERATION_DIRECT_BYTES || setting->algorithm == COLLECTIVE_ALGORITHM_DIRECT;
}

static void set_vectors(struct operation *operation, const float *const *contributions, float *result, size_t elements)
{
    operation->elements = elements;
    operation->result = result;
    operation->combined = false;
    memcpy(operation->contributions, contributions, own_parts(operation->setting) * sizeof(*contributions));
}

/* Whether `rank` sends what it combines to this one. */
static bool gets_result(const struct operation *operation, unsigned rank)
{
    if (operation->kind == OPERATION_DIRECT || chunk_elements(operation, rank) == 0)
        return false;
    return operation->kind == OPERATION_OWNED || rank == rank_before(operation->setting);
}

/* Sends the contributions to the ranks that combine them. */
static void begin_exchange(struct operation *operation, operation_send *send, void *context)
{
    const struct operation_setting *setting = operation->setting;
    reserve_frames(operation, (setting->size - 1) * (own_parts(setting) + 1));
    if (operation->kind == OPERATION_DIRECT) {
        reserve_staging(operation);
        stage_own(operation);
    }
    bool owns = chunk_elements(operation, setting->rank) > 0;
    for (unsigned i = 1; i < setting->size; i++) {
        unsigned rank = (setting->rank + i) % setting->size;
        unsigned parts = owns ? setting->reduction.contributions[rank] : 0;
        operation->contributions_left += parts;
        expect(operation, rank, parts + gets_result(operation, rank));
    }
    for (unsigned i = 1; i < setting->size; i++)
        send_contributions(operation, (setting->rank + i) % setting->size, send, context);
    if (operation->contributions_left == 0) {
        reserve_staging(operation);
        combine(operation, send, context);
    }
}

bool operation_stages_late(const struct operation *operation)
{
    return operation->kind == OPERATION_OWNED || operation->kind == OPERATION_SCATTER;
}

void operation_begin_all_reduce(struct operation *operation, const struct operation_setting *setting, uint64_t sequence,
                                const float *const *contributions, float *result, size_t elements, operation_send *send,
                                void *context)
{
    const struct schedule *schedule;
    bool direct;
    choose(setting, elements, &direct, &schedule);
    begin(operation, setting, sequence, direct ? OPERATION_DIRECT : schedule ? OPERATION_STEPPED : OPERATION_OWNED);
    set_vectors(operation, contributions, result, elements);
    if (schedule == NULL) {
        begin_exchange(operation, send, context);
        return;
    }
    reserve_frames(operation, schedule->send_count);
    operation_steps_begin(operation, schedule);
    operation_steps_advance(operation, send, context);
}

void operation_begin_reduce_scatter(struct operation *operation, const struct operation_setting *setting,
                                    uint64_t sequence, const float *const *contributions, float *result,
                                    size_t elements, const struct collective_shards *shards, operation_send *send,
                                    void *context)
{
    begin(operation, setting, sequence, OPERATION_SCATTER);
    operation->shards = *shards;
    set_vectors(operation, contributions, result, elements);
    begin_exchange(operation, send, context);
}

/* ---- all-gather */

static unsigned source_of(const struct operation *operation, unsigned owner)
{
    return operation->sources ? operation->sources[owner] : owner;
}

/* Whether `rank` is sent what `owner` owns. */
static bool lacks(const struct operation *operation, unsigned rank, unsigned owner)
{
    bool mirrors = operation->sources == NULL && rank == (owner + 1) % operation->setting->size;
    return rank != source_of(operation, owner) && !mirrors && chunk_elements(operation, owner) > 0;
}

static void give(struct operation *operation, unsigned owner, operation_send *send, void *context)
{
    const struct operation_setting *setting = operation->setting;
    for (unsigned i = 1; i < setting->size; i++) {
        unsigned rank = (setting->rank + i) % setting->size;
        if (lacks(operation, rank, owner))
            operation_send_frame(operation, rank, FRAME_RESULT, owner,
                                 operation->result + chunk_start(operation, owner),
                                 chunk_elements(operation, owner) * sizeof(float), send, context);
    }
}

void operation_begin_all_gather(struct operation *operation, const struct operation_setting *setting, uint64_t sequence,
                                const unsigned *sources, float *vector, size_t elements,
                                const struct collective_shards *shards, operation_send *send, void *context)
{
    unsigned given = 0;
    begin(operation, setting, sequence, OPERATION_GATHER);
    operation->shards = *shards;
    operation->sources = sources;
    operation->elements = elements;
    operation->result = vector;
    for (unsigned owner = 0; owner < setting->size; owner++) {
        given += source_of(operation, owner) == setting->rank;
        if (lacks(operation, setting->rank, owner))
            expect(operation, source_of(operation, owner), 1);
    }
    reserve_frames(operation, given * (setting->size - 1));
    for (unsigned owner = 0; owner < setting->size; owner++)
        if (source_of(operation, owner) == setting->rank)
            give(operation, owner, send, context);
}

/* ---- broadcast */

void operation_begin_broadcast(struct operation *operation, const struct operation_setting *setting, uint64_t sequence,
                               unsigned root, const bool *receives, void *bytes, size_t length, operation_send *send,
                               void *context)
{
    begin(operation, setting, sequence, OPERATION_BROADCAST);
    operation->bytes = bytes;
    operation->length = length;
    reserve_frames(operation, setting->size);
    if (setting->rank != root && receives[setting->rank])
        expect(operation, root, 1);
    for (unsigned rank = 0; setting->rank == root && rank < setting->size; rank++)
        if (rank != root && receives[rank])
            operation_send_frame(operation, rank, FRAME_BROADCAST, 0, bytes, length, send, context);
}

static int unexpected(const struct operation *operation, unsigned rank, const struct frame_header *header,
                      struct error *error)
{
    return error_set(error, ERROR_CORRUPT,
                     "rank %u sent a frame (kind %u, part %u, %u bytes) that operation %llu does not expect; do all "
                     "ranks run the same version?",
                     rank, header->kind, header->part, header->length, (unsigned long long)operation->sequence);
}

int operation_destination(struct operation *operation, unsigned rank, const struct frame_header *header,
                          void **ret_bytes, struct error *error)
{
    const struct operation_setting *setting = operation->setting;
    if (operation->awaiting[rank] == 0)
        return unexpected(operation, rank, header, error);
    if (operation->kind == OPERATION_STEPPED) {
        *ret_bytes = operation_steps_destination(operation, rank, header);
        return *ret_bytes ? 0 : unexpected(operation, rank, header, error);
    }
    bool gathers = operation->kind == OPERATION_GATHER;
    bool reduces = operation->kind != OPERATION_BROADCAST && !gathers;
    size_t own = chunk_elements(operation, setting->rank) * sizeof(float);
    if (reduces && header->kind == FRAME_CONTRIBUTION && header->length == own && operation->contributions_left > 0 &&
        header->part < setting->reduction.contributions[rank]) {
        reserve_staging(operation);
        *ret_bytes = staged(operation, setting->first_input[rank] + header->part);
        return 0;
    }
    unsigned owner = gathers ? header->part : rank;
    bool expected =
        gathers ? owner < setting->size && source_of(operation, owner) == rank && lacks(operation, setting->rank, owner)
                : reduces && gets_result(operation, rank);
    if (expected && header->kind == FRAME_RESULT &&
        header->length == chunk_elements(operation, owner) * sizeof(float)) {
        *ret_bytes = operation->result + chunk_start(operation, owner);
        return 0;
    }
    if (operation->kind == OPERATION_BROADCAST && header->kind == FRAME_BROADCAST &&
        header->length == operation->length) {
        *ret_bytes = operation->bytes;
        return 0;
    }
    return unexpected(operation, rank, header, error);
}

void operation_received(struct operation *operation, unsigned rank, const struct frame_header *header,
                        operation_send *send, void *context)
{
    operation->awaiting[rank]--;
    operation->awaiting_total--;
    if (operation->kind == OPERATION_STEPPED)
        operation_steps_received(operation, rank, header, send, context);
    else if (header->kind == FRAME_CONTRIBUTION && --operation->contributions_left == 0)
        combine(operation, send, context);
}

void operation_advance(struct operation *operation, operation_send *send, void *context)
{
    if (operation->kind == OPERATION_STEPPED && !operation->combined)
        operation_steps_advance(operation, send, context);
}

bool operation_is_done(const struct operation *operation)
{
    return operation->awaiting_total == 0 && operation->combined && operation->unsent == 0;
}

void operation_release(struct operation *operation)
{
    free(operation->staging);
    free(operation->frames);
    free(operation->arrived);
    free(operation->buffer_offsets);
    *operation = (struct operation){.active = false};
}
