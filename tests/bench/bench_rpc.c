/* SPDX-License-Identifier: Apache-2.0
 *
 * The control port between two processes on one machine: how long a small message and its answer
 * take, and how fast messages of 1 MiB go one way, of which a few are always queued.
 *
 *     bench_rpc [seconds a measurement, default 2]
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "worker/comm/crew_key.h"
#include "worker/comm/rpc.h"

#define SMALL 64
#define LARGE (RPC_MESSAGE_MAX - 64)
#define QUEUED 4
#define ROUNDS_MAX 1000000
#define METHOD "/Bench/Echo"

static const char key[] = "the key of this bench";

/* ---------------------------------------------------------------- the server */

static void answer(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    (void)context;
    rpc_stream_send(stream, bytes, length <= SMALL ? length : 1);
}

static void opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events, void **ret_context)
{
    (void)context, (void)stream, (void)ret_context;
    *ret_events = (struct rpc_stream_events){.message = answer};
}

static void serve(int pipe_)
{
    static const struct rpc_method method = {METHOD, opened};
    struct rpc *rpc;
    struct rpc_server *server;
    crew_key_set(key, strlen(key));
    if (rpc_new(NULL, NULL, 100, &rpc, NULL) < 0 ||
        rpc_server_start(rpc, "127.0.0.1", 0, &method, 1, NULL, &server, NULL) < 0)
        _exit(1);
    uint16_t port = rpc_server_port(server);
    if (write(pipe_, &port, sizeof port) != (ssize_t)sizeof port)
        _exit(1);
    pause();
}

/* ---------------------------------------------------------------- the client; all on the rpc's thread */

struct client {
    struct rpc *rpc;
    uint16_t port;
    size_t size;
    unsigned queued;
    double seconds;
    struct rpc_stream *stream;
    int64_t began_ns, sent_ns, last_ns, answers;
    double *rounds; /* microseconds */
    unsigned char *bytes;
    sem_t done;
};

static void say(struct client *client)
{
    client->sent_ns = clock_monotonic_ns();
    rpc_stream_send(client->stream, client->bytes, client->size);
}

static void heard(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct client *client = context;
    (void)bytes, (void)length;
    client->last_ns = clock_monotonic_ns();
    if (client->answers < ROUNDS_MAX)
        client->rounds[client->answers++] = (double)(client->last_ns - client->sent_ns) / 1000;
    if ((double)(client->last_ns - client->began_ns) / 1e9 < client->seconds)
        say(client);
    else
        rpc_stream_close(stream);
}

static void closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    sem_post(&((struct client *)context)->done);
}

static void start(void *context)
{
    static const struct rpc_stream_events events = {.message = heard, .closed = closed};
    struct client *client = context;
    if (client->stream != NULL)
        return;
    client->began_ns = clock_monotonic_ns();
    if (rpc_stream_open(client->rpc, "127.0.0.1", client->port, METHOD, 0, &events, client, &client->stream, NULL) < 0)
        exit(1);
    for (unsigned i = 0; i < client->queued; i++)
        say(client);
}

static double processor_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(uint16_t port, size_t size, unsigned queued, double seconds)
{
    struct client client = {.port = port, .size = size, .queued = queued, .seconds = seconds};
    client.rounds = calloc(ROUNDS_MAX, sizeof *client.rounds);
    client.bytes = calloc(1, LARGE);
    sem_init(&client.done, 0, 0);
    double before = processor_seconds();
    if (rpc_new(start, &client, 10, &client.rpc, NULL) < 0)
        exit(1);
    rpc_start_ticks(client.rpc);
    sem_wait(&client.done);
    rpc_free(client.rpc);
    double took = (double)(client.last_ns - client.began_ns) / 1e9;
    if (size == SMALL) {
        qsort(client.rounds, (size_t)client.answers, sizeof *client.rounds, compare);
        printf("%zu bytes and their answer: median %.0f us, one in a hundred more than %.0f us, %.0f us of the "
               "client's processor\n",
               size, client.rounds[client.answers / 2], client.rounds[client.answers * 99 / 100],
               1e6 * (processor_seconds() - before) / (double)client.answers);
    } else {
        printf("1 MiB messages one way: %.2f GB/s\n", (double)client.answers * (double)size / took / 1e9);
    }
    free(client.rounds);
    free(client.bytes);
}

int main(int count, char **words)
{
    double seconds = count > 1 ? strtod(words[1], NULL) : 2;
    int ends[2];
    uint16_t port;
    if (pipe(ends) < 0)
        return 1;
    pid_t server = fork();
    if (server == 0)
        serve(ends[1]);
    crew_key_set(key, strlen(key));
    if (read(ends[0], &port, sizeof port) != (ssize_t)sizeof port)
        return 1;
    measure(port, SMALL, 1, seconds);
    measure(port, LARGE, QUEUED, seconds);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    return 0;
}
