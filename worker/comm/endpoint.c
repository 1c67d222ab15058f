/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/endpoint.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/memory.h"
#include "worker/comm/crew_certificates.h"
#include "worker/comm/crew_listener.h"
#include "worker/comm/handshake.h"

#define TLS_RECORD_HANDSHAKE 0x16 /* the first byte of every TLS connection (RFC 8446, 5.1) */

struct endpoint {
    struct crew_listener *listener;
    int arrived;                                     /* eventfd */
    pthread_mutex_t lock;                            /* guards what follows */
    struct arrival *arrivals[ENDPOINT_ARRIVALS_MAX]; /* the oldest first */
    unsigned count;
};

/* A connection that has not proved the crew's key yet. */
struct incoming {
    struct link link;
    bool secured, challenged;
    struct opening opening;
    size_t received; /* of the greeting */
};

/* ---------------------------------------------------------------- arrivals; with the lock held */

static struct arrival *arrival_remove(struct endpoint *endpoint, unsigned number)
{
    struct arrival *arrival = endpoint->arrivals[number];
    endpoint->count--;
    memmove(&endpoint->arrivals[number], &endpoint->arrivals[number + 1],
            (endpoint->count - number) * sizeof(struct arrival *));
    return arrival;
}

static void arrival_drop(struct endpoint *endpoint, unsigned number)
{
    struct arrival *arrival = arrival_remove(endpoint, number);
    link_release(&arrival->link);
    free(arrival);
}

/* A rank that dials again has given up its former connection; bulk connections (of size 0) are identified by their tokens. */
static bool replaces(const struct greeting *new, const struct greeting *old)
{
    return new->size > 0 && old->size > 0 &&
           new->rank == old->rank &&generation_compare(old->generation, new->generation) <= 0;
}

static void arrival_add(struct endpoint *endpoint, struct arrival *arrival)
{
    for (unsigned i = endpoint->count; i-- > 0;)
        if (replaces(&arrival->greeting, &endpoint->arrivals[i]->greeting))
            arrival_drop(endpoint, i);
    if (endpoint->count == ENDPOINT_ARRIVALS_MAX)
        arrival_drop(endpoint, 0);
    endpoint->arrivals[endpoint->count++] = arrival;
}

/* ---------------------------------------------------------------- on the listener's thread */

/* Until the first byte has come, a stranger costs no TLS session. */
static enum pending_verdict secure(struct incoming *incoming, short *events, struct error *error)
{
    unsigned char first;
    if (crew_certificates_are_set() && incoming->link.tls == NULL) {
        ssize_t length = recv(incoming->link.socket, &first, 1, MSG_PEEK | MSG_DONTWAIT);
        if (length < 0 && (errno == EAGAIN || errno == EINTR))
            return PENDING_WAITS;
        if (length <= 0 || first != TLS_RECORD_HANDSHAKE) {
            error_set(error, ERROR_FORBIDDEN, length <= 0 ? "it closed the connection" : "it does not speak TLS");
            return PENDING_REFUSED;
        }
    }
    int secured = handshake_secure(&incoming->link, true, error);
    *events = incoming->link.tls != NULL ? tls_session_events(incoming->link.tls, true, false) : POLLIN;
    incoming->secured = secured > 0;
    return secured > 0 ? PENDING_TAKEN : secured < 0 ? PENDING_REFUSED : PENDING_WAITS;
}

static bool challenge(struct incoming *incoming, struct error *error)
{
    incoming->challenged = challenge_make(&incoming->opening, error) == 0 &&
                           link_write(&incoming->link, &(struct iovec){incoming->opening.challenge, CHALLENGE_BYTES},
                                      1) == CHALLENGE_BYTES;
    if (!incoming->challenged)
        error_set(error, ERROR_UNAVAILABLE, "it closed the connection");
    return incoming->challenged;
}

static void arrive(struct endpoint *endpoint, struct incoming *incoming, const struct greeting *greeting)
{
    const uint64_t one = 1;
    struct arrival *arrival = memory_allocate(1, sizeof *arrival);
    *arrival = (struct arrival){.link = incoming->link, .opening = incoming->opening, .greeting = *greeting};
    pthread_mutex_lock(&endpoint->lock);
    arrival_add(endpoint, arrival);
    pthread_mutex_unlock(&endpoint->lock);
    (void)!write(endpoint->arrived, &one, sizeof one);
}

static enum pending_verdict authenticate(void *context, struct pending_connection *pending, struct error *error)
{
    struct incoming *incoming = pending->state;
    struct greeting greeting;
    if (!incoming->challenged) {
        incoming->link.socket = pending->socket;
        handshake_set_no_delay(pending->socket);
        enum pending_verdict verdict = incoming->secured ? PENDING_TAKEN : secure(incoming, &pending->events, error);
        if (verdict != PENDING_TAKEN)
            return verdict;
        pending->events = POLLIN;
        return challenge(incoming, error) ? PENDING_WAITS : PENDING_REFUSED;
    }
    unsigned char *bytes = incoming->opening.greeting;
    incoming->link.dry = false;
    incoming->received += link_read(&incoming->link, bytes + incoming->received, GREETING_BYTES - incoming->received);
    bool has_begun = greeting_has_begun(&incoming->opening, incoming->received);
    if (has_begun && incoming->received < GREETING_BYTES && !incoming->link.closed)
        return PENDING_WAITS;
    if (!has_begun || incoming->received < GREETING_BYTES) {
        error_set(error, ERROR_CORRUPT,
                  has_begun ? "it closed the connection" : "it sent something else than a greeting");
        return PENDING_REFUSED;
    }
    if (greeting_decode(&incoming->opening, &greeting, error) < 0)
        return PENDING_REFUSED;
    arrive(context, incoming, &greeting);
    return PENDING_TAKEN;
}

static void forget(void *context, struct pending_connection *pending)
{
    (void)context;
    tls_session_free(((struct incoming *)pending->state)->link.tls);
}

/* ---------------------------------------------------------------- for the process */

int endpoint_open(const char *address, uint16_t port, struct endpoint **ret_endpoint, struct error *error)
{
    struct endpoint *endpoint = memory_allocate(1, sizeof(*endpoint));
    const struct crew_listener_options options = {.port_name = "data port",
                                                  .number = STRANGER_DATA_PORT,
                                                  .heartbeat_name = "accepts connections at the data port",
                                                  .address = address,
                                                  .port = port,
                                                  .state_bytes = sizeof(struct incoming),
                                                  .authenticate = authenticate,
                                                  .forget = forget,
                                                  .context = endpoint};
    pthread_mutex_init(&endpoint->lock, NULL);
    endpoint->arrived = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int result = endpoint->arrived < 0 ? error_set_errno(error, "make an event for the data port")
                                       : crew_listener_open(&options, &endpoint->listener, error);
    if (result < 0)
        endpoint_free(endpoint);
    else
        *ret_endpoint = endpoint;
    return result;
}

int endpoint_start(struct endpoint *endpoint, struct error *error)
{
    return crew_listener_start(endpoint->listener, error);
}

void endpoint_free(struct endpoint *endpoint)
{
    if (endpoint == NULL)
        return;
    crew_listener_free(endpoint->listener);
    while (endpoint->count > 0)
        arrival_drop(endpoint, endpoint->count - 1);
    if (endpoint->arrived >= 0)
        close(endpoint->arrived);
    pthread_mutex_destroy(&endpoint->lock);
    free(endpoint);
}

uint16_t endpoint_port(const struct endpoint *endpoint)
{
    return crew_listener_port(endpoint->listener);
}

int endpoint_descriptor(const struct endpoint *endpoint)
{
    return endpoint->arrived;
}

bool endpoint_take(struct endpoint *endpoint, struct generation newest, struct arrival *ret_arrival)
{
    uint64_t count;
    struct arrival *found = NULL;
    (void)!read(endpoint->arrived, &count, sizeof count);
    pthread_mutex_lock(&endpoint->lock);
    for (unsigned i = 0; i < endpoint->count && found == NULL; i++)
        if (generation_compare(endpoint->arrivals[i]->greeting.generation, newest) <= 0)
            found = arrival_remove(endpoint, i);
    pthread_mutex_unlock(&endpoint->lock);
    if (found == NULL)
        return false;
    *ret_arrival = *found;
    free(found);
    return true;
}

void arrival_answer(struct arrival *arrival, enum greeting_answer answer)
{
    unsigned char bytes[GREETING_ANSWER_BYTES];
    greeting_answer_encode(answer, &arrival->opening, bytes);
    (void)link_write(&arrival->link, &(struct iovec){bytes, sizeof bytes}, 1);
}
