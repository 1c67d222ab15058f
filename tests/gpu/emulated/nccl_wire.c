/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/emulated/nccl_wire.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LOOK_MS 10

/* What each rank tells the root. The root answers with those of all ranks. */
struct introduction {
    int rank, ranks;
    char name[WIRE_NAME_MAX];
};

/* ---------------------------------------------------------------- sockets with names that no file has */

static socklen_t address_of(const char *name, struct sockaddr_un *ret_address)
{
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret_address->sun_path + 1, name, strlen(name));
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

/* Processes of different PID namespaces, as pods of one machine have them, may have the same number. */
static unsigned long long pid_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

static int listen_somewhere(char name[WIRE_NAME_MAX])
{
    static _Atomic int count;
    struct sockaddr_un address;
    snprintf(name, WIRE_NAME_MAX, "coxswain-emulated-nccl-%llu-%d-%d", pid_namespace(), getpid(),
             atomic_fetch_add(&count, 1));
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = address_of(name, &address);
    if (listener >= 0 && bind(listener, (struct sockaddr *)&address, length) == 0 &&
        listen(listener, WIRE_RANKS_MAX) == 0)
        return listener;
    if (listener >= 0)
        close(listener);
    return -1;
}

static int dial(const char *name)
{
    struct sockaddr_un address;
    int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = address_of(name, &address);
    if (connection >= 0 && connect(connection, (struct sockaddr *)&address, length) == 0)
        return connection;
    if (connection >= 0)
        close(connection);
    return -1;
}

/* Waits until the socket has something to read. Returns false once it is to stop. */
static bool await(int descriptor, const _Atomic bool *stop)
{
    struct pollfd look = {.fd = descriptor, .events = POLLIN};
    while (!stop || !atomic_load(stop)) {
        int ready = poll(&look, 1, LOOK_MS);
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return false;
    }
    return false;
}

static int answer(int listener, const _Atomic bool *stop)
{
    return await(listener, stop) ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
}

static bool give(int connection, const void *bytes, size_t length)
{
    return send(connection, bytes, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static bool take(int connection, void *bytes, size_t length, const _Atomic bool *stop)
{
    for (size_t done = 0; done < length;) {
        if (!await(connection, stop))
            return false;
        ssize_t got = recv(connection, (char *)bytes + done, length - done, 0);
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

/* ---------------------------------------------------------------- meeting */

/* Introduces all ranks to each other, once. If nobody joins the group, the thread waits forever. */
static void *introduce(void *context)
{
    int listener = *(int *)context, ranks = 1, connections[WIRE_RANKS_MAX];
    struct introduction all[WIRE_RANKS_MAX] = {0}, one;
    free(context);
    int came = 0;
    while (came < ranks) {
        int connection = answer(listener, NULL);
        if (connection < 0 || !take(connection, &one, sizeof one, NULL) || one.rank < 0 || one.rank >= WIRE_RANKS_MAX)
            break;
        ranks = one.ranks;
        all[one.rank] = one;
        connections[came++] = connection;
    }
    for (int i = 0; i < came; i++) {
        if (came == ranks)
            (void)give(connections[i], all, sizeof *all * (size_t)ranks);
        close(connections[i]);
    }
    close(listener);
    return NULL;
}

bool wire_open_root(char name[WIRE_NAME_MAX])
{
    pthread_t thread;
    int *listener = malloc(sizeof *listener);
    if (!listener || (*listener = listen_somewhere(name)) < 0 ||
        pthread_create(&thread, NULL, introduce, listener) != 0) {
        free(listener);
        return false;
    }
    pthread_detach(thread);
    return true;
}

/* Dials the lower ranks and accepts the higher ones. */
static bool connect_all(const struct introduction *all, int listener, int rank, int ranks, const _Atomic bool *stop,
                        int *sockets)
{
    for (int peer = 0; peer < rank; peer++) {
        sockets[peer] = dial(all[peer].name);
        if (sockets[peer] < 0 || !give(sockets[peer], &rank, sizeof rank))
            return false;
    }
    for (int left = ranks - rank - 1; left > 0; left--) {
        int peer, connection = answer(listener, stop);
        if (connection < 0 || !take(connection, &peer, sizeof peer, stop) || peer <= rank || peer >= ranks)
            return false;
        sockets[peer] = connection;
    }
    return true;
}

bool wire_meet(const char *root, int rank, int ranks, const _Atomic bool *stop, int ret_sockets[WIRE_RANKS_MAX])
{
    struct introduction own = {.rank = rank, .ranks = ranks}, all[WIRE_RANKS_MAX];
    for (int i = 0; i < WIRE_RANKS_MAX; i++)
        ret_sockets[i] = -1;
    int listener = listen_somewhere(own.name), connection = dial(root);
    bool met = listener >= 0 && connection >= 0 && give(connection, &own, sizeof own) &&
               take(connection, all, sizeof *all * (size_t)ranks, stop) &&
               connect_all(all, listener, rank, ranks, stop, ret_sockets);
    if (connection >= 0)
        close(connection);
    if (listener >= 0)
        close(listener);
    return met;
}

/* ---------------------------------------------------------------- messages */

static struct wire_message *next_message(struct wire_message *messages, int peer, bool receives)
{
    for (; messages; messages = messages->next)
        if (messages->peer == peer && messages->receives == receives &&
            (messages->header < sizeof messages->length || messages->done < messages->length))
            return messages;
    return NULL;
}

static bool would_block(void)
{
    return errno == EAGAIN || errno == EINTR;
}

/* Returns false if the other end is gone. */
static bool send_some(int socket, struct wire_message *message)
{
    bool heads = message->header < sizeof message->length;
    const char *from = heads ? (const char *)&message->length + message->header : message->bytes + message->done;
    size_t left = heads ? sizeof message->length - message->header : message->length - message->done;
    ssize_t sent = send(socket, from, left, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0)
        return would_block();
    *(heads ? &message->header : &message->done) += (size_t)sent;
    return true;
}

static bool receive_some(int socket, struct wire_message *message)
{
    bool heads = message->header < sizeof message->length;
    char *to = heads ? (char *)&message->announced + message->header : message->bytes + message->done;
    size_t left = heads ? sizeof message->length - message->header : message->length - message->done;
    ssize_t got = recv(socket, to, left, MSG_DONTWAIT);
    if (got < 0)
        return would_block();
    *(heads ? &message->header : &message->done) += (size_t)got;
    if (heads && message->header == sizeof message->length && message->announced != message->length) {
        fprintf(stderr, "emulated NCCL: rank %d sends %zu bytes where %zu are received\n", message->peer,
                message->announced, message->length);
        abort();
    }
    return got > 0;
}

/* Moves what it can without waiting. Returns the number of peers with something left. */
static int move(const int *sockets, int ranks, struct wire_message *messages, struct pollfd *looks, _Atomic bool *gone)
{
    int count = 0;
    for (int peer = 0; peer < ranks; peer++) {
        struct wire_message *out = next_message(messages, peer, false), *in = next_message(messages, peer, true);
        if ((out && !send_some(sockets[peer], out)) || (in && !receive_some(sockets[peer], in)))
            atomic_store(gone, true);
        out = next_message(messages, peer, false);
        in = next_message(messages, peer, true);
        if (out || in)
            looks[count++] =
                (struct pollfd){.fd = sockets[peer], .events = (short)((out ? POLLOUT : 0) | (in ? POLLIN : 0))};
    }
    return count;
}

bool wire_exchange(const int *sockets, int ranks, struct wire_message *messages, const _Atomic bool *stop,
                   _Atomic bool *gone)
{
    struct pollfd looks[WIRE_RANKS_MAX];
    while (!atomic_load(stop)) {
        if (atomic_load(gone)) { /* like a GPU, which goes on waiting */
            poll(NULL, 0, LOOK_MS);
            continue;
        }
        int count = move(sockets, ranks, messages, looks, gone);
        if (count == 0)
            return true;
        poll(looks, (nfds_t)count, LOOK_MS);
    }
    return false;
}
