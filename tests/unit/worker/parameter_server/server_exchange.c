/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/lock.h"
#include "common/memory.h"
#include "tests/unit/loopback.h"
#include "tests/unit/opening.h"
#include "worker/parameter_server/bulk.h"
#include "worker/parameter_server/dispatcher.h"
#include "worker/parameter_server/recovery.h"
#include "worker/parameter_server/server.h"

/* A real server and a real chief; the worker is a stream and a socket of the test's. */

#define ELEMENTS 40000 /* enough for a bulk connection */

static struct parameter_tensor tensors[] = {
    {.name = "w", .shape = {ELEMENTS}, .rank = 1, .offset = 0, .elements = ELEMENTS}};
static const struct parameter_layout layout = {.tensors = tensors, .tensor_count = 1, .elements = ELEMENTS};
static const struct optimizer_spec plain = {.type = OPTIMIZER_SGD, .learning_rate = 1};

struct scene {
    char host[LOOPBACK_HOST_MAX];
    struct crew_seat seat;
    struct placement placement;
    struct device *device;
    struct ps_server *server;
    struct dispatcher *dispatcher;

    /* The worker's. */
    struct rpc *rpc;
    struct rpc_stream *stream; /* the rpc's thread only, like the next */
    struct bulk_inbox inbox;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct ps_message offer; /* the server's answer; its type: 0 before */
    bool wants_values, has_values, closed;
    float values[ELEMENTS];
};

static int load(void *context, const char *checkpoint, struct variables *variables, struct error *error)
{
    (void)context, (void)checkpoint, (void)error;
    for (int64_t i = 0; i < variables->elements; i++)
        variables->parameters[i] = (float)i;
    return 0;
}

static double rate(void *context, int64_t step)
{
    (void)context, (void)step;
    return 1;
}

static void start_server(struct scene *scene)
{
    struct error error = ERROR_INIT;
    const struct ps_server_options options = {
        .job_uid = "uid",
        .generation = {.attempt = 1, .incarnation = 1},
        .listen_address = scene->host,
        .variables = {.device = scene->device, .optimizer = &plain, .placement = &scene->placement},
        .digest = 5,
        .load = load,
        .context = scene,
    };
    cr_assert(ps_server_start(&options, &scene->server, &error) == 0, "%s", error.message);
    scene->seat.port = ps_server_port(scene->server);
}

static void start_chief(struct scene *scene)
{
    struct error error = ERROR_INIT;
    const struct dispatcher_options options = {
        .job_uid = "uid",
        .generation = {.attempt = 1, .incarnation = 1},
        .listen_address = "127.0.0.1",
        .servers = &scene->seat,
        .server_count = 1,
        .digest = 5,
        .scheduler = {.mode = PARAMETER_SERVER_ASYNC, .tickets_per_step = 1, .end = 10},
        .rate = rate,
    };
    cr_assert(dispatcher_start(&options, &scene->dispatcher, &error) == 0, "%s", error.message);
}

static void begin(struct scene *scene)
{
    const struct recovery_options options = {
        .mode = PARAMETER_SERVER_ASYNC, .server_count = 1, .per_step = 1, .chief_incarnation = 1};
    struct server_standing standings[PS_SERVERS_MAX];
    struct server_start *starts = memory_allocate(PS_SERVERS_MAX, sizeof *starts);
    struct dispatcher_plan plan;
    struct recovery_source source = {.path = memory_copy_string("")};
    int64_t lost;
    cr_assert(dispatcher_await_servers(scene->dispatcher, standings, NULL) == 0);
    recovery_plan(&options, recovery_choose(&options, standings), standings, &source, starts, &plan);
    cr_assert(dispatcher_begin(scene->dispatcher, &plan, &lost, NULL) == 0);
    server_standing_release(&standings[0]);
    recovery_plan_release(&plan, starts);
    recovery_source_release(&source);
    free(starts);
}

/* ---------------------------------------------------------------- the worker's stream */

static void hear(struct scene *scene, struct ps_message *message)
{
    if (message->type == PS_OPENED)
        scene->offer = (struct ps_message){.type = PS_OPENED, .port = message->port, .token = message->token};
    else if (message->type == PS_VALUES)
        cr_assert(!message->on_connection &&
                  bulk_inbox_expect(&scene->inbox, sizeof scene->values, scene->values, NULL) == 0);
    ps_message_release(message);
}

static void on_pieces(void *context, struct rpc_stream *stream, const struct rpc_piece *pieces, unsigned count)
{
    struct scene *scene = context;
    struct ps_message message = {0};
    bool bulk;
    (void)stream;
    SCOPED_LOCK(&scene->lock);
    cr_assert(bulk_or_message(pieces, count, &bulk, &message, NULL) == 0);
    if (!bulk)
        hear(scene, &message);
    else
        cr_assert(bulk_inbox_take(&scene->inbox, pieces, count, NULL) == 0);
    scene->has_values |= bulk && bulk_inbox_is_full(&scene->inbox);
    pthread_cond_broadcast(&scene->changed);
}

static void on_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    struct scene *scene = context;
    (void)stream, (void)error;
    SCOPED_LOCK(&scene->lock);
    scene->closed = true;
    pthread_cond_broadcast(&scene->changed);
}

static void open_stream(struct scene *scene)
{
    static const struct rpc_stream_events events = {.pieces = on_pieces, .closed = on_closed};
    struct ps_message message = {
        .type = PS_OPEN, .generation = {.attempt = 1, .incarnation = 1}, .nonce = 9, .digest = 5};
    snprintf(message.job_uid, sizeof message.job_uid, "uid");
    cr_assert(rpc_stream_open(scene->rpc, scene->seat.host, scene->seat.port, PS_METHOD_EXCHANGE, 0, &events, scene,
                              &scene->stream, NULL) == 0);
    ps_message_send(scene->stream, &message);
}

static void tick(void *context)
{
    struct scene *scene = context;
    if (scene->stream == NULL)
        open_stream(scene);
    SCOPED_LOCK(&scene->lock);
    if (scene->wants_values && !scene->closed)
        ps_message_send(scene->stream, &(struct ps_message){.type = PS_PULL});
    scene->wants_values = false;
}

static void await_offer(struct scene *scene)
{
    SCOPED_LOCK(&scene->lock);
    while (scene->offer.type != PS_OPENED)
        pthread_cond_wait(&scene->changed, &scene->lock);
}

/* ---------------------------------------------------------------- the scene */

static void set_up(struct scene *scene)
{
    loopback_host(scene->host, 1);
    scene->seat = (struct crew_seat){.role = "ps", .host = scene->host};
    pthread_mutex_init(&scene->lock, NULL);
    pthread_cond_init(&scene->changed, NULL);
    placement_init(&scene->placement, &layout, 1);
    cr_assert(device_open(&(struct device_options){.threads = 1}, &scene->device, NULL) == 0);
    start_server(scene);
    start_chief(scene);
    begin(scene);
    cr_assert(rpc_new(tick, scene, 20, &scene->rpc, NULL) == 0);
    rpc_start_ticks(scene->rpc);
    await_offer(scene);
}

static void tear_down(struct scene *scene)
{
    rpc_free(scene->rpc);
    bulk_inbox_release(&scene->inbox);
    dispatcher_free(scene->dispatcher);
    ps_server_free(scene->server);
    device_close(scene->device);
    placement_release(&scene->placement);
}

/* As a worker does that has given up on its bulk connection just before the server answers it. */
static void show_token_and_leave(const struct scene *scene)
{
    struct greeting greeting = {.job_uid = "uid", .nonce = scene->offer.token};
    struct opening opening;
    int dialled = opening_connect(scene->host, (uint16_t)scene->offer.port);
    opening_greet(dialled, &opening, &greeting);
    cr_assert(opening_hear_answer(dialled, &opening) == ANSWER_TCP);
    shutdown(dialled, SHUT_WR);
    cr_assert(opening_is_ended(dialled)); /* the server has noticed, and let go of it */
    close(dialled);
}

Test(server_exchange, a_line_that_ends_unused_leaves_the_stream_as_it_is, .timeout = 120)
{
    static struct scene scene;
    set_up(&scene);
    cr_assert(scene.offer.port != 0);
    show_token_and_leave(&scene);
    pthread_mutex_lock(&scene.lock);
    scene.wants_values = true;
    while (!scene.has_values && !scene.closed)
        pthread_cond_wait(&scene.changed, &scene.lock);
    cr_expect(scene.has_values && !scene.closed);
    cr_expect(scene.values[ELEMENTS - 1] == ELEMENTS - 1);
    pthread_mutex_unlock(&scene.lock);
    tear_down(&scene);
}
