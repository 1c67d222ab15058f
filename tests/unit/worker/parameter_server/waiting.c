/* SPDX-License-Identifier: Apache-2.0
 *
 * In a crew of parameter servers, a process that waits says for which one and for what. The processes that are waited for are mute: they
 * answer what a test lets them answer, and from then on nothing, as a frozen process does.
 */
#include "worker/parameter_server/waiting.h"
#include "common/lock.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/unit/worker/comm/foreign.h"
#include "worker/parameter_server/bulk.h"
#include "worker/parameter_server/dispatcher.h"
#include "worker/parameter_server/server.h"
#include "worker/parameter_server/servers_link.h"
#include "worker/parameter_server/ticket_link.h"

#define SERVERS 2
#define ELEMENTS 6
#define PATIENCE_MS 200

static struct parameter_tensor tensors[] = {
    {.name = "w", .shape = {3}, .rank = 1, .offset = 0, .elements = 3},
    {.name = "b", .shape = {3}, .rank = 1, .offset = 3, .elements = 3},
};
static const struct parameter_layout layout = {.tensors = tensors, .tensor_count = 2, .elements = ELEMENTS};
static const struct optimizer_spec plain = {.type = OPTIMIZER_SGD, .learning_rate = 1};

/* The messages that a mute process still answers. */
enum answer {
    OPENS = 1,
    STANDS = 2,
    HOLDS_STATE = 4,
    STARTS = 8,
    REDUCES = 16,
    ACKNOWLEDGES = 32,
    WELCOMES = 64,
    IS_STRANGE = 128,
    FREEZES = 256
};

struct mute {
    atomic_uint answers;
    struct rpc *rpc;
    struct rpc_server *listener;
};

struct scene {
    struct placement placement;
    char hosts[SERVERS + 1][32];
    struct crew_seat seats[1 + SERVERS]; /* the chief, the servers */
    struct mute mutes[SERVERS], chief;
    struct device *device;
    struct ps_server *server; /* a real one in the place of mute 0 */
    char server_waits[PS_TEXT_MAX];
    pthread_mutex_t lock;
    struct dispatcher *dispatcher;
    struct rpc *rpc; /* a worker's */
    struct address_book *book;
    struct ticket_link *tickets;
    struct servers_link *links;
    pthread_t thread;
    bool pushes;
    int64_t deadline_ms;
    struct error outcome; /* of the worker's exchange */
};

/* ---- mute processes */

/* As a process of another version says it. */
static void say_foreign(struct rpc_stream *stream, enum ps_message_type type)
{
    SCOPED_BUFFER bytes = BUFFER_INIT(PS_MESSAGE_MAX);
    cr_assert_eq(ps_message_encode(&(struct ps_message){.type = type}, &bytes, NULL), 0);
    foreign_message(bytes.data, bytes.length);
    rpc_stream_send(stream, bytes.data, bytes.length);
}

static void answer(const struct mute *mute, struct rpc_stream *stream, const struct ps_message *message)
{
    unsigned answers = atomic_load(&mute->answers);
    if (answers & IS_STRANGE)
        say_foreign(stream, PS_BEAT);
    else if (message->type == PS_OPEN && (answers & OPENS))
        ps_message_send(stream, &(struct ps_message){.type = PS_OPENED, .holds_state = true});
    else if (message->type == PS_CLAIM && (answers & STANDS))
        ps_message_send(stream,
                        &(struct ps_message){.type = PS_SERVER_STATE, .holds_state = (answers & HOLDS_STATE) != 0});
    else if (message->type == PS_START && (answers & STARTS))
        ps_message_send(stream, &(struct ps_message){.type = PS_SERVER_STATE, .holds_state = true, .pull = true});
    else if (message->type == PS_REDUCE && (answers & REDUCES))
        ps_message_send(stream, &(struct ps_message){.type = PS_REDUCED, .step = message->step, .squares = 1});
    else if (message->type == PS_PUSH && (answers & ACKNOWLEDGES))
        ps_message_send(stream, &(struct ps_message){.type = PS_ACK, .ticket = message->ticket});
    else if (message->type == PS_PUSH && (answers & FREEZES))
        while (atomic_load(&mute->answers) & FREEZES)
            usleep(10000);
    else if (message->type == PS_JOIN && (answers & WELCOMES))
        ps_message_send(stream, &(struct ps_message){.type = PS_WELCOME, .per_step = 2});
}

static void on_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct ps_message message = {0};
    if (ps_message_decode(bytes, length, &message, NULL) == 0)
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
    *ret_events = (struct rpc_stream_events){.message = on_message, .closed = on_closed};
    *ret_context = context;
}

static uint16_t mute_start(struct mute *mute, const char *host, unsigned answers)
{
    static const struct rpc_method methods[] = {
        {PS_METHOD_TICKETS, opened}, {PS_METHOD_EXCHANGE, opened}, {PS_METHOD_CONTROL, opened}};
    struct error error = ERROR_INIT;
    atomic_store(&mute->answers, answers);
    cr_assert_eq(rpc_new(NULL, NULL, 1000, &mute->rpc, &error), 0, "%s", error.message);
    cr_assert_eq(
        rpc_server_start(mute->rpc, host, 0, methods, sizeof methods / sizeof *methods, mute, &mute->listener, &error),
        0, "%s", error.message);
    return rpc_server_port(mute->listener);
}

/* ---- the scene */

static void set_up(struct scene *scene, unsigned answers)
{
    memset(scene, 0, sizeof *scene);
    pthread_mutex_init(&scene->lock, NULL);
    placement_init(&scene->placement, &layout, SERVERS);
    for (unsigned i = 0; i <= SERVERS; i++)
        snprintf(scene->hosts[i], sizeof scene->hosts[i], "127.%u.%u.%u", 100 + (unsigned)getpid() % 100,
                 (unsigned)getpid() / 100 % 250, i + 1);
    scene->seats[0] = (struct crew_seat){.role = "worker", .host = scene->hosts[SERVERS]};
    for (unsigned i = 0; i < SERVERS; i++)
        scene->seats[1 + i] = (struct crew_seat){.role = "ps",
                                                 .index = i,
                                                 .host = scene->hosts[i],
                                                 .port = mute_start(&scene->mutes[i], scene->hosts[i], answers)};
}

static void tear_down(struct scene *scene)
{
    if (scene->dispatcher)
        dispatcher_free(scene->dispatcher);
    if (scene->rpc) {
        rpc_stop(scene->rpc);
        address_book_free(scene->book);
        rpc_free(scene->rpc);
        servers_link_free(scene->links);
        ticket_link_free(scene->tickets);
    }
    ps_server_free(scene->server);
    for (unsigned i = 0; i < SERVERS; i++)
        if (scene->mutes[i].rpc)
            rpc_free(scene->mutes[i].rpc);
    if (scene->chief.rpc)
        rpc_free(scene->chief.rpc);
    if (scene->device)
        device_close(scene->device);
    placement_release(&scene->placement);
}

static void tick(void *context)
{
    struct scene *scene = context;
    ticket_link_tick(scene->tickets);
    servers_link_tick(scene->links);
}

static void wake(void *context)
{
    rpc_wake(((struct scene *)context)->rpc);
}

static void open_worker(struct scene *scene, uint16_t chief_port)
{
    scene->seats[0].port = chief_port;
    cr_assert_eq(rpc_new(tick, scene, 50, &scene->rpc, NULL), 0);
    cr_assert_eq(address_book_new(scene->seats, 1 + SERVERS, wake, scene, &scene->book, NULL), 0);
    cr_assert_eq(ticket_link_new(&(struct ticket_link_options){.rpc = scene->rpc,
                                                               .book = scene->book,
                                                               .chief_port = chief_port,
                                                               .job_uid = "uid",
                                                               .generation = {.incarnation = 1},
                                                               .chief = &scene->seats[0],
                                                               .patience_ms = PATIENCE_MS},
                                 &scene->tickets, NULL),
                 0);
    cr_assert_eq(servers_link_new(&(struct servers_link_options){.rpc = scene->rpc,
                                                                 .book = scene->book,
                                                                 .first_seat = 1,
                                                                 .servers = scene->seats + 1,
                                                                 .placement = &scene->placement,
                                                                 .elements = ELEMENTS,
                                                                 .job_uid = "uid",
                                                                 .generation = {.incarnation = 1},
                                                                 .digest = 5,
                                                                 .deadline_ms = scene->deadline_ms,
                                                                 .patience_ms = PATIENCE_MS},
                                  &scene->links, NULL),
                 0);
    rpc_start_ticks(scene->rpc);
    rpc_wake(scene->rpc);
}

/* ---- what is said */

static void describe_links(struct scene *scene, char text[PS_TEXT_MAX])
{
    servers_link_describe(scene->links, text);
}

static void describe_tickets(struct scene *scene, char text[PS_TEXT_MAX])
{
    ticket_link_describe(scene->tickets, text);
}

static void describe_chief(struct scene *scene, char text[PS_TEXT_MAX])
{
    dispatcher_describe(scene->dispatcher, text);
}

static void describe_server(struct scene *scene, char text[PS_TEXT_MAX])
{
    SCOPED_LOCK(&scene->lock);
    memcpy(text, scene->server_waits, PS_TEXT_MAX);
}

/* Waits until the words are there: role, index, address of that seat, and what it is to do. */
static void expect_words(struct scene *scene, void (*describe)(struct scene *, char[PS_TEXT_MAX]), unsigned seat,
                         const char *what)
{
    char name[WAITING_NAME_MAX], words[WAITING_NAME_MAX + 64], text[PS_TEXT_MAX] = "";
    waiting_name(scene->seats[seat].role, scene->seats[seat].index, &scene->seats[seat], name);
    cr_assert_not_null(strstr(name, scene->seats[seat].host));
    snprintf(words, sizeof words, "for %s%s", name, what);
    for (int look = 0; look < 600; look++) {
        describe(scene, text);
        if (strstr(text, words))
            return;
        usleep(100000);
    }
    cr_expect_fail("\"%s\", not \"%s\"", text, words);
}

/* ---- a worker */

static void *exchange(void *context)
{
    struct scene *scene = context;
    uint64_t nonces[PS_SERVERS_MAX];
    bool outdated;
    const struct servers_push push = {.ticket = 57, .rate = 1, .scale = 1};
    if (scene->pushes)
        (void)servers_link_push(scene->links, &push, &outdated, nonces, &scene->outcome);
    else
        (void)servers_link_pull(scene->links, NULL, &scene->outcome);
    return NULL;
}

static void expect_worker_to_name(unsigned answers, bool pushes, const char *what)
{
    struct scene scene;
    char text[PS_TEXT_MAX];
    set_up(&scene, answers);
    open_worker(&scene, 1);
    describe_links(&scene, text);
    cr_expect_str_empty(text, "nobody is waited for yet: %s", text);
    scene.pushes = pushes;
    cr_assert_eq(pthread_create(&scene.thread, NULL, exchange, &scene), 0);
    expect_words(&scene, describe_links, 1, what);
    expect_words(&scene, describe_links, 2, what);
    servers_link_cancel(scene.links);
    pthread_join(scene.thread, NULL);
    describe_links(&scene, text);
    cr_expect_str_empty(text, "%s", text);
    tear_down(&scene);
}

Test(waiting, a_server_that_does_not_open_is_named_by_the_worker, .timeout = 120)
{
    expect_worker_to_name(0, false, " to answer");
}

Test(waiting, a_server_that_is_frozen_in_a_pull_is_named_by_the_worker, .timeout = 120)
{
    expect_worker_to_name(OPENS, false, " to send its values");
}

Test(waiting, a_server_that_is_frozen_in_a_push_is_named_by_the_worker, .timeout = 120)
{
    expect_worker_to_name(OPENS, true, " to acknowledge ticket 57");
}

/* The call ends, and names one of them. */
static void expect_deadline(unsigned answers, bool pushes, const char *what)
{
    struct scene scene;
    char words[SERVERS][WAITING_NAME_MAX + 64], name[WAITING_NAME_MAX];
    bool named = false;
    set_up(&scene, OPENS | answers);
    scene.deadline_ms = PATIENCE_MS;
    scene.pushes = pushes;
    open_worker(&scene, 1);
    (void)exchange(&scene);
    for (unsigned i = 0; i < SERVERS; i++) {
        waiting_name("ps", i, &scene.seats[1 + i], name);
        snprintf(words[i], sizeof words[i], "for %s%s", name, what);
        named |= strstr(scene.outcome.message, words[i]) != NULL;
    }
    cr_expect(scene.outcome.kind == ERROR_TIMEOUT && named, "\"%s\", not \"%s\"", scene.outcome.message, words[0]);
    for (unsigned i = 0; i < SERVERS; i++)
        atomic_store(&scene.mutes[i].answers, 0);
    tear_down(&scene);
}

Test(waiting, a_server_that_freezes_in_the_middle_of_a_push_is_given_up, .timeout = 120)
{
    expect_deadline(FREEZES, true, " to acknowledge ticket 57");
    expect_deadline(0, true, " to acknowledge ticket 57");
    expect_deadline(0, false, " to send its values");
}

static void *take_ticket(void *context)
{
    struct scene *scene = context;
    struct ticket_grant grant;
    (void)ticket_link_next(scene->tickets, &grant, &scene->outcome);
    return NULL;
}

static void expect_chief_named(unsigned answers, const char *what)
{
    struct scene scene;
    set_up(&scene, 0);
    open_worker(&scene, mute_start(&scene.chief, scene.hosts[SERVERS], answers));
    cr_assert_eq(pthread_create(&scene.thread, NULL, take_ticket, &scene), 0);
    expect_words(&scene, describe_tickets, 0, what);
    ticket_link_cancel(scene.tickets);
    pthread_join(scene.thread, NULL);
    tear_down(&scene);
}

Test(waiting, a_chief_that_is_frozen_is_named_by_the_worker, .timeout = 120)
{
    expect_chief_named(0, ", the chief");
    expect_chief_named(WELCOMES, ", the chief, to give a ticket");
}

/* ---- the chief */

static double rate(void *context, int64_t step)
{
    (void)context, (void)step;
    return 1;
}

static void start_chief(struct scene *scene, enum parameter_server_mode mode)
{
    const struct dispatcher_options options = {
        .job_uid = "uid",
        .generation = {.incarnation = 1},
        .listen_address = scene->hosts[SERVERS],
        .servers = scene->seats + 1,
        .server_count = SERVERS,
        .workers = scene->seats,
        .worker_count = 1,
        .digest = 5,
        .scheduler = {.mode = mode, .tickets_per_step = 1, .end = 100},
        .rate = rate,
        .patience_ms = PATIENCE_MS,
    };
    struct error error = ERROR_INIT;
    cr_assert_eq(dispatcher_start(&options, &scene->dispatcher, &error), 0, "%s", error.message);
    scene->seats[0].port = dispatcher_port(scene->dispatcher);
}

/* Has all servers start afresh, unless they hold a state. */
static void *begin(void *context)
{
    struct scene *scene = context;
    struct server_standing standings[PS_SERVERS_MAX];
    struct server_start starts[SERVERS] = {{.path = ""}, {.path = ""}};
    const struct dispatcher_plan plan = {.starts = starts};
    int64_t lost;
    if (dispatcher_await_servers(scene->dispatcher, standings, NULL) < 0)
        return NULL;
    for (unsigned i = 0; i < SERVERS; i++) {
        starts[i].needed = !standings[i].holds_state;
        server_standing_release(&standings[i]);
    }
    (void)dispatcher_begin(scene->dispatcher, &plan, &lost, NULL);
    return NULL;
}

static void *save(void *context)
{
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    (void)dispatcher_save(((struct scene *)context)->dispatcher, "nowhere", false, saved, NULL);
    return NULL;
}

static void stop_chief(struct scene *scene)
{
    dispatcher_cancel(scene->dispatcher);
    pthread_join(scene->thread, NULL);
}

static void expect_servers_named(unsigned answers, const char *what)
{
    struct scene scene;
    set_up(&scene, answers);
    start_chief(&scene, PARAMETER_SERVER_SYNCHRONOUS);
    cr_assert_eq(pthread_create(&scene.thread, NULL, begin, &scene), 0);
    expect_words(&scene, describe_chief, 1, what);
    expect_words(&scene, describe_chief, 2, what);
    stop_chief(&scene);
    tear_down(&scene);
}

Test(waiting, servers_that_are_frozen_at_the_start_are_named_by_the_chief, .timeout = 120)
{
    expect_servers_named(0, "");
    expect_servers_named(STANDS, " to take its state");
}

/* With tickets flowing. */
static void open_chief_of(struct scene *scene, enum parameter_server_mode mode, unsigned answers)
{
    set_up(scene, answers | STANDS | HOLDS_STATE);
    start_chief(scene, mode);
    (void)begin(scene);
}

static void open_chief(struct scene *scene, unsigned answers)
{
    open_chief_of(scene, PARAMETER_SERVER_SYNCHRONOUS, answers);
}

Test(waiting, servers_that_are_frozen_in_a_save_are_named_by_the_chief, .timeout = 120)
{
    struct scene scene;
    open_chief(&scene, 0);
    cr_assert_eq(pthread_create(&scene.thread, NULL, save, &scene), 0);
    expect_words(&scene, describe_chief, 2, " to write its shard");
    for (unsigned i = 0; i < SERVERS; i++) { /* a save ends when they are gone */
        rpc_free(scene.mutes[i].rpc);
        scene.mutes[i].rpc = NULL;
    }
    stop_chief(&scene);
    tear_down(&scene);
}

/* The only share of a step is done: the servers are to sum and apply it, which the others' next tickets wait for. */
static void expect_barrier_named(unsigned answers, const char *what)
{
    struct scene scene;
    struct ticket_grant grant;
    struct ticket_result result = {.targets = 1, .examples = 1, .squares = -1, .server_count = SERVERS};
    open_chief(&scene, answers | OPENS);
    open_worker(&scene, scene.seats[0].port);
    cr_assert_eq(ticket_link_next(scene.tickets, &grant, NULL), 0);
    expect_words(&scene, describe_chief, 0, " to finish its share");
    ticket_link_done(scene.tickets, &result);
    expect_words(&scene, describe_chief, 1, what);
    expect_words(&scene, describe_chief, 2, what);
    cr_assert_eq(pthread_create(&scene.thread, NULL, take_ticket, &scene), 0);
    expect_words(&scene, describe_tickets, 0, ", the chief, to give a ticket");
    ticket_link_cancel(scene.tickets);
    pthread_join(scene.thread, NULL);
    tear_down(&scene);
}

Test(waiting, a_worker_frozen_in_a_synchronous_step_is_named_by_the_chief, .timeout = 240)
{
    expect_barrier_named(0, " to sum the step's shares");
    expect_barrier_named(REDUCES, " to apply the step");
}

/* Its process beats on: it stands in the reading of its data, for example. */
static void expect_holder_named(enum parameter_server_mode mode)
{
    struct scene scene;
    struct ticket_grant grant;
    open_chief_of(&scene, mode, OPENS);
    open_worker(&scene, scene.seats[0].port);
    cr_assert_eq(ticket_link_next(scene.tickets, &grant, NULL), 0);
    expect_words(&scene, describe_chief, 0, " to finish its share");
    tear_down(&scene);
}

Test(waiting, a_worker_that_never_ends_a_share_is_named_once_all_wait, .timeout = 240)
{
    expect_holder_named(PARAMETER_SERVER_ASYNC);
    expect_holder_named(PARAMETER_SERVER_BOUNDED_STALENESS);
}

/* ---- a worker that says nothing more, at the chief */

struct silent {
    struct scene *scene;
    bool called;
};

static void hear_nothing(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    (void)context, (void)stream, (void)bytes, (void)length;
}

static void join_and_fall_silent(void *context)
{
    struct silent *silent = context;
    static const struct rpc_stream_events events = {.message = hear_nothing, .closed = on_closed};
    struct rpc_stream *stream;
    if (silent->called)
        return;
    silent->called = true;
    struct ps_message join = {.type = PS_JOIN, .generation = {.incarnation = 1}, .nonce = 9, .ticket = -1};
    snprintf(join.job_uid, sizeof join.job_uid, "uid");
    cr_assert_eq(rpc_stream_open(silent->scene->rpc, silent->scene->seats[0].host, silent->scene->seats[0].port,
                                 PS_METHOD_TICKETS, 0, &events, silent, &stream, NULL),
                 0);
    ps_message_send(stream, &join);
    ps_message_send(stream, &(struct ps_message){.type = PS_WANT});
}

static void await_text(struct scene *scene, const char *words)
{
    struct dispatcher_event event = {.kind = EVENT_NONE};
    for (int look = 0; look < 600; look++) {
        cr_assert_eq(dispatcher_next_event(scene->dispatcher, 100, &event, NULL), 0);
        if (event.kind == EVENT_TEXT && strstr(event.text, words))
            return;
    }
    cr_expect_fail("not \"%s\": %s", words, event.text);
}

Test(waiting, a_worker_that_is_frozen_with_a_ticket_is_named_by_the_chief, .timeout = 120)
{
    struct scene scene;
    struct silent silent = {.scene = &scene};
    char name[WAITING_NAME_MAX], words[WAITING_NAME_MAX + 64];
    open_chief(&scene, 0);
    cr_assert_eq(rpc_new(join_and_fall_silent, &silent, 50, &scene.rpc, NULL), 0);
    rpc_start_ticks(scene.rpc);
    expect_words(&scene, describe_chief, 0, " to be heard of");
    waiting_name("worker", 0, &scene.seats[0], name);
    snprintf(words, sizeof words, "%s has been silent for long and counts as dead", name);
    await_text(&scene, words);
    rpc_free(scene.rpc);
    scene.rpc = NULL;
    tear_down(&scene);
}

/* ---- processes of another version */

#define ADVICE "give all pods of the job the same image"

static void expect_advice(const struct error *error)
{
    cr_expect(error->kind == ERROR_FORBIDDEN && strstr(error->message, ADVICE), "%s", error->message);
}

Test(waiting, servers_and_chiefs_of_another_version_are_told_by_the_worker, .timeout = 120)
{
    struct scene scene;
    set_up(&scene, IS_STRANGE);
    open_worker(&scene, mute_start(&scene.chief, scene.hosts[SERVERS], IS_STRANGE));
    (void)exchange(&scene);
    expect_advice(&scene.outcome);
    error_clear(&scene.outcome);
    (void)take_ticket(&scene);
    expect_advice(&scene.outcome);
    tear_down(&scene);
}

Test(waiting, servers_of_another_version_are_told_by_the_chief, .timeout = 120)
{
    struct scene scene;
    struct server_standing standings[PS_SERVERS_MAX];
    struct error error = ERROR_INIT;
    char name[WAITING_NAME_MAX];
    set_up(&scene, IS_STRANGE);
    start_chief(&scene, PARAMETER_SERVER_SYNCHRONOUS);
    cr_assert(dispatcher_await_servers(scene.dispatcher, standings, &error) < 0);
    expect_advice(&error);
    waiting_name("ps", 0, &scene.seats[1], name);
    cr_expect(strncmp(error.message, "ps ", 3) == 0, "%s", error.message);
    tear_down(&scene);
}

/* A caller of another version gets an answer of ours, which tells it the protocol, and not silence. */
struct stranger {
    struct scene *scene;
    const char *host, *method;
    uint16_t port;
    atomic_int called, refused;
};

static void hear_refusal(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct stranger *stranger = context;
    struct ps_message message = {0};
    (void)stream;
    if (ps_message_decode(bytes, length, &message, NULL) == 0 && message.type == PS_REFUSED &&
        strstr(message.text, ADVICE))
        atomic_store(&stranger->refused, 1);
    ps_message_release(&message);
}

static void call_strangely(void *context)
{
    struct stranger *stranger = context;
    static const struct rpc_stream_events events = {.message = hear_refusal, .closed = on_closed};
    struct rpc_stream *stream;
    if (atomic_exchange(&stranger->called, 1))
        return;
    cr_assert_eq(rpc_stream_open(stranger->scene->rpc, stranger->host, stranger->port, stranger->method, 0, &events,
                                 stranger, &stream, NULL),
                 0);
    say_foreign(stream, PS_OPEN);
}

static void expect_refusal(struct scene *scene, unsigned seat, const char *method)
{
    struct stranger stranger = {
        .scene = scene, .host = scene->seats[seat].host, .port = scene->seats[seat].port, .method = method};
    cr_assert_eq(rpc_new(call_strangely, &stranger, 50, &scene->rpc, NULL), 0);
    rpc_start_ticks(scene->rpc);
    for (int look = 0; look < 600 && !atomic_load(&stranger.refused); look++)
        usleep(100000);
    cr_expect(atomic_load(&stranger.refused), "%s says nothing", method);
    rpc_free(scene->rpc);
    scene->rpc = NULL;
}

/* ---- a server */

static int load(void *context, const char *checkpoint, struct variables *variables, struct error *error)
{
    (void)context, (void)checkpoint, (void)error;
    memset(variables->parameters, 0, (size_t)variables->elements * sizeof(float));
    return 0;
}

static void hear_waits(void *context, const char *text)
{
    struct scene *scene = context;
    SCOPED_LOCK(&scene->lock);
    snprintf(scene->server_waits, sizeof scene->server_waits, "%s", text);
}

static void start_server(struct scene *scene)
{
    struct error error = ERROR_INIT;
    rpc_free(scene->mutes[0].rpc);
    scene->mutes[0].rpc = NULL;
    cr_assert_eq(device_open(&(struct device_options){.threads = 1}, &scene->device, NULL), 0);
    const struct ps_server_options options = {
        .job_uid = "uid",
        .generation = {.incarnation = 1},
        .listen_address = scene->hosts[0],
        .variables = {.device = scene->device, .optimizer = &plain, .placement = &scene->placement},
        .digest = 5,
        .load = load,
        .waits = hear_waits,
        .context = scene,
        .patience_ms = PATIENCE_MS,
    };
    cr_assert_eq(ps_server_start(&options, &scene->server, &error), 0, "%s", error.message);
    scene->seats[1].port = ps_server_port(scene->server);
}

Test(waiting, callers_of_another_version_are_refused, .timeout = 240)
{
    struct scene scene;
    set_up(&scene, STANDS | HOLDS_STATE);
    start_server(&scene);
    start_chief(&scene, PARAMETER_SERVER_SYNCHRONOUS);
    expect_refusal(&scene, 1, PS_METHOD_EXCHANGE);
    expect_refusal(&scene, 1, PS_METHOD_CONTROL);
    expect_refusal(&scene, 0, PS_METHOD_TICKETS);
    tear_down(&scene);
}

Test(waiting, a_server_without_a_chief_says_so, .timeout = 120)
{
    struct scene scene;
    char text[PS_TEXT_MAX] = "";
    set_up(&scene, 0);
    start_server(&scene);
    for (int look = 0; look < 600 && !strstr(text, "waiting for the chief"); look++) {
        describe_server(&scene, text);
        usleep(100000);
    }
    cr_expect_str_eq(text, "waiting for the chief");
    tear_down(&scene);
}

/* Work may take its time; silence may not. */
Test(waiting, a_connected_process_has_more_time_than_an_absent_one)
{
    cr_expect_lt(waiting_patience_ms(0, false), waiting_patience_ms(0, true));
    cr_expect_leq(waiting_patience_ms(0, true), 30000);
    cr_expect_eq(waiting_patience_ms(7, true), 7);
}
