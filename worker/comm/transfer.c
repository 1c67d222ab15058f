/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/crc32c.h"
#include "common/lock.h"
#include "common/memory.h"
#include "worker/comm/collective_parts.h"

#define LOOK_MS 200

/* ---- what a lane keeps */

void lane_transfers_init(struct lane_transfers *transfers)
{
    transfers->under_way_end = &transfers->under_way;
    transfers->parked_end = &transfers->parked;
}

void lane_transfers_release(struct lane_transfers *transfers)
{
    while (transfers->parked) {
        struct parked_frame *frame = transfers->parked;
        transfers->parked = frame->next;
        free(frame);
    }
    free(transfers->channels);
}

static struct transfer_channel *find_channel(struct lane_transfers *transfers, unsigned number)
{
    for (unsigned i = 0; i < transfers->channel_count; i++)
        if (transfers->channels[i].number == number)
            return &transfers->channels[i];
    transfers->channels = memory_resize(transfers->channels, transfers->channel_count + 1, sizeof *transfers->channels);
    struct transfer_channel *channel = &transfers->channels[transfers->channel_count++];
    *channel = (struct transfer_channel){.number = number};
    return channel;
}

/* The oldest receive of the channel that is not complete. */
static struct transfer *find_receive(const struct lane_transfers *transfers, unsigned channel)
{
    for (struct transfer *transfer = transfers->under_way; transfer; transfer = transfer->next)
        if (transfer->receives && transfer->channel == channel && transfer->frames_left > 0)
            return transfer;
    return NULL;
}

static size_t next_length(const struct transfer *transfer)
{
    size_t left = transfer->length - transfer->arrived;
    return left < FRAME_PAYLOAD_MAX ? left : FRAME_PAYLOAD_MAX;
}

bool lane_transfers_wants(const struct lane_transfers *transfers, const struct frame_header *header)
{
    return find_receive(transfers, header->part) || transfers->parked_bytes + header->length <= TRANSFER_PARKED_MAX;
}

bool lane_transfers_awaits(const struct lane_transfers *transfers)
{
    for (const struct transfer *transfer = transfers->under_way; transfer; transfer = transfer->next)
        if (transfer->receives && transfer->frames_left > 0)
            return true;
    return false;
}

static int mismatch(unsigned rank, unsigned channel, size_t length, struct error *error)
{
    return error_set(error, ERROR_CORRUPT,
                     "rank %u sent %zu bytes on channel %u that were not expected; do all ranks run the same version?",
                     rank, length, channel);
}

int lane_transfers_place(struct lane_transfers *transfers, unsigned rank, const struct frame_header *header,
                         unsigned char **ret_bytes, struct error *error)
{
    struct transfer *receive = find_receive(transfers, header->part);
    if (header->sequence != find_channel(transfers, header->part)->received ||
        (receive && header->length != next_length(receive)))
        return mismatch(rank, header->part, header->length, error);
    if (receive) {
        *ret_bytes = receive->bytes + receive->arrived;
        return 1;
    }
    if (!lane_transfers_wants(transfers, header))
        return 0;
    struct parked_frame *frame = memory_allocate(1, sizeof *frame + header->length);
    frame->channel = header->part;
    frame->length = header->length;
    *transfers->parked_end = frame;
    transfers->parked_end = &frame->next;
    transfers->parked_bytes += frame->length;
    *ret_bytes = frame->bytes;
    return 1;
}

static void count_arrival(struct transfer *receive, size_t length)
{
    receive->arrived += length;
    receive->frames_left--;
}

void lane_transfers_finish(struct lane_transfers *transfers, const struct frame_header *header, unsigned char *bytes)
{
    struct transfer *receive = find_receive(transfers, header->part);
    find_channel(transfers, header->part)->received++;
    if (receive && bytes == receive->bytes + receive->arrived)
        count_arrival(receive, header->length);
}

/* Takes what came early. The newest parked frame may still be coming in; its own channel's counter tells. */
static int take_parked(struct lane *lane, struct transfer *receive, struct error *error)
{
    struct lane_transfers *transfers = &lane->transfers;
    struct parked_frame **at = &transfers->parked;
    while (*at && receive->frames_left > 0) {
        struct parked_frame *frame = *at;
        if (frame->channel != receive->channel) {
            at = &frame->next;
            continue;
        }
        if (frame->length != next_length(receive))
            return mismatch(receive->rank, frame->channel, frame->length, error);
        if (frame->bytes == lane->payload) { /* the rest of it comes straight to its place */
            memcpy(receive->bytes + receive->arrived, frame->bytes, lane->payload_received);
            lane->payload = receive->bytes + receive->arrived;
        } else {
            memcpy(receive->bytes + receive->arrived, frame->bytes, frame->length);
            count_arrival(receive, frame->length);
        }
        transfers->parked_bytes -= frame->length;
        *at = frame->next;
        if (*at == NULL)
            transfers->parked_end = at;
        free(frame);
    }
    return 0;
}

/* ---- starting */

static unsigned count_frames(size_t length)
{
    return (unsigned)((length + FRAME_PAYLOAD_MAX - 1) / FRAME_PAYLOAD_MAX);
}

static void begin(struct collective *group, struct transfer *transfer, unsigned rank, unsigned channel, void *bytes,
                  size_t length)
{
    struct outgoing_frame *frames = transfer->frames;
    unsigned capacity = transfer->frame_capacity;
    *transfer = (struct transfer){.rank = rank,
                                  .channel = channel,
                                  .pending = true,
                                  .bytes = bytes,
                                  .length = length,
                                  .frames_left = count_frames(length),
                                  .frames = frames,
                                  .frame_capacity = capacity};
    if (group->unfinished == 0)
        group->progress_ns = clock_monotonic_ns();
    group->unfinished++;
}

/* Into the list of those under way, which the retirement empties. */
static void enlist(struct collective *group, struct transfer *transfer)
{
    struct lane_transfers *transfers = &group->lanes[transfer->rank].transfers;
    *transfers->under_way_end = transfer;
    transfers->under_way_end = &transfer->next;
}

static void enqueue_frames(struct collective *group, struct transfer *transfer)
{
    unsigned count = transfer->frames_left;
    struct transfer_channel *channel = find_channel(&group->lanes[transfer->rank].transfers, transfer->channel);
    if (count > transfer->frame_capacity) {
        transfer->frames = memory_resize(transfer->frames, count, sizeof *transfer->frames);
        transfer->frame_capacity = count;
    }
    for (unsigned i = 0; i < count; i++) {
        size_t offset = i * FRAME_PAYLOAD_MAX, left = transfer->length - offset;
        struct outgoing_frame *frame = &transfer->frames[i];
        *frame = (struct outgoing_frame){.unsent = &transfer->frames_left,
                                         .payload = transfer->bytes + offset,
                                         .length = left < FRAME_PAYLOAD_MAX ? left : FRAME_PAYLOAD_MAX};
        bool checked = group->setting.check_frames;
        struct frame_header header = {.kind = FRAME_MESSAGE,
                                      .checked = checked,
                                      .part = (uint16_t)transfer->channel,
                                      .generation = group->setting.generation,
                                      .sequence = channel->sent++,
                                      .length = (uint32_t)frame->length,
                                      .payload_crc = checked ? crc32c(0, frame->payload, frame->length) : 0};
        frame_header_encode(&header, frame->header);
        collective_enqueue(group, transfer->rank, frame);
    }
}

/* After a failure nothing may be touched: the waits of others are over, and their memory with them. */
static void launch(struct collective *group)
{
    if (atomic_load(&group->aborted))
        return;
    collective_progress(group);
    transfers_retire(group);
    if (group->unfinished > 0)
        collective_wake(group);
}

void transfer_send_start(struct collective *group, unsigned rank, unsigned channel, const void *bytes, size_t length,
                         struct transfer *transfer)
{
    SCOPED_LOCK(&group->lock);
    begin(group, transfer, rank, channel, (void *)bytes, length);
    if (!atomic_load(&group->aborted)) {
        enqueue_frames(group, transfer);
        enlist(group, transfer);
    }
    launch(group);
}

/* `length` must be the sender's. */
static void receive_start(struct collective *group, unsigned rank, unsigned channel, void *bytes, size_t length,
                          struct transfer *transfer)
{
    struct error error = ERROR_INIT;
    SCOPED_LOCK(&group->lock);
    begin(group, transfer, rank, channel, bytes, length);
    transfer->receives = true;
    if (!atomic_load(&group->aborted)) {
        bool first = find_receive(&group->lanes[rank].transfers, channel) == NULL;
        enlist(group, transfer);
        if (first && take_parked(&group->lanes[rank], transfer, &error) < 0)
            collective_fail(group, &error);
    }
    launch(group);
}

/* ---- waiting */

static void retire_lane(struct collective *group, struct lane_transfers *transfers, bool *retired)
{
    for (struct transfer **at = &transfers->under_way; *at;) {
        struct transfer *transfer = *at;
        if (transfer->frames_left > 0) {
            at = &transfer->next;
            continue;
        }
        *at = transfer->next;
        if (*at == NULL)
            transfers->under_way_end = at;
        transfer->pending = false;
        group->unfinished--;
        *retired = true;
    }
}

void transfers_retire(struct collective *group)
{
    bool retired = false;
    for (unsigned rank = 0; rank < group->setting.size; rank++)
        retire_lane(group, &group->lanes[rank].transfers, &retired);
    if (retired)
        pthread_cond_broadcast(&group->transferred);
}

static void describe(const struct collective *group, const struct transfer *transfer, char *text, size_t size)
{
    char peer[COLLECTIVE_PEER_TEXT_MAX];
    collective_peer_describe(group->peers, transfer->rank, peer);
    snprintf(text, size, "rank %u waits %.1f s for %s to %s %zu bytes on channel %u (%s), of which %zu are there",
             group->setting.rank, (double)(clock_monotonic_ns() - group->progress_ns) / 1e9, peer,
             transfer->receives ? "send" : "take", transfer->length, transfer->channel, group->label,
             transfer->arrived);
}

static void check_patience(struct collective *group, const struct transfer *transfer, int64_t *stalls_told)
{
    int64_t idle_ms = (clock_monotonic_ns() - group->progress_ns) / 1000000;
    char text[512];
    describe(group, transfer, text, sizeof text);
    if (idle_ms >= group->options.deadline_ms) {
        struct error error = ERROR_INIT;
        error_set(&error, ERROR_TIMEOUT, "%s", text);
        collective_fail(group, &error);
    } else if (idle_ms / group->options.stall_ms > *stalls_told && group->options.on_stall) {
        group->options.on_stall(group->options.stall_context, text);
    }
    *stalls_told = idle_ms / group->options.stall_ms;
}

static void look_later(struct collective *group)
{
    condition_wait_ms(&group->transferred, &group->lock, LOOK_MS);
}

int transfer_wait(struct collective *group, struct transfer *transfer, struct error *error)
{
    int64_t stalls_told = 0;
    pthread_mutex_lock(&group->lock);
    while (transfer->pending && !atomic_load(&group->aborted)) {
        look_later(group);
        if (transfer->pending)
            check_patience(group, transfer, &stalls_told);
    }
    bool done = !transfer->pending;
    pthread_mutex_unlock(&group->lock);
    return done ? 0 : collective_failure(group, error);
}

int transfer_receive(struct collective *group, unsigned rank, unsigned channel, void *bytes, size_t length,
                     struct error *error)
{
    struct transfer transfer = {0};
    receive_start(group, rank, channel, bytes, length, &transfer);
    return transfer_wait(group, &transfer, error);
}

void transfer_release(struct transfer *transfer)
{
    free(transfer->frames);
    *transfer = (struct transfer){0};
}
