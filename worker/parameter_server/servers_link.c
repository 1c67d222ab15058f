/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/servers_link.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/lock.h"
#include "common/memory.h"
#include "worker/comm/bulk_connection.h"
#include "worker/comm/shared_area.h"
#include "worker/comm/traffic.h"
#include "worker/parameter_server/bulk.h"
#include "worker/parameter_server/variables.h"
#include "worker/parameter_server/waiting.h"

#define REDIAL_MS 100
#define DEADLINE_MS_DEFAULT 300000
#define REQUEST_TEXT_MAX 64

/* The state of a request to one server. */
enum request { REQUEST_NONE, REQUEST_WANTED, REQUEST_SENT };

struct one_server {
    struct servers_link *link;
    unsigned number;
    struct rpc_stream *stream;
    bool opened, shared;
    struct generation newest; /* of the processes that were met here */
    int64_t heard_ms;         /* its last word, or part of a tensor */
    int64_t next_dial_ms;
    enum request push, pull;
    uint32_t verdict;
    uint64_t
        acknowledger; /* the process that gave the verdict; it may have died since, and its successor may answer the pull */
    struct bulk_inbox inbox;
    float *packed; /* gradients on their way, where they are not contiguous */
    char address[RESOLVE_ADDRESS_MAX];
    struct bulk_connection *connection; /* NULL: none was offered, or it could not be had */
    uint32_t connection_port;
    uint64_t connection_moved; /* as last seen */
    bool connected;            /* it has opened */
    bool receives;             /* values are coming on it */
};

struct servers_link {
    struct servers_link_options options;
    char *job_uid;
    uint64_t nonce;
    struct shared_area area;
    char path[SHARED_FILE_PATH_MAX];
    float *values, *gradients;
    size_t mapped;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct one_server *servers;
    struct servers_push asked;
    int64_t asked_ms;                /* since when the caller waits; 0: it does not */
    const struct row_set *pull_rows; /* by server; NULL: all */
    uint32_t lost;                   /* how often a server was lost */
    bool fresh;                      /* values came with `asked` */
    uint32_t lineage;                /* in which the caller works */
    bool cancelled, refused;
    bool strange; /* for its protocol */
    char refusal[PS_TEXT_MAX];
    struct bulk_connections *connections; /* once one was offered */
    bool warned;                          /* that one cannot be had */
    struct servers_traffic traffic;
};

static size_t packed_bytes(const struct one_server *server)
{
    return (size_t)server->link->options.placement->elements[server->number] * sizeof(float);
}

static size_t carried_bytes(const struct one_server *server, const struct row_set *rows)
{
    return (size_t)placement_elements_of(server->link->options.placement, server->number, rows) * sizeof(float);
}

/* Returns the rows to pull from one server; NULL: all. */
static const struct row_set *pull_rows(const struct one_server *server)
{
    const struct row_set *rows = server->link->pull_rows;
    return rows ? &rows[server->number] : NULL;
}

static const struct row_set *push_rows(const struct one_server *server)
{
    const struct row_set *rows = server->link->asked.rows;
    return rows ? &rows[server->number] : NULL;
}

static struct row_set listed(const struct row_set *rows)
{
    return rows ? *rows : (struct row_set){0};
}

/* One run, and all of it travels: the packed array is a part of the flat one. */
static const struct placement_run *lone_run(const struct one_server *server, const struct row_set *rows)
{
    const struct placement *placement = server->link->options.placement;
    if (rows != NULL && rows->listed)
        return NULL;
    return placement->run_counts[server->number] == 1 ? &placement->runs[server->number][0] : NULL;
}

/* ---------------------------------------------------------------- bulk connections; with the lock held */

static void wake_rpc(void *context)
{
    rpc_wake(((struct servers_link *)context)->options.rpc);
}

static void dial_connection(struct one_server *server, const struct ps_message *offer)
{
    struct servers_link *link = server->link;
    const struct bulk_connections_options options = {.job_uid = link->job_uid, .wake = wake_rpc, .context = link};
    if (offer->shared || offer->port == 0 || offer->port > UINT16_MAX ||
        (link->connections == NULL && bulk_connections_start(&options, &link->connections, NULL) < 0))
        return;
    server->connection = bulk_connection_dial(link->connections, server->address, (uint16_t)offer->port, offer->token);
    server->connection_port = offer->port;
    server->connection_moved = 0;
}

/* Warns once, because the work goes on, only slower, and the user would not find the reason. */
static void warn_of_no_connection(const struct one_server *server)
{
    struct servers_link *link = server->link;
    char text[PS_TEXT_MAX], name[WAITING_NAME_MAX];
    if (link->warned || link->options.warn == NULL)
        return;
    link->warned = true;
    waiting_name("ps", server->number, &link->options.servers[server->number], name);
    snprintf(
        text, sizeof text,
        "%s: no data connection to port %u; its values and gradients go through gRPC, which is slower: let workers "
        "connect to that port",
        name, (unsigned)server->connection_port);
    link->options.warn(link->options.context, text);
}

static void drop_connection(struct one_server *server)
{
    bulk_connection_free(server->connection);
    server->connection = NULL;
    server->connected = server->receives = false;
}

static bool goes_by_connection(const struct one_server *server, size_t bytes)
{
    return server->connection != NULL && bytes >= BULK_CONNECTION_LOAD_MIN;
}

static int64_t *traffic_of(struct one_server *server, size_t bytes)
{
    struct servers_traffic *traffic = &server->link->traffic;
    return server->shared                      ? &traffic->shared
           : goes_by_connection(server, bytes) ? &traffic->on_connection
                                               : &traffic->streamed;
}

/* ---------------------------------------------------------------- what goes out; with the lock held */

static void send_open(struct one_server *server)
{
    struct servers_link *link = server->link;
    struct ps_message message = {.type = PS_OPEN,
                                 .generation = link->options.generation,
                                 .index = link->options.index,
                                 .server = server->number,
                                 .nonce = link->nonce,
                                 .digest = link->options.digest,
                                 .newest = server->newest,
                                 .bytes = (int64_t)link->area.length};
    snprintf(message.job_uid, sizeof message.job_uid, "%s", link->job_uid);
    if (link->area.mapping && shared_area_publish(&link->area, link->path, NULL) == 0)
        snprintf(message.path, sizeof message.path, "%s", link->path);
    ps_message_send(server->stream, &message);
}

static void send_gradients(struct one_server *server)
{
    struct servers_link *link = server->link;
    const struct row_set *rows = push_rows(server);
    const struct placement_run *run = lone_run(server, rows);
    const float *from = run ? link->gradients + run->offset : server->packed;
    size_t bytes = carried_bytes(server, rows);
    if (run == NULL)
        placement_carry(link->options.placement, server->number, rows, link->gradients, ORDER_LAYOUT, server->packed,
                        ORDER_CARRIED);
    if (goes_by_connection(server, bytes))
        bulk_connection_send(server->connection, from, bytes);
    else
        bulk_send(server->stream, from, bytes);
}

static void send_push(struct one_server *server)
{
    const struct servers_push *asked = &server->link->asked;
    size_t bytes = carried_bytes(server, push_rows(server));
    server->push = REQUEST_SENT;
    if (asked->pull)
        server->pull = REQUEST_SENT;
    ps_message_send(server->stream, &(struct ps_message){.type = PS_PUSH,
                                                         .ticket = asked->ticket,
                                                         .clock = asked->clock,
                                                         .lineage = asked->lineage,
                                                         .rate = asked->rate,
                                                         .scale = asked->scale,
                                                         .pull = asked->pull,
                                                         .on_connection = goes_by_connection(server, bytes),
                                                         .rows = listed(push_rows(server))});
    *traffic_of(server, bytes) += (int64_t)bytes;
    if (server->shared)
        traffic_count(bytes);
    else
        send_gradients(server);
}

static void run_requests(struct one_server *server)
{
    if (!server->opened || (server->connection != NULL && !server->connected))
        return; /* which way they go is not known yet */
    if (server->push == REQUEST_WANTED)
        send_push(server);
    if (server->pull == REQUEST_WANTED && server->push == REQUEST_NONE) {
        server->pull = REQUEST_SENT;
        ps_message_send(server->stream, &(struct ps_message){.type = PS_PULL,
                                                             .on_connection = goes_by_connection(
                                                                 server, carried_bytes(server, pull_rows(server))),
                                                             .rows = listed(pull_rows(server))});
    }
}

/* ---------------------------------------------------------------- what comes in */

static int expect_values(struct one_server *server)
{
    struct servers_link *link = server->link;
    const struct row_set *rows = pull_rows(server);
    const struct placement_run *run = lone_run(server, rows);
    return bulk_inbox_expect(&server->inbox, carried_bytes(server, rows), run ? link->values + run->offset : NULL,
                             NULL);
}

static void finish_pull(struct one_server *server)
{
    struct servers_link *link = server->link;
    const struct row_set *rows = pull_rows(server);
    size_t bytes = carried_bytes(server, rows);
    if (!server->shared && lone_run(server, rows) == NULL && bytes > 0)
        placement_carry(link->options.placement, server->number, rows, (const float *)server->inbox.bytes,
                        ORDER_CARRIED, link->values, ORDER_LAYOUT);
    *traffic_of(server, bytes) += (int64_t)bytes;
    server->receives = false;
    bulk_inbox_clear(&server->inbox);
    server->pull = REQUEST_NONE;
    pthread_cond_broadcast(&link->changed);
}

/* Values are coming. */
static void begin_pull(struct one_server *server, bool on_connection)
{
    size_t bytes = carried_bytes(server, pull_rows(server));
    if (server->shared || bytes == 0) {
        finish_pull(server);
    } else if ((on_connection && !goes_by_connection(server, bytes)) || server->receives || expect_values(server) < 0) {
        rpc_stream_close(server->stream);
    } else if (on_connection) {
        server->receives = true;
        bulk_connection_receive(server->connection, server->inbox.bytes, bytes);
    }
}

/* A bulk connection that opens is used, one that cannot be had is forgotten, and one that breaks ends the stream, to begin anew with both. */
static void tend_connection(struct one_server *server)
{
    enum bulk_connection_state state = bulk_connection_state(server->connection);
    uint64_t moved = bulk_connection_moved(server->connection);
    if (moved != server->connection_moved)
        server->heard_ms = clock_monotonic_ms();
    server->connection_moved = moved;
    if (server->receives && !bulk_connection_is_busy(server->connection))
        finish_pull(server);
    if (state == BULK_CONNECTION_OPEN) {
        server->connected = true;
    } else if (state == BULK_CONNECTION_CLOSED && server->connected) {
        rpc_stream_close(server->stream);
    } else if (state == BULK_CONNECTION_CLOSED) {
        warn_of_no_connection(server);
        drop_connection(server);
    }
}

/* Removes the shared file's name once all servers have opened it. */
static void withdraw_name(struct servers_link *link)
{
    bool all = link->path[0] != '\0';
    for (unsigned i = 0; i < link->options.placement->server_count; i++)
        all &= link->servers[i].opened;
    if (all)
        shared_file_withdraw(link->path);
}

/* It has not heard of what the crew went back to, or was begun with: it stood still meanwhile, and another has its place. */
static bool is_behind(const struct one_server *server, const struct ps_message *message)
{
    return message->lineage < server->link->lineage;
}

static void hear(struct one_server *server, const struct ps_message *message)
{
    struct servers_link *link = server->link;
    switch (message->type) {
    case PS_OPENED:
        server->opened = true;
        server->shared = message->shared;
        if (generation_compare_chiefs(message->generation, server->newest) > 0)
            server->newest = message->generation;
        withdraw_name(link);
        dial_connection(server, message);
        run_requests(server);
        break;
    case PS_ACK:
        if (server->push != REQUEST_SENT || message->ticket != link->asked.ticket)
            break;
        if (message->verdict == UPDATE_OUTDATED && is_behind(server, message)) {
            rpc_stream_close(server->stream);
            break;
        }
        server->push = REQUEST_NONE;
        server->verdict = message->verdict;
        server->acknowledger = message->nonce;
        pthread_cond_broadcast(&link->changed);
        break;
    case PS_VALUES:
        if (server->pull != REQUEST_SENT)
            break;
        if (is_behind(server, message))
            rpc_stream_close(server->stream);
        else
            begin_pull(server, message->on_connection);
        break;
    case PS_REFUSED:
        link->refused = true;
        snprintf(link->refusal, sizeof link->refusal, "%s", message->text);
        pthread_cond_broadcast(&link->changed);
        break;
    default:
        break;
    }
}

/* A server of another protocol refuses this process, whatever the message is. */
static void hear_stranger(struct one_server *server, const struct error *error)
{
    struct servers_link *link = server->link;
    link->refused = link->strange = true;
    snprintf(link->refusal, sizeof link->refusal, "%.250s", error->message);
    pthread_cond_broadcast(&link->changed);
}

static void on_pieces(void *context, struct rpc_stream *stream, const struct rpc_piece *pieces, unsigned count)
{
    struct one_server *server = context;
    struct ps_message message = {0};
    struct error error = ERROR_INIT;
    SCOPED_LOCK(&server->link->lock);
    server->heard_ms = clock_monotonic_ms();
    enum bulk_received heard = bulk_receive(pieces, count, server->receives ? NULL : &server->inbox, &message, &error);
    if (heard == BULK_RECEIVED_MESSAGE)
        hear(server, &message);
    else if (heard == BULK_RECEIVED_ALL)
        finish_pull(server);
    else if (heard == BULK_RECEIVED_NOTHING) {
        if (error.kind == ERROR_UNSUPPORTED)
            hear_stranger(server, &error);
        rpc_stream_close(stream);
    }
    ps_message_release(&message);
}

static void on_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    struct one_server *server = context;
    struct servers_link *link = server->link;
    SCOPED_LOCK(&link->lock);
    link->lost += server->opened;
    server->stream = NULL;
    server->opened = false;
    drop_connection(server);
    bulk_inbox_clear(&server->inbox);
    if (server->push == REQUEST_SENT)
        server->push = REQUEST_WANTED;
    if (server->pull == REQUEST_SENT)
        server->pull = REQUEST_WANTED;
    pthread_cond_broadcast(&link->changed);
}

/* ---------------------------------------------------------------- dialling */

static void dial(struct one_server *server)
{
    static const struct rpc_stream_events events = {.pieces = on_pieces, .closed = on_closed};
    struct servers_link *link = server->link;
    if (clock_monotonic_ms() < server->next_dial_ms ||
        !address_book_ask(link->options.book, link->options.first_seat + server->number, server->address))
        return;
    server->next_dial_ms = clock_monotonic_ms() + REDIAL_MS;
    if (rpc_stream_open(link->options.rpc, server->address, link->options.servers[server->number].port,
                        PS_METHOD_EXCHANGE, 0, &events, server, &server->stream, NULL) == 0)
        send_open(server);
}

void servers_link_tick(struct servers_link *link)
{
    SCOPED_LOCK(&link->lock);
    for (unsigned i = 0; i < link->options.placement->server_count; i++) {
        if (link->servers[i].connection != NULL)
            tend_connection(&link->servers[i]);
        if (link->servers[i].stream == NULL && !link->refused)
            dial(&link->servers[i]);
        run_requests(&link->servers[i]);
    }
}

/* ---------------------------------------------------------------- the caller's side */

static bool is_busy(const struct servers_link *link)
{
    for (unsigned i = 0; i < link->options.placement->server_count; i++)
        if (link->servers[i].push != REQUEST_NONE || link->servers[i].pull != REQUEST_NONE)
            return true;
    return false;
}

static bool server_has_no_state(const struct servers_link *link)
{
    return link->options.server_has_no_state != NULL && link->options.server_has_no_state(link->options.context);
}

/* Writes what a server was asked and has not done. */
static void name_request(const struct one_server *server, char what[REQUEST_TEXT_MAX])
{
    if (!server->opened)
        snprintf(what, REQUEST_TEXT_MAX, "to answer");
    else if (server->push != REQUEST_NONE)
        snprintf(what, REQUEST_TEXT_MAX, "to acknowledge ticket %lld", (long long)server->link->asked.ticket);
    else
        snprintf(what, REQUEST_TEXT_MAX, "to send its values");
}

/* Finds a connected server that has sent nothing for the deadline. A server that is away has a successor, for which the link waits. */
static const struct one_server *find_overdue(const struct servers_link *link)
{
    int64_t deadline = link->options.deadline_ms > 0 ? link->options.deadline_ms : DEADLINE_MS_DEFAULT;
    int64_t now = clock_monotonic_ms();
    for (unsigned i = 0; i < link->options.placement->server_count; i++) {
        const struct one_server *server = &link->servers[i];
        int64_t since = server->heard_ms > link->asked_ms ? server->heard_ms : link->asked_ms;
        if (server->opened && (server->push == REQUEST_SENT || server->pull == REQUEST_SENT) && now - since >= deadline)
            return server;
    }
    return NULL;
}

static int give_up(const struct one_server *server, struct error *error)
{
    char name[WAITING_NAME_MAX], what[REQUEST_TEXT_MAX];
    waiting_name("ps", server->number, &server->link->options.servers[server->number], name);
    name_request(server, what);
    return error_set(error, ERROR_TIMEOUT,
                     "timed out waiting for %s %s: it is connected but does not answer; look at its log", name, what);
}

static void wait_a_moment(struct servers_link *link)
{
    int64_t deadline = link->options.deadline_ms;
    condition_wait_ms(&link->changed, &link->lock, deadline > 0 && deadline < 1000 ? deadline : 1000);
}

/* With the lock held. */
static int await(struct servers_link *link, bool fail_if_lost, struct error *error)
{
    uint32_t lost = link->lost;
    const struct one_server *overdue = NULL;
    link->asked_ms = clock_monotonic_ms();
    rpc_wake(link->options.rpc);
    while (is_busy(link) && !link->cancelled && !link->refused && !overdue &&
           !(fail_if_lost && (link->lost != lost || server_has_no_state(link)))) {
        wait_a_moment(link);
        overdue = find_overdue(link);
    }
    link->asked_ms = 0;
    if (link->refused)
        return error_set(error, link->strange ? ERROR_FORBIDDEN : ERROR_STALE, "a ps has refused this process: %s",
                         link->refusal);
    if (link->cancelled)
        return error_set(error, ERROR_CANCELLED, "left on request");
    if (overdue)
        return give_up(overdue, error);
    if (is_busy(link))
        return error_set(error, ERROR_UNAVAILABLE, "a ps was lost");
    return 0;
}

static void withdraw(struct servers_link *link)
{
    for (unsigned i = 0; i < link->options.placement->server_count; i++) {
        struct one_server *server = &link->servers[i];
        if (server->pull == REQUEST_WANTED)
            server->pull = REQUEST_NONE;
    }
}

static void follow(struct servers_link *link, uint32_t lineage)
{
    if (lineage > link->lineage)
        link->lineage = lineage;
}

void servers_link_follow(struct servers_link *link, uint32_t lineage)
{
    SCOPED_LOCK(&link->lock);
    follow(link, lineage);
}

int servers_link_pull(struct servers_link *link, const struct row_set *rows, struct error *error)
{
    SCOPED_LOCK(&link->lock);
    link->pull_rows = rows;
    for (unsigned i = 0; i < link->options.placement->server_count; i++)
        if (link->servers[i].pull == REQUEST_NONE)
            link->servers[i].pull = REQUEST_WANTED;
    int result = await(link, link->options.fail_if_lost, error);
    if (result < 0)
        withdraw(link);
    return result;
}

int servers_link_push(struct servers_link *link, const struct servers_push *push, bool *ret_outdated,
                      uint64_t nonces[PS_SERVERS_MAX], struct error *error)
{
    bool outdated = false;
    pthread_mutex_lock(&link->lock);
    link->asked = *push;
    link->fresh = false;
    follow(link, push->lineage);
    if (push->pull)
        link->pull_rows = NULL;
    for (unsigned i = 0; i < link->options.placement->server_count; i++) {
        link->servers[i].push = REQUEST_WANTED;
        link->servers[i].pull = push->pull ? REQUEST_WANTED : REQUEST_NONE;
    }
    int result = await(link, false, error);
    for (unsigned i = 0; result == 0 && i < link->options.placement->server_count; i++) {
        outdated |= link->servers[i].verdict == UPDATE_OUTDATED || link->servers[i].verdict == UPDATE_LATE;
        nonces[i] = link->servers[i].acknowledger;
    }
    link->fresh = result == 0 && push->pull && !outdated;
    pthread_mutex_unlock(&link->lock);
    if (result == 0)
        *ret_outdated = outdated;
    return result;
}

bool servers_link_is_fresh(struct servers_link *link, uint32_t lineage)
{
    SCOPED_LOCK(&link->lock);
    return link->fresh && link->asked.lineage == lineage;
}

void servers_link_cancel(struct servers_link *link)
{
    SCOPED_LOCK(&link->lock);
    link->cancelled = true;
    pthread_cond_broadcast(&link->changed);
}

float *servers_link_values(struct servers_link *link)
{
    return link->values;
}

float *servers_link_gradients(struct servers_link *link)
{
    return link->gradients;
}

static void describe_request(const struct one_server *server, char text[PS_TEXT_MAX])
{
    const struct servers_link *link = server->link;
    char name[WAITING_NAME_MAX], what[REQUEST_TEXT_MAX];
    int64_t patience = waiting_patience_ms(link->options.patience_ms, server->opened);
    if ((server->push == REQUEST_NONE && server->pull == REQUEST_NONE) ||
        clock_monotonic_ms() - link->asked_ms < patience)
        return;
    name_request(server, what);
    waiting_name("ps", server->number, &link->options.servers[server->number], name);
    waiting_add(text, name, what);
}

void servers_link_describe(struct servers_link *link, char text[PS_TEXT_MAX])
{
    text[0] = '\0';
    SCOPED_LOCK(&link->lock);
    for (unsigned i = 0; link->asked_ms != 0 && i < link->options.placement->server_count; i++)
        describe_request(&link->servers[i], text);
}

struct servers_traffic servers_link_traffic(struct servers_link *link)
{
    SCOPED_LOCK(&link->lock);
    struct servers_traffic traffic = link->traffic;
    return traffic;
}

/* ---------------------------------------------------------------- life cycle */

/* Values in the first half, gradients in the second; both begin at a page. */
static int make_arrays(struct servers_link *link, struct error *error)
{
    const struct servers_link_options *options = &link->options;
    size_t half = ((size_t)options->elements * sizeof(float) + 4095) & ~(size_t)4095;
    size_t length = options->pulls_only ? half : 2 * half;
    unsigned char *bytes = NULL;
    if (options->share_memory && !options->pulls_only &&
        shared_area_create(link->nonce, length, &link->area, NULL) == 0)
        bytes = link->area.bytes;
    if (bytes == NULL) {
        bytes = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (bytes == MAP_FAILED)
            return error_set(error, ERROR_NO_SPACE, "no memory for %zu bytes of values and gradients", length);
        (void)madvise(bytes, length, MADV_HUGEPAGE);
        link->mapped = length;
    }
    link->values = (float *)bytes;
    link->gradients = options->pulls_only ? NULL : (float *)(bytes + half);
    return 0;
}

static int make_servers(struct servers_link *link, struct error *error)
{
    unsigned count = link->options.placement->server_count;
    link->servers = memory_allocate(count, sizeof *link->servers);
    for (unsigned i = 0; i < count; i++) {
        struct one_server *server = &link->servers[i];
        server->link = link;
        server->number = i;
        bool contiguous = lone_run(server, NULL) != NULL && link->options.placement->table_counts[i] == 0;
        if (link->options.pulls_only || contiguous)
            continue;
        server->packed = malloc(packed_bytes(server) + 1);
        if (server->packed == NULL)
            return error_set(error, ERROR_NO_SPACE,
                             "this process lacks memory (%zu bytes) for the gradients that it sends to ps %u",
                             packed_bytes(server), i);
    }
    return 0;
}

int servers_link_new(const struct servers_link_options *options, struct servers_link **ret_link, struct error *error)
{
    struct servers_link *link = memory_allocate(1, sizeof *link);
    link->options = *options;
    link->job_uid = memory_copy_string(options->job_uid);
    pthread_mutex_init(&link->lock, NULL);
    condition_init(&link->changed);
    if (getrandom(&link->nonce, sizeof link->nonce, 0) < 0)
        link->nonce = (uint64_t)clock_monotonic_ns();
    if (make_arrays(link, error) < 0 || make_servers(link, error) < 0) {
        servers_link_free(link);
        return -1;
    }
    *ret_link = link;
    return 0;
}

void servers_link_free(struct servers_link *link)
{
    if (link == NULL)
        return;
    bulk_connections_free(link->connections);
    if (link->path[0])
        shared_file_withdraw(link->path);
    if (link->mapped)
        munmap(link->values, link->mapped);
    shared_area_release(&link->area);
    for (unsigned i = 0; link->servers && i < link->options.placement->server_count; i++) {
        bulk_inbox_release(&link->servers[i].inbox);
        free(link->servers[i].packed);
    }
    free(link->servers);
    pthread_cond_destroy(&link->changed);
    pthread_mutex_destroy(&link->lock);
    free(link->job_uid);
    free(link);
}
