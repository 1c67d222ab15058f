/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/servers_link.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "worker/parameter_server/bulk.h"

/* A worker whose server does as the test says. */

#define ELEMENTS 3
#define FIRST 100
#define SUCCESSOR 200

static struct parameter_tensor tensors[] = {{.name = "w", .shape = {3}, .rank = 1, .offset = 0, .elements = ELEMENTS}};
static const struct parameter_layout layout = {.tensors = tensors, .tensor_count = 1, .elements = ELEMENTS};

struct scene {
    char host[32];
    struct crew_seat seat;
    struct placement placement;
    struct rpc *server_rpc, *rpc;
    struct address_book *book;
    struct servers_link *link;
    uint64_t incarnation; /* of the server; the rpc's thread only */
    float values[ELEMENTS];
};

static void answer(struct scene *scene, struct rpc_stream *stream, const struct ps_message *message)
{
    if (message->type == PS_OPEN) {
        ps_message_send(stream, &(struct ps_message){.type = PS_OPENED, .incarnation = scene->incarnation});
    } else if (message->type == PS_PUSH) { /* dies behind its word; its successor has another name */
        ps_message_send(
            stream, &(struct ps_message){.type = PS_ACK, .ticket = message->ticket, .incarnation = scene->incarnation});
        rpc_stream_close(stream);
        scene->incarnation = SUCCESSOR;
    } else if (message->type == PS_PULL) {
        ps_message_send(stream, &(struct ps_message){.type = PS_VALUES});
        bulk_send(stream, scene->values, sizeof scene->values);
    }
}

static void on_pieces(void *context, struct rpc_stream *stream, const struct rpc_piece *pieces, unsigned count)
{
    struct ps_message message = {0};
    bool bulk;
    cr_assert(bulk_or_message(pieces, count, &bulk, &message, NULL) == 0);
    if (!bulk)
        answer(context, stream, &message);
    ps_message_release(&message);
}

static void on_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)context, (void)stream, (void)error;
}

static void opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events, void **ret_context)
{
    (void)stream;
    *ret_events = (struct rpc_stream_events){.pieces = on_pieces, .closed = on_closed};
    *ret_context = context;
}

static void tick(void *context)
{
    servers_link_tick(((struct scene *)context)->link);
}

static void wake(void *context)
{
    rpc_wake(((struct scene *)context)->rpc);
}

static void set_up(struct scene *scene)
{
    static const struct rpc_method methods[] = {{PS_METHOD_EXCHANGE, opened}};
    struct rpc_server *door;
    *scene = (struct scene){.incarnation = FIRST, .values = {1, 2, 3}};
    placement_init(&scene->placement, &layout, 1);
    snprintf(scene->host, sizeof scene->host, "127.%u.%u.1", 100 + (unsigned)getpid() % 100,
             (unsigned)getpid() / 100 % 250);
    cr_assert(rpc_new(NULL, NULL, 1000, &scene->server_rpc, NULL) == 0);
    cr_assert(rpc_server_start(scene->server_rpc, scene->host, 0, methods, 1, scene, &door, NULL) == 0);
    scene->seat = (struct crew_seat){.role = "ps", .host = scene->host, .port = rpc_server_port(door)};
    cr_assert(rpc_new(tick, scene, 20, &scene->rpc, NULL) == 0);
    cr_assert(address_book_new(&scene->seat, 1, wake, scene, &scene->book, NULL) == 0);
    const struct servers_link_options options = {.rpc = scene->rpc,
                                                 .book = scene->book,
                                                 .servers = &scene->seat,
                                                 .placement = &scene->placement,
                                                 .elements = ELEMENTS,
                                                 .job_uid = "uid"};
    cr_assert(servers_link_new(&options, &scene->link, NULL) == 0);
    rpc_start_ticks(scene->rpc);
}

static void tear_down(struct scene *scene)
{
    rpc_stop(scene->rpc);
    address_book_free(scene->book);
    rpc_free(scene->rpc);
    servers_link_free(scene->link);
    rpc_free(scene->server_rpc);
    placement_release(&scene->placement);
}

/* The chief counts what is lost by this: were the successor named, which has only sent values, nobody would miss the update. */
Test(servers_link, an_update_is_told_with_who_acknowledged_it_though_the_values_are_a_successors, .timeout = 120)
{
    struct scene scene;
    bool outdated;
    uint64_t incarnations[PS_SERVERS_MAX] = {0};
    const struct servers_push push = {.ticket = 7, .rate = 1, .scale = 1, .pull = true};
    set_up(&scene);
    cr_assert(servers_link_push(scene.link, &push, &outdated, incarnations, NULL) == 0);
    cr_expect(incarnations[0] == FIRST, "%llu acknowledged it", (unsigned long long)incarnations[0]);
    cr_expect(servers_link_values(scene.link)[2] == 3);
    tear_down(&scene);
}
