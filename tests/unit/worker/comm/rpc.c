/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/rpc.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/crew_files.h"
#include "tests/unit/forking.h"
#include "worker/comm/crew_key.h"
#include "worker/comm/heartbeat.h"
#include "worker/comm/rpc_connections.h"
#include "worker/comm/rpc_log.h"
#include "worker/comm/strangers.h"

/* What the callbacks of one stream have seen; read after `done` was posted. */
struct witness {
    sem_t message, done;
    struct rpc_stream *stream;
    char text[64];
    atomic_uint messages;
    bool failed;
    enum error_kind kind;
};

static void witness_init(struct witness *witness)
{
    memset(witness, 0, sizeof(*witness));
    sem_init(&witness->message, 0, 0);
    sem_init(&witness->done, 0, 0);
}

static void on_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    (void)stream;
    struct witness *witness = context;
    memcpy(witness->text, bytes, length < sizeof(witness->text) ? length : sizeof(witness->text) - 1);
    witness->messages++;
    sem_post(&witness->message);
}

static void on_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream;
    struct witness *witness = context;
    witness->failed = error != NULL;
    witness->kind = error != NULL ? error->kind : ERROR_NONE;
    sem_post(&witness->done);
}

static const struct rpc_stream_events events = {.message = on_message, .closed = on_closed};

/* Echoes each message; "bye" ends the stream in good order. */
static void echo_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    on_message(context, stream, bytes, length);
    rpc_stream_send(stream, bytes, length);
    if (length == 3 && memcmp(bytes, "bye", 3) == 0)
        rpc_stream_close(stream);
}

static void echo_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                        void **ret_context)
{
    *ret_events = (struct rpc_stream_events){.message = echo_message, .closed = on_closed};
    *ret_context = context;
    ((struct witness *)context)->stream = stream;
}

static const struct rpc_method methods[] = {{"/Test/Echo", echo_opened}};

/* Streams are opened on the rpc's thread: the tick does what the test asks for. */
struct client {
    struct rpc *rpc;
    struct witness witness;
    uint16_t port;
    const char *method;
    int64_t lifetime_ms;
    bool opened;
    _Atomic(const char *) say;
    atomic_bool hang_up;
};

static void client_tick(void *context)
{
    struct client *client = context;
    if (!client->opened) {
        client->opened = true;
        rpc_stream_open(client->rpc, "127.0.0.1", client->port, client->method, client->lifetime_ms, &events,
                        &client->witness, &client->witness.stream, NULL);
    }
    const char *say = atomic_exchange(&client->say, NULL);
    if (say != NULL)
        rpc_stream_send(client->witness.stream, say, strlen(say));
    if (atomic_exchange(&client->hang_up, false))
        rpc_stream_close(client->witness.stream);
}

static void client_start(struct client *client, uint16_t port, const char *method)
{
    memset(client, 0, sizeof(*client));
    witness_init(&client->witness);
    client->port = port;
    client->method = method;
    cr_assert_eq(rpc_new(client_tick, client, 100000, &client->rpc, NULL), 0);
    rpc_start_ticks(client->rpc);
}

/* Until it comes back. */
static void say_hello(struct client *client)
{
    client->say = "hello";
    rpc_wake(client->rpc);
    sem_wait(&client->witness.message);
}

/* Until the stream has ended; how. */
static enum error_kind say_bye(struct client *client)
{
    client->say = "bye";
    rpc_wake(client->rpc);
    sem_wait(&client->witness.done);
    return client->witness.kind;
}

/* One that says nothing else. */
static enum error_kind call(uint16_t port)
{
    struct client client;
    client_start(&client, port, "/Test/Echo");
    enum error_kind end = say_bye(&client);
    rpc_free(client.rpc);
    return end;
}

static struct rpc *server_start(struct witness *witness, uint16_t *ret_port)
{
    witness_init(witness);
    struct rpc *rpc;
    struct rpc_server *server;
    cr_assert_eq(rpc_new(NULL, NULL, 1000, &rpc, NULL), 0);
    cr_assert_eq(rpc_server_start(rpc, "127.0.0.1", 0, methods, 1, witness, &server, NULL), 0);
    *ret_port = rpc_server_port(server);
    return rpc;
}

/* What a tick reads is made while the thread is there already, however long that takes. */
struct slow_owner {
    sem_t ticked;
    atomic_bool is_made, was_early;
};

static void owner_tick(void *context)
{
    struct slow_owner *owner = context;
    if (!atomic_load(&owner->is_made))
        atomic_store(&owner->was_early, true);
    sem_post(&owner->ticked);
}

Test(rpc, ticks_wait_until_they_are_started, .timeout = 120)
{
    struct slow_owner owner = {0};
    struct rpc *rpc;
    sem_init(&owner.ticked, 0, 0);
    cr_assert_eq(rpc_new(owner_tick, &owner, 1, &rpc, NULL), 0);
    for (int i = 0; i < 10; i++) {
        rpc_wake(rpc);
        usleep(5000);
    }
    atomic_store(&owner.is_made, true);
    rpc_start_ticks(rpc);
    sem_wait(&owner.ticked);
    rpc_wake(rpc);
    sem_wait(&owner.ticked);
    rpc_free(rpc);
    cr_assert_not(atomic_load(&owner.was_early));
}

Test(rpc, echoes_and_ends_in_good_order, .timeout = 120)
{
    struct witness served;
    struct client client;
    uint16_t port;
    struct rpc *server = server_start(&served, &port);
    client_start(&client, port, "/Test/Echo");
    say_hello(&client);
    cr_assert_str_eq(client.witness.text, "hello");
    cr_assert_eq(say_bye(&client), ERROR_NONE);
    cr_assert_not(client.witness.failed);
    cr_assert_eq(client.witness.messages, 2);
    sem_wait(&served.done);
    cr_assert_not(served.failed);
    rpc_free(client.rpc);
    rpc_free(server);
}

Test(rpc, a_hang_up_reaches_the_server, .timeout = 120)
{
    struct witness served;
    struct client client;
    uint16_t port;
    struct rpc *server = server_start(&served, &port);
    client_start(&client, port, "/Test/Echo");
    say_hello(&client);
    client.hang_up = true;
    rpc_wake(client.rpc);
    sem_wait(&served.done);
    cr_assert(served.failed);
    sem_wait(&client.witness.done);
    cr_assert_eq(client.witness.kind, ERROR_CANCELLED);
    rpc_free(client.rpc);
    rpc_free(server);
}

Test(rpc, the_end_of_a_server_ends_its_streams, .timeout = 120)
{
    struct witness served;
    struct client client;
    uint16_t port;
    struct rpc *server = server_start(&served, &port);
    client_start(&client, port, "/Test/Echo");
    say_hello(&client);
    rpc_free(server);
    sem_wait(&client.witness.done);
    cr_assert(client.witness.failed);
    rpc_free(client.rpc);
}

/* Thirty in a row: where the thread of the connections waits out its time for last bytes, each takes half a second. */
Test(rpc, a_closed_channel_is_not_waited_for, .timeout = 120)
{
    struct witness served;
    uint16_t port;
    struct rpc *server = server_start(&served, &port);
    int64_t begun = clock_monotonic_ms();
    for (int i = 0; i < 30; i++)
        cr_assert_eq(call(port), ERROR_NONE);
    cr_assert_lt(clock_monotonic_ms() - begun, 8000);
    rpc_free(server);
}

Test(rpc, an_unknown_method_is_unsupported, .timeout = 120)
{
    struct witness served;
    struct client client;
    uint16_t port;
    struct rpc *server = server_start(&served, &port);
    client_start(&client, port, "/Test/Nothing");
    rpc_wake(client.rpc);
    sem_wait(&client.witness.done);
    cr_assert_eq(client.witness.kind, ERROR_UNSUPPORTED);
    rpc_free(client.rpc);
    rpc_free(server);
}

Test(rpc, a_closed_port_is_told_at_once, .timeout = 120)
{
    int socket_ = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    cr_assert_eq(bind(socket_, (struct sockaddr *)&address, sizeof(address)), 0);
    getsockname(socket_, (struct sockaddr *)&address, &length);
    struct client client; /* bound, but nobody listens */
    client_start(&client, ntohs(address.sin_port), "/Test/Echo");
    rpc_wake(client.rpc);
    sem_wait(&client.witness.done);
    cr_assert_eq(client.witness.kind, ERROR_NOT_FOUND);
    rpc_free(client.rpc);
    close(socket_);
}

static int connect_to(uint16_t port)
{
    int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    cr_assert(stranger >= 0 && connect(stranger, (struct sockaddr *)&address, sizeof(address)) == 0, "%s",
              strerror(errno));
    return stranger;
}

/* A process that knows `key` calls the server whose port comes through the pipe; its status is the kind of error. */
static pid_t fork_caller(const char *key, int pipe_)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    uint16_t port;
    if (read(pipe_, &port, sizeof(port)) != (ssize_t)sizeof(port))
        _exit(255);
    crew_key_set(key, strlen(key));
    _exit((int)call(port));
}

/* The caller is forked before the server has a key and, unless `certificates` is NULL, those of that folder. */
static enum error_kind end_of_call(const char *key, const char *servers_key, const char *certificates)
{
    struct witness served;
    uint16_t port;
    int ends[2], status;
    cr_assert_eq(pipe(ends), 0);
    pid_t caller = fork_caller(key, ends[0]);
    crew_key_set(servers_key, strlen(servers_key));
    if (certificates != NULL)
        cr_assert_eq(crew_certificates_open(certificates, NULL), 0);
    struct rpc *server = server_start(&served, &port);
    cr_assert_eq(write(ends[1], &port, sizeof(port)), (ssize_t)sizeof(port));
    cr_assert_eq(waitpid(caller, &status, 0), caller);
    rpc_free(server);
    enum error_kind end = (enum error_kind)WEXITSTATUS(status);
    cr_assert_eq(served.messages, end == ERROR_NONE ? 1 : 0, "who is refused is not heard");
    return end;
}

Test(rpc, a_caller_with_the_crews_key_is_heard, .timeout = 120)
{
    SKIP_WHERE_FORKS_ARE_NOT_FOLLOWED();
    cr_assert_eq(end_of_call("the key of this crew", "the key of this crew", NULL), ERROR_NONE);
}

Test(rpc, a_caller_with_another_key_is_refused, .timeout = 120)
{
    SKIP_WHERE_FORKS_ARE_NOT_FOLLOWED();
    cr_assert_eq(end_of_call("the key of another one", "the key of this crew", NULL), ERROR_FORBIDDEN);
}

Test(rpc, a_caller_without_a_key_is_refused, .timeout = 120)
{
    SKIP_WHERE_FORKS_ARE_NOT_FOLLOWED();
    cr_assert_eq(end_of_call("", "the key of this crew", NULL), ERROR_FORBIDDEN);
}

/* ---------------------------------------------------------------- TLS */

static void echo_once(void)
{
    struct witness served;
    uint16_t port;
    struct rpc *server = server_start(&served, &port);
    cr_assert_eq(call(port), ERROR_NONE);
    rpc_free(server);
}

Test(rpc, speaks_tls_with_the_crews_certificates, .timeout = 120)
{
    struct crew_files files;
    crew_files_open(&files);
    crew_files_make(&files, CREW_TLS_EVEN, -1);
    cr_assert_eq(crew_certificates_open(files.directory, NULL), 0);
    echo_once();
    crew_files_make(&files, CREW_TLS_ODD, 0);
    echo_once();
    crew_files_close(&files);
}

Test(rpc, a_stream_outlives_the_certificate_it_began_with, .timeout = 120)
{
    struct crew_files files;
    struct witness served;
    struct client client;
    uint16_t port;
    crew_files_open(&files);
    crew_files_make(&files, CREW_TLS_EVEN, -1);
    cr_assert_eq(crew_certificates_open(files.directory, NULL), 0);
    struct rpc *server = server_start(&served, &port);
    client_start(&client, port, "/Test/Echo");
    say_hello(&client);
    for (int generation = 0; generation < 6; generation++)
        crew_files_make(&files, generation % 2 ? CREW_TLS_EVEN : CREW_TLS_ODD, generation - 10);
    cr_assert_eq(call(port), ERROR_NONE, "the server presents what is the newest now");
    cr_assert_eq(say_bye(&client), ERROR_NONE);
    rpc_free(client.rpc);
    rpc_free(server);
    crew_files_close(&files);
}

Test(rpc, a_caller_without_a_certificate_is_not_heard, .timeout = 120)
{
    SKIP_WHERE_FORKS_ARE_NOT_FOLLOWED();
    struct crew_files files;
    crew_files_open(&files);
    crew_files_make(&files, CREW_TLS_EVEN, -1);
    cr_assert_eq(end_of_call("", "", files.directory), ERROR_FORBIDDEN);
    crew_files_close(&files);
}

/* ---------------------------------------------------------------- strangers */

/* Keys, and with `tls` certificates, for this process from now on. */
static void open_secrets(struct crew_files *files, bool tls)
{
    crew_key_set("the key of this crew", 20);
    if (!tls)
        return;
    crew_files_open(files);
    crew_files_make(files, CREW_TLS_EVEN, -1);
    cr_assert_eq(crew_certificates_open(files->directory, NULL), 0);
}

static void close_secrets(struct crew_files *files, bool tls)
{
    if (tls)
        crew_files_close(files);
}

/* What strangers begin with: nothing, half of a TLS handshake, HTTP/2 and HTTP/1, escape sequences, noise. */
static const struct {
    const char *bytes;
    size_t length;
} beginnings[] = {
    {"", 0},
    {"\x16\x03\x01\x02\x00\x01\x00\x01", 8},
    {"\x16\x03\x01\xff\xff\x01\xff\xff\xff", 9},
    {"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", 10},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", 33},
    {"GET /\x1b[31mforged\nline HTTP/1.1\r\n\r\n", 34},
    {"\x00\x00\x00\x00\x00\x00\x00\x00\x1b]0;title\x07", 18},
};
#define BEGINNINGS (sizeof beginnings / sizeof *beginnings)

/* A process that keeps `count` connections open in their beginnings, once the port has come through the pipe; says so through the
 * other. */
static pid_t fork_flood(unsigned count, const int port_pipe[2], const int done_pipe[2])
{
    struct rlimit limit;
    uint16_t port;
    pid_t child = fork();
    if (child != 0)
        return child;
    signal(SIGPIPE, SIG_IGN);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (read(port_pipe[0], &port, sizeof(port)) != (ssize_t)sizeof(port))
        _exit(1);
    for (unsigned i = 0; i < count; i++) {
        int stranger = connect_to(port);
        (void)!send(stranger, beginnings[i % BEGINNINGS].bytes, beginnings[i % BEGINNINGS].length, MSG_NOSIGNAL);
    }
    (void)!write(done_pipe[1], "!", 1);
    pause();
    _exit(0);
}

/* Many more strangers than there are descriptors stay connected: members are heard all the same, for as long as it lasts. */
static void expect_service_in_a_flood(bool tls)
{
    enum { FLOOD = 1500, DESCRIPTORS = 128 };
    struct crew_files files;
    struct witness served;
    uint16_t port;
    int port_pipe[2], done_pipe[2];
    char done;
    cr_assert(pipe(port_pipe) == 0 && pipe(done_pipe) == 0);
    pid_t flood = fork_flood(FLOOD, port_pipe, done_pipe);
    open_secrets(&files, tls);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){DESCRIPTORS, DESCRIPTORS}), 0);
    struct rpc *server = server_start(&served, &port);
    cr_assert_eq(write(port_pipe[1], &port, sizeof(port)), (ssize_t)sizeof(port));
    cr_assert_eq(read(done_pipe[0], &done, 1), 1);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(call(port), ERROR_NONE, "call %d", i);
    cr_expect_gt(strangers_count(STRANGER_CONTROL_PORT).door_full, 0);
    cr_expect_gt(strangers_count(STRANGER_CONTROL_PORT).refused, FLOOD / 2);
    kill(flood, SIGKILL);
    waitpid(flood, NULL, 0);
    cr_assert_eq(call(port), ERROR_NONE, "and after it");
    rpc_free(server);
    close_secrets(&files, tls);
}

Test(rpc, a_flood_of_strangers_keeps_no_member_out, .timeout = 120, .init = cr_redirect_stderr)
{
    expect_service_in_a_flood(false);
}

Test(rpc, a_flood_of_strangers_keeps_no_member_out_under_certificates, .timeout = 120, .init = cr_redirect_stderr)
{
    expect_service_in_a_flood(true);
}

/* Other threads of the process have taken all descriptors. */
Test(rpc, a_server_without_descriptors_serves_again_when_there_are_some, .timeout = 120, .init = cr_redirect_stderr)
{
    enum { DESCRIPTORS = 128 };
    struct witness served;
    uint16_t port;
    int taken[DESCRIPTORS], count = 0, strangers[16];
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){DESCRIPTORS, DESCRIPTORS}), 0);
    struct rpc *server = server_start(&served, &port);
    for (size_t i = 0; i < 16; i++)
        cr_assert_geq(strangers[i] = socket(AF_INET, SOCK_STREAM, 0), 0);
    while (count < DESCRIPTORS && (taken[count] = dup(0)) >= 0)
        count++;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    for (size_t i = 0; i < 16; i++)
        cr_assert_eq(connect(strangers[i], (struct sockaddr *)&address, sizeof(address)), 0);
    for (size_t i = 0; i < 16; i++) { /* each is turned away */
        struct pollfd ended = {.fd = strangers[i], .events = POLLIN};
        cr_assert_eq(poll(&ended, 1, 60000), 1);
    }
    for (size_t i = 0; i < 16; i++) /* not before: the server would have a descriptor to accept the next with */
        close(strangers[i]);
    cr_assert_eq(strangers_count(STRANGER_CONTROL_PORT).door_full, 16);
    while (count > 0)
        close(taken[--count]);
    cr_assert_eq(call(port), ERROR_NONE);
    rpc_free(server);
}

/* accept4(2) fails with EMFILE also after the last connection in the queue: that one stays. */
Test(rpc, a_connection_may_take_the_last_descriptor, .timeout = 120, .init = cr_redirect_stderr)
{
    enum { DESCRIPTORS = 128 };
    struct witness served;
    uint16_t port;
    int count = 0, taken[DESCRIPTORS];
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){DESCRIPTORS, DESCRIPTORS}), 0);
    struct rpc *server = server_start(&served, &port);
    struct pollfd stranger = {.fd = socket(AF_INET, SOCK_STREAM, 0), .events = POLLIN};
    while (count < DESCRIPTORS && (taken[count] = dup(0)) >= 0)
        count++;
    close(taken[--count]);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    cr_assert_eq(connect(stranger.fd, (struct sockaddr *)&address, sizeof(address)), 0);
    cr_expect_eq(poll(&stranger, 1, 500), 0, "it was put out though nobody else came");
    cr_expect_eq(strangers_count(STRANGER_CONTROL_PORT).door_full, 0);
    while (count > 0)
        close(taken[--count]);
    close(stranger.fd);
    rpc_free(server);
}

static void expect_silence_about(const char *where, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        cr_assert(text[i] == '\n' || ((unsigned char)text[i] >= ' ' && text[i] != 0x7f), "%s: byte %zu of: %s", where,
                  i, text);
    cr_assert_null(strstr(text, "forged"), "%s: %s", where, text);
}

/* All beginnings, one after the other: each is refused or waits, a member is heard beside it, and no byte of it reaches the log. */
static void expect_no_harm(bool tls)
{
    struct crew_files files;
    struct witness served;
    uint16_t port;
    char text[65536];
    open_secrets(&files, tls);
    struct rpc *server = server_start(&served, &port);
    for (size_t i = 0; i < BEGINNINGS; i++) {
        int stranger = connect_to(port);
        cr_assert_eq(send(stranger, beginnings[i].bytes, beginnings[i].length, MSG_NOSIGNAL),
                     (ssize_t)beginnings[i].length);
        cr_assert_eq(call(port), ERROR_NONE, "beside beginning %zu", i);
        close(stranger);
        cr_assert_eq(served.messages, i + 1, "who is refused is not heard");
    }
    rpc_free(server);
    close_secrets(&files, tls);
    fflush(stderr);
    size_t length = fread(text, 1, sizeof text - 1, cr_get_redirected_stderr());
    text[length] = '\0';
    cr_assert_not_null(strstr(text, "refused a connection"), "%s", text);
    expect_silence_about("log", text, length);
}

Test(rpc, garbage_on_the_port_disturbs_nobody, .timeout = 120, .init = cr_redirect_stderr)
{
    expect_no_harm(false);
}

Test(rpc, garbage_on_the_port_disturbs_nobody_under_certificates, .timeout = 120, .init = cr_redirect_stderr)
{
    expect_no_harm(true);
}

Test(rpc, what_grpc_logs_is_escaped_and_cut)
{
    char text[2 * RPC_LOG_MAX], escaped[RPC_LOG_MAX];
    rpc_log_escape("a\x1b[31m\nb\\\x9b", escaped);
    cr_assert_str_eq(escaped, "a\\x1b[31m\\x0ab\\x5c\\x9b");
    memset(text, '\x1b', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    rpc_log_escape(text, escaped);
    cr_assert_gt(strlen(escaped), RPC_LOG_MAX - 16);
    cr_assert_str_eq(escaped + strlen(escaped) - strlen("…"), "…");
}

/* Strangers who say nothing leave when their time is over. */
Test(rpc, the_thread_of_the_control_port_shows_that_it_lives, .timeout = 120)
{
    struct rpc_connections *connections;
    const char *name;
    cr_assert_eq(rpc_connections_start(&connections, NULL), 0);
    int64_t start_ms = clock_monotonic_ms();
    int64_t age_ms = heartbeat_oldest_ms(&name), now_ms = start_ms;
    for (; now_ms < start_ms + 1000 || (age_ms > 300 && now_ms < start_ms + 20000); now_ms = clock_monotonic_ms()) {
        usleep(10000);
        age_ms = heartbeat_oldest_ms(&name);
    }
    cr_expect_leq(age_ms, 300);
    cr_assert_str_eq(name, "accepts connections at the control port");
    rpc_connections_free(connections);
    cr_expect_eq(heartbeat_oldest_ms(&name), 0);
    cr_expect_null(name);
}

Test(rpc, a_silent_stranger_is_closed, .timeout = 120, .init = cr_redirect_stderr)
{
    struct witness served;
    uint16_t port;
    char byte;
    struct rpc *server = server_start(&served, &port);
    int stranger = connect_to(port);
    cr_assert_eq(recv(stranger, &byte, 1, 0), 0);
    cr_assert_eq(strangers_count(STRANGER_CONTROL_PORT).refused, 1);
    close(stranger);
    rpc_free(server);
}

/* ---------------------------------------------------------------- what was recorded says nothing to anybody */

struct wiretap {
    int listens;
    uint16_t server_port;
    unsigned char said[65536]; /* by the caller */
    size_t length;
    pthread_t thread;
};

static void *tap(void *context)
{
    struct wiretap *wiretap = context;
    unsigned char bytes[4096];
    int caller = accept(wiretap->listens, NULL, NULL), called = connect_to(wiretap->server_port);
    for (ssize_t got = 1; got > 0;) {
        struct pollfd ends[] = {{.fd = caller, .events = POLLIN}, {.fd = called, .events = POLLIN}};
        poll(ends, 2, -1);
        bool from_caller = ends[0].revents != 0;
        got = recv(from_caller ? caller : called, bytes, sizeof bytes, 0);
        if (got > 0)
            (void)!send(from_caller ? called : caller, bytes, (size_t)got, MSG_NOSIGNAL);
        if (got > 0 && from_caller && wiretap->length + (size_t)got <= sizeof wiretap->said) {
            memcpy(wiretap->said + wiretap->length, bytes, (size_t)got);
            wiretap->length += (size_t)got;
        }
    }
    close(caller);
    close(called);
    return NULL;
}

/* A call that is recorded on its way; then all its bytes come again, as they were. */
static void expect_no_replay(bool tls)
{
    static struct wiretap wiretap;
    struct crew_files files;
    struct witness served;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    char rest[4096];
    open_secrets(&files, tls);
    struct rpc *server = server_start(&served, &wiretap.server_port);
    wiretap.listens = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(bind(wiretap.listens, (struct sockaddr *)&address, size), 0);
    cr_assert_eq(listen(wiretap.listens, 1), 0);
    getsockname(wiretap.listens, (struct sockaddr *)&address, &size);
    cr_assert_eq(pthread_create(&wiretap.thread, NULL, tap, &wiretap), 0);
    cr_assert_eq(call(ntohs(address.sin_port)), ERROR_NONE);
    pthread_join(wiretap.thread, NULL);
    cr_assert(served.messages == 1 && wiretap.length > 0 && wiretap.length < sizeof wiretap.said);
    cr_assert_null(memmem(wiretap.said, wiretap.length, "bye", 3), "what is said is not to be read on its way");

    int stranger = connect_to(wiretap.server_port);
    cr_assert_eq(send(stranger, wiretap.said, wiretap.length, MSG_NOSIGNAL), (ssize_t)wiretap.length);
    while (recv(stranger, rest, sizeof rest, 0) > 0)
        ;
    cr_assert_eq(served.messages, 1, "the replay was heard");
    cr_assert_eq(strangers_count(STRANGER_CONTROL_PORT).refused, 1);
    close(stranger);
    close(wiretap.listens);
    rpc_free(server);
    close_secrets(&files, tls);
}

Test(rpc, a_recorded_call_is_not_heard_again, .timeout = 120, .init = cr_redirect_stderr)
{
    expect_no_replay(false);
}

Test(rpc, a_recorded_call_is_not_heard_again_under_certificates, .timeout = 120, .init = cr_redirect_stderr)
{
    expect_no_replay(true);
}
