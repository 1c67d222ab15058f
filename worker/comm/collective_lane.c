/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/collective_parts.h"

#include "common/crc32c.h"

#define GATHER_MAX 16 /* parts of one vectored write */

/* Behind what has begun to leave and what is as urgent. A record of TLS that waits to leave has frames in their order already. */
static struct outgoing_frame **urgent_place(struct lane *lane)
{
    struct outgoing_frame **place = &lane->queue;
    while (*place != NULL && ((*place)->sent > 0 || (*place)->urgent))
        place = &(*place)->next;
    return place;
}

void collective_enqueue(void *context, unsigned rank, struct outgoing_frame *frame)
{
    struct lane *lane = &((struct collective *)context)->lanes[rank];
    struct outgoing_frame **place = frame->urgent && lane->link.ring != NULL ? urgent_place(lane) : lane->queue_end;
    frame->next = *place;
    *place = frame;
    if (frame->next == NULL)
        lane->queue_end = &frame->next;
}

static int gather_queue(const struct lane *lane, struct iovec parts[GATHER_MAX])
{
    int count = 0;
    for (struct outgoing_frame *frame = lane->queue; frame != NULL && count + 2 <= GATHER_MAX; frame = frame->next) {
        size_t head = frame->sent < FRAME_HEADER_BYTES ? frame->sent : FRAME_HEADER_BYTES;
        size_t body = frame->sent - head;
        if (head < FRAME_HEADER_BYTES)
            parts[count++] = (struct iovec){frame->header + head, FRAME_HEADER_BYTES - head};
        if (body < frame->length)
            parts[count++] = (struct iovec){(unsigned char *)frame->payload + body, frame->length - body};
    }
    return count;
}

static void settle_sent(struct lane *lane, size_t sent)
{
    while (lane->queue != NULL) {
        struct outgoing_frame *frame = lane->queue;
        size_t left = FRAME_HEADER_BYTES + frame->length - frame->sent;
        size_t step = sent < left ? sent : left;
        frame->sent += step;
        sent -= step;
        if (step < left)
            return;
        lane->queue = frame->next;
        --*frame->unsent;
        if (lane->queue == NULL)
            lane->queue_end = &lane->queue;
    }
}

static bool lane_send(struct lane *lane)
{
    bool moved = false;
    while (lane->queue != NULL) {
        struct iovec parts[GATHER_MAX];
        size_t sent = link_write(&lane->link, parts, gather_queue(lane, parts));
        if (sent == 0)
            break;
        settle_sent(lane, sent);
        moved = true;
    }
    return moved;
}

/* Finds where the frame's payload goes. 1: found; 0: its operation has not begun here; -1: it makes no sense. */
static int lane_place(struct collective *group, unsigned rank, struct lane *lane, struct error *error)
{
    if (lane->header.kind == FRAME_MESSAGE) {
        lane->payload_received = 0;
        return lane_transfers_place(&lane->transfers, rank, &lane->header, &lane->payload, error);
    }
    if (lane->header.sequence >= group->next_sequence)
        return 0;
    struct operation *operation = collective_operation(group, lane->header.sequence);
    if (!operation->active || operation->sequence != lane->header.sequence)
        return error_set(error, ERROR_CORRUPT, "rank %u sent a frame of operation %llu, which is done", rank,
                         (unsigned long long)lane->header.sequence);
    void *bytes = NULL;
    if (operation_stages_late(operation) && !operation->combined)
        collective_lend_staging(group, operation);
    if (operation_destination(operation, rank, &lane->header, &bytes, error) < 0)
        return -1;
    lane->payload = bytes;
    lane->payload_received = 0;
    return 1;
}

static int lane_read_header(struct collective *group, unsigned rank, struct lane *lane, bool *moved,
                            struct error *error)
{
    size_t got =
        link_read(&lane->link, lane->header_bytes + lane->header_received, FRAME_HEADER_BYTES - lane->header_received);
    *moved = got > 0;
    lane->header_received += got;
    if (lane->header_received < FRAME_HEADER_BYTES)
        return 0;
    if (frame_header_decode(lane->header_bytes, &lane->header, error) < 0)
        return error_wrap(error, "rank %u", rank);
    if (generation_compare(lane->header.generation, group->options.generation) != 0)
        return error_set(error, ERROR_CORRUPT, "rank %u sent a frame of another generation", rank);
    lane->header_ready = true;
    return 0;
}

static int lane_finish(struct collective *group, unsigned rank, struct lane *lane, struct error *error)
{
    if (lane->header.checked && crc32c(0, lane->payload, lane->header.length) != lane->header.payload_crc)
        return error_set(error, ERROR_CORRUPT, "bytes from rank %u fail their check in operation %llu", rank,
                         (unsigned long long)lane->header.sequence);
    unsigned char *payload = lane->payload;
    lane->header_ready = false;
    lane->header_received = 0;
    lane->payload = NULL;
    if (lane->header.kind == FRAME_MESSAGE) {
        lane_transfers_finish(&lane->transfers, &lane->header, payload);
        return 0;
    }
    struct operation *operation = collective_operation(group, lane->header.sequence);
    operation_received(operation, rank, &lane->header, collective_enqueue, group);
    if (operation_stages_late(operation) && operation->combined)
        collective_take_staging_back(group, operation);
    return 0;
}

/* One read's worth; *moved says whether it is worth another. */
static int lane_receive_some(struct collective *group, unsigned rank, bool *moved, struct error *error)
{
    struct lane *lane = &group->lanes[rank];
    *moved = false;
    if (!lane->header_ready)
        return lane_read_header(group, rank, lane, moved, error);
    if (lane->payload == NULL) {
        int placed = lane_place(group, rank, lane, error);
        if (placed <= 0)
            return placed;
    }
    size_t got =
        link_read(&lane->link, lane->payload + lane->payload_received, lane->header.length - lane->payload_received);
    lane->payload_received += got;
    *moved = got > 0;
    return lane->payload_received == lane->header.length ? lane_finish(group, rank, lane, error) : 0;
}

bool collective_lane_wants(const struct collective *group, const struct lane *lane)
{
    if (!lane->header_ready || lane->payload)
        return true;
    if (lane->header.kind == FRAME_MESSAGE)
        return lane_transfers_wants(&lane->transfers, &lane->header);
    return lane->header.sequence < group->next_sequence;
}

static unsigned frames_awaited(struct collective *group, unsigned rank)
{
    unsigned frames = 0;
    for (uint64_t sequence = group->oldest_sequence; sequence < group->next_sequence; sequence++)
        if (collective_operation(group, sequence)->active)
            frames += collective_operation(group, sequence)->awaiting[rank];
    return frames;
}

/* Whether a peer that has gone has left something that can still be taken: not what waits behind a frame of an operation that has
 * not begun here, and may never. */
static bool has_left_something(const struct collective *group, const struct lane *lane)
{
    return lane->link.ring != NULL && shared_ring_readable(lane->link.ring) &&
           (collective_lane_wants(group, lane) || !lane_transfers_awaits(&lane->transfers));
}

/* A peer that has gone matters only while something is still wanted of it, or for it. */
static int check_closed(struct collective *group, unsigned rank, struct error *error)
{
    struct lane *lane = &group->lanes[rank];
    if (!lane->link.closed || (lane->queue == NULL && has_left_something(group, lane)))
        return 0;
    if (lane->queue == NULL && frames_awaited(group, rank) == 0 && !lane_transfers_awaits(&lane->transfers))
        return 0;
    char peer[COLLECTIVE_PEER_TEXT_MAX];
    collective_peer_describe(group->peers, rank, peer);
    return error_set(error, ERROR_UNAVAILABLE,
                     "%s has closed its connection during operation %llu (%s); its log may say why", peer,
                     (unsigned long long)group->oldest_sequence, group->label);
}

int collective_lane_progress(struct collective *group, unsigned rank, bool *moved, struct error *error)
{
    struct lane *lane = &group->lanes[rank];
    if (lane_send(lane))
        *moved = true;
    bool again = true;
    while (again && collective_lane_wants(group, lane)) {
        if (lane_receive_some(group, rank, &again, error) < 0)
            return -1;
        *moved |= again;
    }
    if (lane->queue != NULL && lane_send(lane))
        *moved = true;
    return check_closed(group, rank, error);
}
