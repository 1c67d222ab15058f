/* SPDX-License-Identifier: Apache-2.0
 *
 * Two ranks as threads of one process, over TCP and over shared memory.
 */
#include "worker/comm/transfer.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 2
#define LONG_BYTES ((size_t)3 * 1000 * 1000 + 17) /* several frames, the last one short */
#define MESSAGES 6

struct side {
    struct collective_options options;
    struct collective *group;
    pthread_t thread;
    void (*body)(struct side *side);
    struct error error;
    int result;
};

struct pair {
    struct endpoint *endpoints[RANKS];
    struct collective_peer peers[RANKS];
    struct side sides[RANKS];
};

static void sum(const void *context, const float *const *inputs, float *result, size_t elements)
{
    (void)context;
    for (size_t i = 0; i < elements; i++)
        result[i] = inputs[0][i] + inputs[1][i];
}

static void *serve(void *context)
{
    struct side *side = context;
    side->result = collective_connect(side->group, 30000, &side->error);
    if (side->result == 0)
        side->body(side);
    return NULL;
}

static void side_open(struct pair *pair, unsigned rank, enum collective_transport transport)
{
    struct side *side = &pair->sides[rank];
    side->options = (struct collective_options){.endpoint = pair->endpoints[rank],
                                                .job_uid = "transfers",
                                                .generation = {1, 1, 1},
                                                .rank = rank,
                                                .size = RANKS,
                                                .peers = pair->peers,
                                                .transport = transport,
                                                .check_frames = true,
                                                .reduction = {.contributions = {1, 1}, .combine = sum}};
    cr_assert_eq(collective_new(&side->options, &side->group, NULL), 0);
}

static void endpoint_of(struct pair *pair, unsigned rank)
{
    cr_assert_eq(endpoint_open("127.0.0.1", 0, &pair->endpoints[rank], NULL), 0);
    snprintf(pair->peers[rank].address, sizeof pair->peers[rank].address, "127.0.0.1");
    pair->peers[rank].port = endpoint_port(pair->endpoints[rank]);
    snprintf(pair->peers[rank].name, sizeof pair->peers[rank].name, "worker %u", rank + 4);
}

static void pair_open(struct pair *pair, enum collective_transport transport)
{
    *pair = (struct pair){0};
    for (unsigned i = 0; i < RANKS; i++)
        endpoint_of(pair, i);
    for (unsigned i = 0; i < RANKS; i++)
        side_open(pair, i, transport);
}

static void pair_run(struct pair *pair, void (*first)(struct side *side), void (*second)(struct side *side))
{
    pair->sides[0].body = first;
    pair->sides[1].body = second;
    for (unsigned i = 0; i < RANKS; i++)
        pthread_create(&pair->sides[i].thread, NULL, serve, &pair->sides[i]);
    for (unsigned i = 0; i < RANKS; i++)
        pthread_join(pair->sides[i].thread, NULL);
}

static void pair_close(struct pair *pair)
{
    for (unsigned i = 0; i < RANKS; i++)
        collective_free(pair->sides[i].group);
    for (unsigned i = 0; i < RANKS; i++)
        endpoint_free(pair->endpoints[i]);
}

static unsigned char *pattern(unsigned seed, size_t length)
{
    unsigned char *bytes = malloc(length);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (unsigned char)(seed * 31 + i * 7 + (i >> 11));
    return bytes;
}

static size_t length_of(unsigned message)
{
    static const size_t lengths[MESSAGES] = {LONG_BYTES, 1, 0, 4096, LONG_BYTES / 2, 77};
    return lengths[message];
}

/* All at once, on two channels, before the other asks for any. */
static void send_all(struct side *side)
{
    struct transfer transfers[MESSAGES] = {0};
    unsigned char *bytes[MESSAGES];
    float one = 1, two = 0;
    for (unsigned i = 0; i < MESSAGES; i++) {
        bytes[i] = pattern(i, length_of(i));
        transfer_send_start(side->group, 1, i % 2 ? 65535 : 3, bytes[i], length_of(i), &transfers[i]);
    }
    side->result = collective_all_reduce(side->group, (const float *const[]){&one}, &two, 1, &side->error);
    for (unsigned i = 0; i < MESSAGES && side->result == 0; i++)
        side->result = transfer_wait(side->group, &transfers[i], &side->error);
    for (unsigned i = 0; i < MESSAGES; i++) {
        transfer_release(&transfers[i]);
        free(bytes[i]);
    }
    side->result |= two == 2 ? 0 : -1;
}

static int take(struct side *side, unsigned message)
{
    size_t length = length_of(message);
    unsigned char *bytes = malloc(length + 1), *expected = pattern(message, length);
    int result = transfer_receive(side->group, 0, message % 2 ? 65535 : 3, bytes, length, &side->error);
    if (result == 0 && memcmp(bytes, expected, length) != 0)
        result = error_set(&side->error, ERROR_INTERNAL, "message %u has other bytes", message);
    free(bytes);
    free(expected);
    return result;
}

/* The other channel first; the collective, which came behind all of them, in between. */
static void receive_all(struct side *side)
{
    float one = 1, two = 0;
    for (unsigned i = 1; i < MESSAGES && side->result == 0; i += 2)
        side->result = take(side, i);
    if (side->result == 0)
        side->result = collective_all_reduce(side->group, (const float *const[]){&one}, &two, 1, &side->error);
    for (unsigned i = 0; i < MESSAGES && side->result == 0; i += 2)
        side->result = take(side, i);
}

static void expect_all(enum collective_transport transport)
{
    struct pair pair;
    pair_open(&pair, transport);
    pair_run(&pair, send_all, receive_all);
    for (unsigned i = 0; i < RANKS; i++)
        cr_expect_eq(pair.sides[i].result, 0, "rank %u: %s", i, pair.sides[i].error.message);
    pair_close(&pair);
}

Test(transfer, messages_of_a_channel_keep_their_order_and_wait_for_each_other)
{
    expect_all(COLLECTIVE_TRANSPORT_TCP);
    expect_all(COLLECTIVE_TRANSPORT_SHARED_MEMORY);
}

static void send_and_leave(struct side *side)
{
    struct transfer transfer = {0};
    unsigned char bytes[100] = {0};
    transfer_send_start(side->group, 1, 0, bytes, sizeof bytes, &transfer);
    side->result = transfer_wait(side->group, &transfer, &side->error);
    transfer_release(&transfer);
    collective_free(side->group);
    side->group = NULL;
}

static void receive_more(struct side *side)
{
    unsigned char bytes[100];
    side->result = transfer_receive(side->group, 0, 0, bytes, sizeof bytes, &side->error);
    if (side->result == 0)
        side->result = transfer_receive(side->group, 0, 0, bytes, sizeof bytes, &side->error);
}

Test(transfer, a_peer_that_is_gone_ends_the_wait)
{
    struct pair pair;
    pair_open(&pair, COLLECTIVE_TRANSPORT_TCP);
    pair_run(&pair, send_and_leave, receive_more);
    cr_expect_eq(pair.sides[0].result, 0);
    cr_expect_eq(pair.sides[1].result, -1);
    cr_expect_eq(pair.sides[1].error.kind, ERROR_UNAVAILABLE, "%s", pair.sides[1].error.message);
    pair_close(&pair);
}

static void say_nothing(struct side *side)
{
    while (!atomic_load((atomic_bool *)side->options.stall_context))
        sched_yield();
}

static void wait_in_vain(struct side *side)
{
    unsigned char bytes[100];
    collective_set_label(side->group, "step 57");
    side->result = transfer_receive(side->group, 0, 9, bytes, sizeof bytes, &side->error);
    atomic_store((atomic_bool *)side->options.stall_context, true);
}

Test(transfer, a_deadline_names_whom_it_waited_for)
{
    struct pair pair;
    static atomic_bool over;
    pair_open(&pair, COLLECTIVE_TRANSPORT_TCP);
    for (unsigned i = 0; i < RANKS; i++) {
        pair.sides[i].options.deadline_ms = 300;
        pair.sides[i].options.stall_context = &over;
        collective_free(pair.sides[i].group);
        cr_assert_eq(collective_new(&pair.sides[i].options, &pair.sides[i].group, NULL), 0);
    }
    pair_run(&pair, say_nothing, wait_in_vain);
    cr_expect_eq(pair.sides[1].error.kind, ERROR_TIMEOUT);
    cr_expect(strstr(pair.sides[1].error.message, "for rank 0 (worker 4, 127.0.0.1:") &&
                  strstr(pair.sides[1].error.message, "step 57") && strstr(pair.sides[1].error.message, "channel 9"),
              "%s", pair.sides[1].error.message);
    pair_close(&pair);
}

/* Its part of an operation that the other has not begun lies in the way of what will never come. */
static void start_and_leave(struct side *side)
{
    static float one[100000], two[100000];
    (void)collective_all_reduce_start(side->group, (const float *const[]){one}, two, 100000);
    collective_free(side->group);
    side->group = NULL;
}

static void receive_behind(struct side *side)
{
    unsigned char bytes[100] = {0};
    struct transfer transfer = {0};
    transfer_send_start(side->group, 0, 3, bytes, sizeof bytes, &transfer);
    side->result = transfer_receive(side->group, 0, 9, bytes, sizeof bytes, &side->error);
    transfer_release(&transfer);
}

Test(transfer, a_peer_that_is_gone_ends_the_wait_behind_an_operation_that_has_not_begun, .timeout = 120)
{
    struct pair pair;
    pair_open(&pair, COLLECTIVE_TRANSPORT_SHARED_MEMORY);
    pair_run(&pair, start_and_leave, receive_behind);
    cr_expect_eq(pair.sides[1].result, -1);
    cr_expect_eq(pair.sides[1].error.kind, ERROR_UNAVAILABLE, "%s", pair.sides[1].error.message);
    pair_close(&pair);
}

static void send_less(struct side *side)
{
    struct transfer transfer = {0};
    unsigned char bytes[100] = {0};
    transfer_send_start(side->group, 1, 0, bytes, sizeof bytes, &transfer);
    side->result = transfer_wait(side->group, &transfer, &side->error);
    transfer_release(&transfer);
}

static void receive_much(struct side *side)
{
    unsigned char bytes[200];
    side->result = transfer_receive(side->group, 0, 0, bytes, sizeof bytes, &side->error);
}

Test(transfer, another_length_is_an_error)
{
    struct pair pair;
    pair_open(&pair, COLLECTIVE_TRANSPORT_TCP);
    pair_run(&pair, send_less, receive_much);
    cr_expect_eq(pair.sides[1].error.kind, ERROR_CORRUPT, "%s", pair.sides[1].error.message);
    pair_close(&pair);
}
