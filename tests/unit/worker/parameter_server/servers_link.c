/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/servers_link.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "worker/comm/bulk_connection.h"
#include "worker/comm/link.h"
#include "worker/parameter_server/bulk.h"
#include "worker/parameter_server/variables.h"

/* A worker with a fake server, whose behaviour the test chooses. */

#define ELEMENTS 40000 /* enough for a bulk connection */
#define FIRST 100
#define SUCCESSOR 200

static struct parameter_tensor tensors[] = {
    {.name = "w", .shape = {ELEMENTS}, .rank = 1, .offset = 0, .elements = ELEMENTS}};
static const struct parameter_layout layout = {.tensors = tensors, .tensor_count = 1, .elements = ELEMENTS};

struct scene {
    char host[32];
    struct crew_seat seat;
    struct placement placement;
    struct rpc *server_rpc, *rpc;
    struct address_book *book;
    struct servers_link *link;
    /* The server's behaviour: it dies right after an answer; names a port on which nothing listens; cuts the bulk connection in the first push, or
     * in the first values; knows of the next lineage only on the next stream, as a successor would; follows the protocol. */
    enum { DIES, LIES, CUTS_PUSH, CUTS_VALUES, LAGS, KEEPS } manner;
    atomic_uint lineage;
    float values[ELEMENTS];

    /* The server's; its rpc's thread only. */
    uint64_t nonce;
    struct bulk_connections *connections;
    struct bulk_connection *connection;
    struct rpc_stream *stream;
    struct ps_message push;
    bool receives, cutting;
    struct bulk_inbox inbox;
    float gradients[ELEMENTS];
    atomic_uint opened, pushed;

    /* The worker's; its rpc's thread, until that has stopped. */
    unsigned warnings;
    char warning[PS_TEXT_MAX];
};

static void offer(struct scene *scene, struct rpc_stream *stream)
{
    struct ps_message message = {.type = PS_OPENED, .nonce = scene->nonce};
    scene->stream = stream;
    scene->opened++;
    if (scene->manner == LIES)
        message.port = 1;
    if (scene->manner > LIES) {
        scene->connection = bulk_connection_expect(scene->connections, &message.token);
        message.port = bulk_connections_port(scene->connections);
    }
    ps_message_send(stream, &message);
}

static void cut(struct scene *scene)
{
    bulk_connection_free(scene->connection);
    scene->connection = NULL;
    scene->receives = scene->cutting = false;
    scene->manner = KEEPS;
}

static void acknowledge(struct scene *scene, struct rpc_stream *stream, int64_t ticket)
{
    uint32_t lineage = atomic_load(&scene->lineage);
    scene->pushed++;
    ps_message_send(stream,
                    &(struct ps_message){.type = PS_ACK,
                                         .ticket = ticket,
                                         .lineage = lineage,
                                         .verdict = scene->push.lineage == lineage ? UPDATE_APPLIED : UPDATE_OUTDATED,
                                         .nonce = scene->nonce});
}

static void hear_push(struct scene *scene, struct rpc_stream *stream, const struct ps_message *message)
{
    scene->push = *message;
    if (scene->manner == DIES) { /* its successor has another name */
        acknowledge(scene, stream, message->ticket);
        rpc_stream_close(stream);
        scene->nonce = SUCCESSOR;
    } else if (message->on_connection) {
        scene->receives = true;
        bulk_connection_receive(scene->connection, scene->gradients, sizeof scene->gradients);
        if (scene->manner == CUTS_PUSH)
            cut(scene);
    } else {
        cr_assert(bulk_inbox_expect(&scene->inbox, sizeof scene->gradients, scene->gradients, NULL) == 0);
    }
}

static size_t give_half(void *context, size_t offset, struct link *link)
{
    struct iovec part = {(unsigned char *)context + offset, sizeof(float) * ELEMENTS / 2 - offset};
    return part.iov_len > 0 ? link_write(link, &part, 1) : 0;
}

static void send_values(struct scene *scene, struct rpc_stream *stream, bool on_connection)
{
    ps_message_send(stream, &(struct ps_message){.type = PS_VALUES,
                                                 .lineage = atomic_load(&scene->lineage),
                                                 .on_connection = on_connection});
    scene->cutting = scene->manner == CUTS_VALUES;
    if (scene->cutting)
        bulk_connection_send_from(scene->connection, sizeof scene->values, give_half, scene->values);
    else if (on_connection)
        bulk_connection_send(scene->connection, scene->values, sizeof scene->values);
    else
        bulk_send(stream, scene->values, sizeof scene->values);
}

static void answer(struct scene *scene, struct rpc_stream *stream, const struct ps_message *message)
{
    if (message->type == PS_OPEN)
        offer(scene, stream);
    else
        cr_expect(message->on_connection == (scene->connection != NULL));
    if (message->type == PS_PUSH)
        hear_push(scene, stream, message);
    else if (message->type == PS_PULL)
        send_values(scene, stream, message->on_connection);
}

/* The update is there. */
static void take_push(struct scene *scene)
{
    scene->receives = false;
    acknowledge(scene, scene->stream, scene->push.ticket);
    if (scene->push.pull)
        send_values(scene, scene->stream, scene->push.on_connection);
}

static void server_tick(void *context)
{
    struct scene *scene = context;
    if (scene->cutting && bulk_connection_moved(scene->connection) > 0)
        cut(scene);
    if (scene->receives && !bulk_connection_is_busy(scene->connection))
        take_push(scene);
}

static void on_pieces(void *context, struct rpc_stream *stream, const struct rpc_piece *pieces, unsigned count)
{
    struct scene *scene = context;
    struct ps_message message = {0};
    bool bulk;
    cr_assert(bulk_or_message(pieces, count, &bulk, &message, NULL) == 0);
    if (!bulk)
        answer(scene, stream, &message);
    else if (scene->manner != DIES && bulk_inbox_take(&scene->inbox, pieces, count, NULL) == 0 &&
             bulk_inbox_is_full(&scene->inbox))
        take_push(scene);
    ps_message_release(&message);
}

static void on_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    struct scene *scene = context;
    (void)error;
    if (stream != scene->stream)
        return;
    bulk_connection_free(scene->connection);
    scene->connection = NULL;
    scene->receives = scene->cutting = false;
    if (scene->manner == LAGS)
        atomic_fetch_add(&scene->lineage, 1);
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

static void warn(void *context, const char *text)
{
    struct scene *scene = context;
    scene->warnings++;
    snprintf(scene->warning, sizeof scene->warning, "%s", text);
}

static void wake_server(void *context)
{
    rpc_wake(((struct scene *)context)->server_rpc);
}

static void set_up(struct scene *scene, int manner)
{
    static const struct rpc_method methods[] = {{PS_METHOD_EXCHANGE, opened}};
    struct rpc_server *listener;
    *scene = (struct scene){.nonce = FIRST, .values = {1, 2, 3}, .manner = manner};
    placement_init(&scene->placement, &layout, 1);
    snprintf(scene->host, sizeof scene->host, "127.%u.%u.1", 100 + (unsigned)getpid() % 100,
             (unsigned)getpid() / 100 % 250);
    const struct bulk_connections_options connections = {
        .job_uid = "uid", .listens = true, .listen_address = scene->host, .wake = wake_server, .context = scene};
    cr_assert(rpc_new(server_tick, scene, 20, &scene->server_rpc, NULL) == 0);
    cr_assert(bulk_connections_start(&connections, &scene->connections, NULL) == 0);
    cr_assert(rpc_server_start(scene->server_rpc, scene->host, 0, methods, 1, scene, &listener, NULL) == 0);
    scene->seat = (struct crew_seat){.role = "ps", .host = scene->host, .port = rpc_server_port(listener)};
    cr_assert(rpc_new(tick, scene, 20, &scene->rpc, NULL) == 0);
    cr_assert(address_book_new(&scene->seat, 1, wake, scene, &scene->book, NULL) == 0);
    const struct servers_link_options options = {.rpc = scene->rpc,
                                                 .book = scene->book,
                                                 .servers = &scene->seat,
                                                 .placement = &scene->placement,
                                                 .elements = ELEMENTS,
                                                 .job_uid = "uid",
                                                 .warn = warn,
                                                 .context = scene};
    cr_assert(servers_link_new(&options, &scene->link, NULL) == 0);
    rpc_start_ticks(scene->rpc);
    rpc_start_ticks(scene->server_rpc);
}

static void tear_down(struct scene *scene)
{
    rpc_stop(scene->rpc);
    address_book_free(scene->book);
    rpc_free(scene->rpc);
    servers_link_free(scene->link);
    rpc_stop(scene->server_rpc);
    bulk_connections_free(scene->connections);
    rpc_free(scene->server_rpc);
    placement_release(&scene->placement);
}

/* The chief counts what is lost by this: were the successor named, which has only sent values, nobody would miss the update. */
Test(servers_link, an_acknowledgement_names_its_process_although_a_successor_sends_the_values, .timeout = 120)
{
    static struct scene scene;
    bool outdated;
    uint64_t nonces[PS_SERVERS_MAX] = {0};
    const struct servers_push push = {.ticket = 7, .rate = 1, .scale = 1, .pull = true};
    set_up(&scene, DIES);
    cr_assert(servers_link_push(scene.link, &push, &outdated, nonces, NULL) == 0);
    cr_expect(nonces[0] == FIRST, "%llu acknowledged it", (unsigned long long)nonces[0]);
    cr_expect(servers_link_values(scene.link)[2] == 3);
    tear_down(&scene);
}

/* A worker's first share after the crew has gone back would else be computed on values that it has left. */
Test(servers_link, values_that_came_with_a_push_are_of_its_lineage, .timeout = 120)
{
    static struct scene scene;
    bool outdated;
    uint64_t nonces[PS_SERVERS_MAX] = {0};
    struct servers_push push = {.ticket = 7, .lineage = 3, .rate = 1, .scale = 1, .pull = true};
    set_up(&scene, KEEPS);
    atomic_store(&scene.lineage, 3);
    cr_expect(!servers_link_is_fresh(scene.link, 0));
    cr_assert(servers_link_push(scene.link, &push, &outdated, nonces, NULL) == 0);
    cr_expect(servers_link_is_fresh(scene.link, 3) && !servers_link_is_fresh(scene.link, 4));
    push.pull = false;
    cr_assert(servers_link_push(scene.link, &push, &outdated, nonces, NULL) == 0);
    cr_expect(!servers_link_is_fresh(scene.link, 3));
    tear_down(&scene);
}

/* Its word "outdated" would else end a share that nobody takes again, and its values go into a share of the new lineage. */
Test(servers_link, a_server_that_does_not_know_the_lineage_is_left_for_its_successor, .timeout = 120)
{
    static struct scene scene;
    bool outdated = true;
    uint64_t nonces[PS_SERVERS_MAX] = {0};
    struct servers_push push = {.ticket = 7, .lineage = 8, .rate = 1, .scale = 1};
    set_up(&scene, LAGS);
    atomic_store(&scene.lineage, 6);
    servers_link_follow(scene.link, 7);
    cr_assert(servers_link_pull(scene.link, NULL, NULL) == 0);
    cr_expect(atomic_load(&scene.lineage) == 7 && scene.opened == 2, "%u streams", scene.opened);
    cr_assert(servers_link_push(scene.link, &push, &outdated, nonces, NULL) == 0);
    cr_expect(!outdated && atomic_load(&scene.lineage) == 8 && scene.opened == 3, "%u streams", scene.opened);
    push.lineage = 7;
    cr_assert(servers_link_push(scene.link, &push, &outdated, nonces, NULL) == 0);
    cr_expect(outdated && scene.opened == 3, "one that is ahead is believed");
    tear_down(&scene);
}

/* ---------------------------------------------------------------- bulk connections */

/* Pulls, pushes and takes the values after it, `opened` streams in all. */
static void exchange(struct scene *scene, unsigned opened)
{
    bool outdated;
    uint64_t nonces[PS_SERVERS_MAX] = {0};
    const struct servers_push push = {.ticket = 7, .rate = 1, .scale = 1, .pull = true};
    float *values = servers_link_values(scene->link), *gradients = servers_link_gradients(scene->link);
    for (unsigned i = 0; i < ELEMENTS; i++)
        gradients[i] = (float)i, scene->values[i] = (float)(i + 1);
    cr_assert(servers_link_pull(scene->link, NULL, NULL) == 0);
    for (unsigned i = 0; i < ELEMENTS; i++)
        cr_assert(values[i] == (float)(i + 1));
    memset(values, 0, sizeof scene->values);
    cr_assert(servers_link_push(scene->link, &push, &outdated, nonces, NULL) == 0);
    for (unsigned i = 0; i < ELEMENTS; i++)
        cr_assert(values[i] == (float)(i + 1) && scene->gradients[i] == (float)i);
    cr_expect(scene->pushed == 1 && scene->opened == opened, "%u streams", scene->opened);
}

Test(servers_link, large_values_and_gradients_travel_on_a_connection, .timeout = 120)
{
    static struct scene scene;
    set_up(&scene, KEEPS);
    exchange(&scene, 1);
    struct servers_traffic traffic = servers_link_traffic(scene.link);
    cr_expect(traffic.on_connection == 3 * (int64_t)sizeof scene.values && traffic.shared == 0 &&
              traffic.streamed == 0);
    tear_down(&scene);
    cr_expect(scene.warnings == 0, "%s", scene.warning);
}

Test(servers_link, where_no_connection_can_be_had_they_travel_on_the_stream_and_that_is_told, .timeout = 120)
{
    static struct scene scene;
    set_up(&scene, LIES);
    exchange(&scene, 1);
    cr_expect(servers_link_traffic(scene.link).streamed == 3 * (int64_t)sizeof scene.values);
    tear_down(&scene);
    cr_expect(scene.warnings == 1 && strstr(scene.warning, "no data connection to port 1;"), "%u: %s", scene.warnings,
              scene.warning);
}

Test(servers_link, a_connection_that_is_cut_in_an_update_is_opened_anew_and_the_update_told_again, .timeout = 120)
{
    static struct scene scene;
    set_up(&scene, CUTS_PUSH);
    exchange(&scene, 2);
    tear_down(&scene);
}

Test(servers_link, a_stream_cut_in_the_middle_of_values_is_opened_and_the_values_requested_again, .timeout = 120)
{
    static struct scene scene;
    set_up(&scene, CUTS_VALUES);
    exchange(&scene, 2);
    tear_down(&scene);
}
