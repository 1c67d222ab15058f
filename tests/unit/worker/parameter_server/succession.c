/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/contract/environment.h"
#include "common/memory.h"
#include "tests/unit/worker/comm/foreign.h"
#include "worker/parameter_server/bulk.h"
#include "worker/parameter_server/dispatcher.h"
#include "worker/parameter_server/recovery.h"
#include "worker/parameter_server/server.h"
#include "worker/parameter_server/servers_link.h"

/* Successions of processes: servers that stood still and come back with their connections alive, while their names lead to their
 * successors. Here, servers simply go on while their names change. And what servers accept between two chiefs. */

#define SERVERS 2
#define ELEMENTS 6
#define PATIENCE 60000 /* ms; reached by what hangs only */
#define LOOK_MS 50
#define PORT 2222 /* each process has an address of its own */

static struct parameter_tensor tensors[] = {
    {.name = "w", .shape = {3}, .rank = 1, .offset = 0, .elements = 3},
    {.name = "b", .shape = {3}, .rank = 1, .offset = 3, .elements = 3},
};
static const struct parameter_layout layout = {.tensors = tensors, .tensor_count = 2, .elements = ELEMENTS};
static const struct optimizer_spec plain = {.type = OPTIMIZER_SGD, .learning_rate = 1};

struct scene {
    char hosts_file[64];
    char names[SERVERS][8], addresses[SERVERS][32];
    unsigned next_address;
    bool never_saved;
    atomic_int value; /* that servers start with */
    atomic_bool disk_hangs;
    atomic_uint writing; /* shards that were begun */
    int64_t last_save_ms;
    struct crew_seat seats[SERVERS];
    struct placement placement;
    struct device *device;
    struct ps_server *servers[SERVERS], *former[SERVERS];
    struct dispatcher *dispatcher;

    struct rpc *rpc; /* of a worker */
    struct address_book *book;
    struct servers_link *link;

    struct rpc *caller_rpc; /* of a stranger's one message */
    struct ps_message call;
    const char *method;
    atomic_bool called;
};

/* ---------------------------------------------------------------- names */

static void write_hosts(const struct scene *scene)
{
    char path[72];
    snprintf(path, sizeof path, "%s.new", scene->hosts_file);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    for (unsigned i = 0; i < SERVERS; i++)
        fprintf(file, "%s %s\n", scene->addresses[i], scene->names[i]);
    cr_assert(fclose(file) == 0 && rename(path, scene->hosts_file) == 0);
}

static void take_address(struct scene *scene, unsigned number)
{
    snprintf(scene->addresses[number], sizeof scene->addresses[number], "127.%u.%u.%u", 1 + (unsigned)getpid() % 250,
             (unsigned)getpid() / 250 % 250, ++scene->next_address);
}

/* ---------------------------------------------------------------- servers */

static int load(void *context, const char *checkpoint, struct variables *variables, struct error *error)
{
    (void)checkpoint, (void)error;
    for (int64_t i = 0; i < variables->elements; i++)
        variables->parameters[i] = (float)atomic_load(&((struct scene *)context)->value);
    return 0;
}

static int store(void *context, const char *directory, const struct variables *copy, char ret_name[64],
                 int64_t *ret_bytes, uint32_t *ret_crc, struct error *error)
{
    (void)directory, (void)copy, (void)ret_bytes, (void)ret_crc, (void)error;
    struct scene *scene = context;
    atomic_fetch_add(&scene->writing, 1);
    while (atomic_load(&scene->disk_hangs))
        usleep(1000);
    snprintf(ret_name, 64, "shard");
    return 0;
}

static void start_server(struct scene *scene, unsigned number, struct generation generation)
{
    struct error error = ERROR_INIT;
    take_address(scene, number);
    const struct ps_server_options options = {
        .job_uid = "uid",
        .generation = generation,
        .listen_address = scene->addresses[number],
        .port = scene->seats[number].port,
        .variables = {.device = scene->device, .optimizer = &plain, .placement = &scene->placement, .server = number},
        .digest = 5,
        .never_saved = scene->never_saved,
        .load = load,
        .store = store,
        .context = scene,
        .leave_ms = 60 * PATIENCE,
    };
    cr_assert(ps_server_start(&options, &scene->servers[number], &error) == 0, "%s", error.message);
    write_hosts(scene);
}

/* The one before it goes on: nobody has told it. */
static void replace(struct scene *scene, unsigned number, struct generation generation)
{
    scene->former[number] = scene->servers[number];
    start_server(scene, number, generation);
}

static void expect_superseded(struct ps_server *server, const char *words)
{
    struct error error = ERROR_INIT;
    cr_assert(ps_server_wait(server, &error) < 0);
    cr_expect(error.kind == ERROR_STALE && strstr(error.message, words) != NULL, "%s", error.message);
}

/* ---------------------------------------------------------------- the chief */

static double rate(void *context, int64_t step)
{
    (void)context, (void)step;
    return 1;
}

static void start_chief(struct scene *scene, uint32_t incarnation)
{
    struct error error = ERROR_INIT;
    const struct dispatcher_options options = {
        .job_uid = "uid",
        .generation = {.attempt = 1, .incarnation = incarnation},
        .listen_address = "127.0.0.1",
        .servers = scene->seats,
        .server_count = SERVERS,
        .digest = 5,
        .scheduler = {.mode = PARAMETER_SERVER_ASYNC, .tickets_per_step = 1, .end = 10},
        .rate = rate,
        .look_ms = LOOK_MS,
        .last_save_ms = scene->last_save_ms,
    };
    cr_assert(dispatcher_start(&options, &scene->dispatcher, &error) == 0, "%s", error.message);
}

static int begin(struct scene *scene)
{
    const struct recovery_options options = {
        .mode = PARAMETER_SERVER_ASYNC, .server_count = SERVERS, .per_step = 1, .chief_incarnation = 1};
    struct server_standing standings[PS_SERVERS_MAX];
    struct server_start *starts = memory_allocate(PS_SERVERS_MAX, sizeof *starts);
    struct dispatcher_plan plan;
    struct recovery_source source = {.path = memory_copy_string("")};
    int64_t lost;
    cr_assert(dispatcher_await_servers(scene->dispatcher, standings, NULL) == 0);
    recovery_plan(&options, recovery_choose(&options, standings), standings, &source, starts, &plan);
    int result = dispatcher_begin(scene->dispatcher, &plan, &lost, NULL);
    for (unsigned i = 0; i < SERVERS; i++)
        server_standing_release(&standings[i]);
    recovery_plan_release(&plan, starts);
    recovery_source_release(&source);
    free(starts);
    return result;
}

static void begin_at_last(struct scene *scene)
{
    for (int tries = 0; begin(scene) < 0; tries++)
        cr_assert(tries < 100, "the crew does not begin");
}

static void expect_loss(struct scene *scene)
{
    struct dispatcher_event event;
    do
        cr_assert(dispatcher_next_event(scene->dispatcher, PATIENCE, &event, NULL) == 0);
    while (event.kind == EVENT_TEXT);
    cr_assert(event.kind == EVENT_SERVER_LOST, "event %d: %s", (int)event.kind, event.text);
}

/* ---------------------------------------------------------------- a worker, and a stranger */

static void tick(void *context)
{
    servers_link_tick(((struct scene *)context)->link);
}

static void wake(void *context)
{
    rpc_wake(((struct scene *)context)->rpc);
}

static void open_worker(struct scene *scene)
{
    cr_assert(rpc_new(tick, scene, 20, &scene->rpc, NULL) == 0);
    cr_assert(address_book_new(scene->seats, SERVERS, wake, scene, &scene->book, NULL) == 0);
    const struct servers_link_options options = {.rpc = scene->rpc,
                                                 .book = scene->book,
                                                 .servers = scene->seats,
                                                 .placement = &scene->placement,
                                                 .elements = ELEMENTS,
                                                 .job_uid = "uid",
                                                 .generation = {.attempt = 1, .incarnation = 1},
                                                 .digest = 5};
    cr_assert(servers_link_new(&options, &scene->link, NULL) == 0);
    rpc_start_ticks(scene->rpc);
}

static void call(void *context)
{
    struct scene *scene = context;
    static const struct rpc_stream_events events = {0};
    struct rpc_stream *stream;
    if (atomic_exchange(&scene->called, true))
        return;
    cr_assert(rpc_stream_open(scene->caller_rpc, scene->addresses[0], scene->seats[0].port, scene->method, 0, &events,
                              NULL, &stream, NULL) == 0);
    ps_message_send(stream, &scene->call);
}

/* ---------------------------------------------------------------- the scene */

/* With scene->never_saved as it is. */
static void set_up_scene(struct scene *scene)
{
    snprintf(scene->hosts_file, sizeof scene->hosts_file, "%s/superseded-XXXXXX", P_tmpdir);
    int descriptor = mkstemp(scene->hosts_file);
    cr_assert(descriptor >= 0 && close(descriptor) == 0);
    setenv(ENV_HOSTS_FILE, scene->hosts_file, 1);
    placement_init(&scene->placement, &layout, SERVERS);
    cr_assert(device_open(&(struct device_options){.threads = 1}, &scene->device, NULL) == 0);
    for (unsigned i = 0; i < SERVERS; i++) {
        snprintf(scene->names[i], sizeof scene->names[i], "ps-%u", i);
        snprintf(scene->addresses[i], sizeof scene->addresses[i], "127.0.0.1");
        scene->seats[i] = (struct crew_seat){.role = "ps", .index = i, .host = scene->names[i], .port = PORT};
    }
    for (unsigned i = 0; i < SERVERS; i++)
        start_server(scene, i, (struct generation){.attempt = 1, .incarnation = 1 + i});
}

static void set_up(struct scene *scene)
{
    *scene = (struct scene){0};
    set_up_scene(scene);
}

static void set_up_led(struct scene *scene)
{
    set_up(scene);
    start_chief(scene, 1);
    begin_at_last(scene);
}

static void lose_chief(struct scene *scene)
{
    dispatcher_free(scene->dispatcher);
    scene->dispatcher = NULL;
}

static void tear_down(struct scene *scene)
{
    if (scene->rpc) {
        rpc_stop(scene->rpc);
        address_book_free(scene->book);
        rpc_free(scene->rpc);
        servers_link_free(scene->link);
    }
    if (scene->caller_rpc)
        rpc_free(scene->caller_rpc);
    dispatcher_free(scene->dispatcher);
    for (unsigned i = 0; i < SERVERS; i++) {
        ps_server_free(scene->servers[i]);
        ps_server_free(scene->former[i]);
    }
    device_close(scene->device);
    placement_release(&scene->placement);
    unlink(scene->hosts_file);
}

/* ---------------------------------------------------------------- tests */

/* A worker that came later would otherwise wait forever at the successor, which no chief leads. */
Test(superseded, the_chief_goes_on_with_the_server_that_the_name_means_now, .timeout = 180)
{
    struct scene scene;
    set_up_led(&scene);
    replace(&scene, 1, (struct generation){.attempt = 1, .incarnation = 7});
    expect_superseded(scene.former[1], "ps 1 of attempt 1, incarnation 2, is superseded");
    expect_loss(&scene);
    begin_at_last(&scene);
    open_worker(&scene);
    cr_expect(servers_link_pull(scene.link, NULL, NULL) == 0);
    tear_down(&scene);
}

/* A name that leads to a server which was there before: nobody is left for that one. */
Test(superseded, an_older_server_is_no_successor, .timeout = 180)
{
    struct scene scene;
    set_up_led(&scene);
    replace(&scene, 1, (struct generation){.attempt = 1, .incarnation = 1});
    expect_superseded(scene.servers[1], "incarnation 1, is superseded: its successor of attempt 1, incarnation 2,");
    struct dispatcher_event event;
    do
        cr_assert(dispatcher_next_event(scene.dispatcher, 20 * LOOK_MS, &event, NULL) == 0);
    while (event.kind == EVENT_TEXT);
    cr_expect(event.kind == EVENT_NONE, "event %d: %s", (int)event.kind, event.text);
    tear_down(&scene);
}

/* The chief that leads its successor has never known it. */
Test(superseded, a_server_without_a_chief_sends_workers_away, .timeout = 180)
{
    struct scene scene;
    set_up_led(&scene);
    open_worker(&scene);
    cr_assert(servers_link_pull(scene.link, NULL, NULL) == 0);
    dispatcher_free(scene.dispatcher);
    atomic_store(&scene.value, 2);
    replace(&scene, 0, (struct generation){.attempt = 1, .incarnation = 7});
    start_chief(&scene, 2);
    begin_at_last(&scene);
    for (int looks = 0; servers_link_values(scene.link)[0] != 2; looks++) {
        cr_assert(looks < PATIENCE, "the worker stays");
        cr_assert(servers_link_pull(scene.link, NULL, NULL) == 0);
        usleep(1000);
    }
    tear_down(&scene);
}

/* The caller has met the server's successor, or is of a newer attempt itself. */
static void expect_to_end_by(const char *method, struct ps_message message)
{
    struct scene scene;
    set_up(&scene);
    scene.method = method;
    scene.call = message;
    snprintf(scene.call.job_uid, sizeof scene.call.job_uid, "uid");
    scene.call.digest = 5;
    cr_assert(rpc_new(call, &scene, 20, &scene.caller_rpc, NULL) == 0);
    rpc_start_ticks(scene.caller_rpc);
    expect_superseded(scene.servers[0], "is superseded");
    tear_down(&scene);
}

Test(superseded, a_server_learns_it_from_a_caller_that_has_met_its_successor, .timeout = 180)
{
    const struct generation own = {.attempt = 1, .incarnation = 1}, newest = {.attempt = 1, .incarnation = 4};
    expect_to_end_by(PS_METHOD_CONTROL, (struct ps_message){.type = PS_CLAIM, .generation = own, .newest = newest});
    expect_to_end_by(PS_METHOD_CONTROL, (struct ps_message){.type = PS_LOOK, .newest = newest});
    expect_to_end_by(PS_METHOD_EXCHANGE, (struct ps_message){.type = PS_OPEN, .generation = own, .newest = newest});
}

Test(superseded, a_server_hears_it_from_callers_of_a_newer_attempt, .timeout = 180)
{
    const struct generation next = {.attempt = 2};
    expect_to_end_by(PS_METHOD_CONTROL, (struct ps_message){.type = PS_CLAIM, .generation = next});
    expect_to_end_by(PS_METHOD_EXCHANGE, (struct ps_message){.type = PS_OPEN, .generation = next});
}

/* ---------------------------------------------------------------- whom servers take in */

struct stranger {
    const struct scene *scene;
    struct rpc *rpc;
    unsigned number;
    const char *method;
    struct ps_message message;
    bool called;
    atomic_int answer; /* the first */
    atomic_bool closed;
};

/* Its answer comes after the one to what was said before, if there is one. */
static void say_foreign(struct rpc_stream *stream)
{
    SCOPED_BUFFER bytes = BUFFER_INIT(PS_MESSAGE_MAX);
    cr_assert(ps_message_encode(&(struct ps_message){.type = PS_BEAT}, &bytes, NULL) == 0);
    foreign_message(bytes.data, bytes.length);
    rpc_stream_send(stream, bytes.data, bytes.length);
}

static void hear_answer(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct stranger *stranger = context;
    struct ps_message message;
    int none = PS_NONE;
    (void)stream;
    cr_assert(ps_message_decode(bytes, length, &message, NULL) == 0);
    atomic_compare_exchange_strong(&stranger->answer, &none, (int)message.type);
    ps_message_release(&message);
}

static void on_stranger_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    atomic_store(&((struct stranger *)context)->closed, true);
}

static void ask_in(void *context)
{
    static const struct rpc_stream_events events = {.message = hear_answer, .closed = on_stranger_closed};
    struct stranger *stranger = context;
    const struct scene *scene = stranger->scene;
    struct rpc_stream *stream;
    if (stranger->called)
        return;
    stranger->called = true;
    cr_assert(rpc_stream_open(stranger->rpc, scene->addresses[stranger->number], scene->seats[stranger->number].port,
                              stranger->method, 0, &events, stranger, &stream, NULL) == 0);
    ps_message_send(stream, &stranger->message);
    say_foreign(stream);
}

/* PS_NONE: the stream was closed at once. */
static enum ps_message_type answer_to(const struct scene *scene, unsigned number, const char *method,
                                      const struct ps_message *message)
{
    struct stranger stranger = {.scene = scene, .number = number, .method = method, .message = *message};
    snprintf(stranger.message.job_uid, sizeof stranger.message.job_uid, "uid");
    stranger.message.digest = 5;
    cr_assert(rpc_new(ask_in, &stranger, 20, &stranger.rpc, NULL) == 0);
    rpc_start_ticks(stranger.rpc);
    for (int looks = 0; atomic_load(&stranger.answer) == PS_NONE && !atomic_load(&stranger.closed); looks++) {
        cr_assert(looks < PATIENCE, "ps %u does not answer", number);
        usleep(1000);
    }
    rpc_free(stranger.rpc);
    return (enum ps_message_type)atomic_load(&stranger.answer);
}

/* One more worker: whether the server lets it in now, or it would have to wait. */
static bool lets_in(const struct scene *scene, unsigned number)
{
    const struct ps_message message = {
        .type = PS_OPEN, .generation = {.attempt = 1, .incarnation = 1}, .index = 7, .server = number};
    return answer_to(scene, number, PS_METHOD_EXCHANGE, &message) == PS_OPENED;
}

/* A stale name has led the caller to this server; it has met a newer process of another server. */
Test(superseded, a_caller_that_means_another_server_does_not_end_this_one, .timeout = 180)
{
    struct scene scene;
    const struct generation own = {.attempt = 1, .incarnation = 1}, newest = {.attempt = 1, .incarnation = 9};
    const struct ps_message look = {.type = PS_LOOK, .server = 0, .newest = newest},
                            claim = {.type = PS_CLAIM, .generation = own, .server = 0, .newest = newest},
                            open = {.type = PS_OPEN, .generation = own, .server = 0, .newest = newest};
    set_up_led(&scene);
    cr_expect(answer_to(&scene, 1, PS_METHOD_CONTROL, &look) == PS_NONE);
    cr_expect(answer_to(&scene, 1, PS_METHOD_CONTROL, &claim) == PS_NONE);
    cr_expect(answer_to(&scene, 1, PS_METHOD_EXCHANGE, &open) == PS_NONE);
    cr_expect(lets_in(&scene, 1));
    tear_down(&scene);
}

/* ---------------------------------------------------------------- between two chiefs */

/* On a thread of its own. */
struct aside {
    struct scene *scene;
    void (*act)(struct scene *scene);
    pthread_t thread;
    atomic_bool ended;
};

static void *run_aside(void *context)
{
    struct aside *aside = context;
    aside->act(aside->scene);
    atomic_store(&aside->ended, true);
    return NULL;
}

static void start_aside(struct aside *aside)
{
    cr_assert(pthread_create(&aside->thread, NULL, run_aside, aside) == 0);
}

static void push(struct scene *scene)
{
    uint64_t nonces[PS_SERVERS_MAX];
    bool outdated;
    const struct servers_push update = {.ticket = 0, .lineage = (1 << 10) + 1, .rate = 1, .scale = 1};
    (void)servers_link_push(scene->link, &update, &outdated, nonces, NULL);
}

/* A server that is asked to leave a moment after its chief has not acknowledged anything that is not saved. */
Test(succession, after_the_last_save_of_a_chief_nothing_is_acknowledged_before_the_next_has_begun, .timeout = 180)
{
    struct scene scene;
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    set_up_led(&scene);
    open_worker(&scene);
    cr_assert(servers_link_pull(scene.link, NULL, NULL) == 0);
    dispatcher_cancel(scene.dispatcher);
    cr_assert(dispatcher_save(scene.dispatcher, "nowhere", true, saved, NULL) == 0);
    struct aside pushing = {.scene = &scene, .act = push};
    start_aside(&pushing);
    for (unsigned i = 0; i < SERVERS; i++)
        cr_expect(!lets_in(&scene, i));
    dispatcher_free(scene.dispatcher);
    start_chief(&scene, 2);
    struct server_standing standings[PS_SERVERS_MAX];
    cr_assert(dispatcher_await_servers(scene.dispatcher, standings, NULL) == 0);
    for (unsigned i = 0; i < SERVERS; i++) {
        cr_expect(standings[i].holds_state && standings[i].updates == saved[i].updates);
        server_standing_release(&standings[i]);
        ticket_set_release(&saved[i].tickets);
    }
    cr_expect(!atomic_load(&pushing.ended));
    begin_at_last(&scene);
    pthread_join(pushing.thread, NULL);
    tear_down(&scene);
}

static void expect_to_leave(struct ps_server *server)
{
    struct error error = ERROR_INIT;
    cr_assert(ps_server_wait(server, &error) < 0);
    cr_expect(error.kind == ERROR_CANCELLED, "%s", error.message);
}

/* A chief finds the server before its process has ended. What the server acknowledged then would be lost with it, and be in no save. */
Test(succession, a_server_that_was_asked_to_leave_before_it_had_a_state_acknowledges_nothing, .timeout = 180)
{
    struct scene scene;
    set_up(&scene);
    ps_server_leave(scene.servers[0]);
    expect_to_leave(scene.servers[0]);
    start_chief(&scene, 1);
    begin_at_last(&scene);
    cr_expect(!lets_in(&scene, 0));
    cr_expect(lets_in(&scene, 1));
    tear_down(&scene);
}

static void await_end_of_first(struct scene *scene)
{
    expect_to_leave(scene->servers[0]);
}

static void save_and_let_go(struct scene *scene)
{
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    struct dispatcher_event event;
    uint64_t gone = 0;
    do
        cr_assert(dispatcher_next_event(scene->dispatcher, PATIENCE, &event, NULL) == 0);
    while (event.kind == EVENT_TEXT);
    cr_assert(event.kind == EVENT_SERVER_LEAVING, "event %d: %s", (int)event.kind, event.text);
    cr_assert(dispatcher_save(scene->dispatcher, "nowhere", true, saved, NULL) == 0);
    cr_expect(saved[0].updates == 1);
    cr_expect(dispatcher_save_and_release(scene->dispatcher, &gone) && gone == 1);
    for (unsigned i = 0; i < SERVERS; i++)
        ticket_set_release(&saved[i].tickets);
}

/* The next chief is there after longer than the server would wait for one that had nothing to save. */
static void leave_between_chiefs(struct scene *scene)
{
    struct aside leaving = {.scene = scene, .act = await_end_of_first};
    start_aside(&leaving);
    ps_server_leave(scene->servers[0]);
    usleep(3000000);
    cr_expect(!atomic_load(&leaving.ended));
    atomic_store(&scene->disk_hangs, false);
    start_chief(scene, 2);
    begin_at_last(scene);
    save_and_let_go(scene);
    pthread_join(leaving.thread, NULL);
}

/* The chief gives up at once, for it is to be lost: not before all servers have begun, though. */
static void save_in_vain(struct scene *scene)
{
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    dispatcher_cancel(scene->dispatcher);
    atomic_store(&scene->disk_hangs, true);
    cr_expect(dispatcher_save(scene->dispatcher, "nowhere", true, saved, NULL) < 0);
    for (int looks = 0; atomic_load(&scene->writing) < SERVERS; looks++) {
        cr_assert(looks < PATIENCE, "no save begins");
        usleep(1000);
    }
}

static void begin_with_an_update(struct scene *scene)
{
    start_chief(scene, 1);
    begin_at_last(scene);
    open_worker(scene);
    push(scene);
}

static void set_up_with_an_update(struct scene *scene, int64_t last_save_ms)
{
    set_up(scene);
    scene->last_save_ms = last_save_ms;
    begin_with_an_update(scene);
}

Test(succession, a_server_that_is_asked_to_leave_waits_for_a_chief_to_save_what_it_has_acknowledged, .timeout = 180)
{
    struct scene scene;
    set_up_with_an_update(&scene, PATIENCE);
    lose_chief(&scene);
    leave_between_chiefs(&scene);
    tear_down(&scene);
}

/* Its part comes to the disk after that, and no checkpoint names it. */
Test(succession, a_leaving_server_waits_also_if_its_chief_was_lost_during_a_save, .timeout = 180)
{
    struct scene scene;
    set_up_with_an_update(&scene, 1);
    save_in_vain(&scene);
    lose_chief(&scene);
    scene.last_save_ms = PATIENCE;
    leave_between_chiefs(&scene);
    tear_down(&scene);
}

Test(succession, a_server_that_has_nothing_to_save_does_not_wait_for_a_chief_for_long, .timeout = 180)
{
    struct scene scene;
    set_up_led(&scene);
    lose_chief(&scene);
    ps_server_leave(scene.servers[0]);
    expect_to_leave(scene.servers[0]);
    tear_down(&scene);
}

/* The next chief would have no place to save to. */
Test(succession, a_server_of_a_job_without_checkpoints_does_not_wait_for_a_chief_for_long, .timeout = 180)
{
    struct scene scene = {.never_saved = true};
    set_up_scene(&scene);
    begin_with_an_update(&scene);
    lose_chief(&scene);
    ps_server_leave(scene.servers[0]);
    expect_to_leave(scene.servers[0]);
    tear_down(&scene);
}

/* It was asked to leave while it saved the model, which it has still to export. */
Test(succession, a_chief_reads_values_after_a_save_that_is_not_its_last, .timeout = 180)
{
    struct scene scene;
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    set_up_led(&scene);
    open_worker(&scene);
    cr_assert(servers_link_pull(scene.link, NULL, NULL) == 0);
    dispatcher_cancel(scene.dispatcher);
    cr_assert(dispatcher_save(scene.dispatcher, "nowhere", false, saved, NULL) == 0);
    for (unsigned i = 0; i < SERVERS; i++) {
        cr_assert(lets_in(&scene, i));
        ticket_set_release(&saved[i].tickets);
    }
    cr_expect(servers_link_pull(scene.link, NULL, NULL) == 0);
    tear_down(&scene);
}

struct last_save {
    struct scene *scene;
    struct server_saved saved[PS_SERVERS_MAX];
    struct error error;
    int result;
    atomic_bool ended;
};

static void *save_last(void *context)
{
    struct last_save *save = context;
    save->result = dispatcher_save(save->scene->dispatcher, "nowhere", true, save->saved, &save->error);
    atomic_store(&save->ended, true);
    return NULL;
}

/* The next chief's saves come while the servers still write that of the one before: only its last waits. */
Test(succession, a_server_that_refuses_a_save_goes_on, .timeout = 180)
{
    struct scene scene;
    struct last_save save = {.scene = &scene};
    pthread_t thread;
    set_up(&scene);
    scene.last_save_ms = 1;
    start_chief(&scene, 1);
    begin_at_last(&scene);
    save_in_vain(&scene);
    dispatcher_free(scene.dispatcher);
    scene.last_save_ms = PATIENCE;
    start_chief(&scene, 2);
    begin_at_last(&scene);
    cr_expect(dispatcher_save(scene.dispatcher, "nowhere", false, save.saved, &save.error) < 0);
    cr_expect(strstr(save.error.message, "still being written") != NULL, "%s", save.error.message);
    cr_assert(pthread_create(&thread, NULL, save_last, &save) == 0);
    for (unsigned i = 0; i < SERVERS; i++)
        cr_expect(lets_in(&scene, i));
    cr_expect(!atomic_load(&save.ended));
    atomic_store(&scene.disk_hangs, false);
    pthread_join(thread, NULL);
    cr_expect(save.result == 0, "%s", save.error.message);
    for (unsigned i = 0; i < SERVERS; i++)
        ticket_set_release(&save.saved[i].tickets);
    tear_down(&scene);
}
