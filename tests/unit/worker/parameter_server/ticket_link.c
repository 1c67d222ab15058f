/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/ticket_link.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "worker/parameter_server/bulk.h"

/* A worker with a chief that sends what no chief would send. */

struct scene {
    char host[32];
    struct crew_seat seat;
    struct rpc *chief_rpc, *rpc;
    struct address_book *book;
    struct ticket_link *link;
    const struct ps_message *words; /* of the chief, behind the first JOIN */
    unsigned count;
    atomic_uint foreseen, useless; /* grants; those that no share can be computed from */
};

static void on_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct scene *scene = context;
    struct ps_message message;
    cr_assert_eq(ps_message_decode(bytes, length, &message, NULL), 0);
    for (; message.type == PS_JOIN && scene->count > 0; scene->count--)
        ps_message_send(stream, scene->words++);
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

static void tick(void *context)
{
    ticket_link_tick(((struct scene *)context)->link);
}

static void wake(void *context)
{
    rpc_wake(((struct scene *)context)->rpc);
}

static void foresee(void *context, const struct ticket_grant *grant)
{
    struct scene *scene = context;
    atomic_fetch_add(&scene->foreseen, 1);
    if (grant->per_step <= 0 || grant->ticket < 0 || grant->base_consumed < 0)
        atomic_fetch_add(&scene->useless, 1);
}

static void set_up(struct scene *scene, const struct ps_message *words, unsigned count)
{
    static const struct rpc_method methods[] = {{PS_METHOD_TICKETS, opened}};
    struct rpc_server *listener;
    scene->words = words;
    scene->count = count;
    snprintf(scene->host, sizeof scene->host, "127.%u.%u.1", 100 + (unsigned)getpid() % 100,
             (unsigned)getpid() / 100 % 250);
    cr_assert_eq(rpc_new(NULL, scene, 20, &scene->chief_rpc, NULL), 0);
    cr_assert_eq(rpc_server_start(scene->chief_rpc, scene->host, 0, methods, 1, scene, &listener, NULL), 0);
    scene->seat = (struct crew_seat){.role = "worker", .host = scene->host, .port = rpc_server_port(listener)};
    cr_assert_eq(rpc_new(tick, scene, 20, &scene->rpc, NULL), 0);
    cr_assert_eq(address_book_new(&scene->seat, 1, wake, scene, &scene->book, NULL), 0);
    const struct ticket_link_options options = {.rpc = scene->rpc,
                                                .book = scene->book,
                                                .chief_port = scene->seat.port,
                                                .job_uid = "uid",
                                                .foresee = foresee,
                                                .context = scene};
    cr_assert_eq(ticket_link_new(&options, &scene->link, NULL), 0);
    rpc_start_ticks(scene->rpc);
}

static void tear_down(struct scene *scene)
{
    rpc_stop(scene->rpc);
    address_book_free(scene->book);
    rpc_free(scene->rpc);
    ticket_link_free(scene->link);
    rpc_free(scene->chief_rpc);
}

/* A share is cut out of them: a division by the shares of a step would end the worker. */
Test(ticket_link, tickets_without_terms_are_none, .timeout = 120)
{
    static const struct ps_message words[] = {
        {.type = PS_TICKET},
        {.type = PS_WELCOME},
        {.type = PS_TICKET},
        {.type = PS_WELCOME, .lineage = 3},
        {.type = PS_TICKET, .lineage = 3},
        {.type = PS_RESTART, .lineage = 4, .per_step = -1},
        {.type = PS_TICKET, .lineage = 4},
        {.type = PS_RESTART, .lineage = 5, .per_step = INT64_MAX},
        {.type = PS_TICKET, .lineage = 5, .ticket = 1},
        {.type = PS_RESTART, .lineage = 6, .per_step = 2, .base_consumed = -1},
        {.type = PS_TICKET, .lineage = 6},
        {.type = PS_RESTART, .lineage = 7, .per_step = 2},
        {.type = PS_TICKET, .lineage = 7, .ticket = -8},
        {.type = PS_TICKET, .lineage = 7, .ticket = 9},
    };
    static struct scene scene;
    struct ticket_grant grant;
    struct error error = ERROR_INIT;
    set_up(&scene, words, sizeof words / sizeof words[0]);
    cr_assert_eq(ticket_link_next(scene.link, &grant, &error), 0, "%s", error.message);
    cr_expect(!grant.over && grant.ticket == 9 && grant.lineage == 7 && grant.per_step == 2);
    cr_expect_eq(atomic_load(&scene.foreseen), 1);
    cr_expect_eq(atomic_load(&scene.useless), 0);
    tear_down(&scene);
}
