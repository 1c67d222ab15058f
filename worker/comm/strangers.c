/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/strangers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/lock.h"
#include "common/log.h"

#define LINE_EVERY_MS 10000

static const char *const port_names[] = {[STRANGER_CONTROL_PORT] = "control", [STRANGER_DATA_PORT] = "data"};

/* Addresses that are counted one by one. When there are more, a new one takes the place and the count of the rarest: a frequent
 * address is never counted too low. */
#define ADDRESSES_MAX 16

struct host {
    union socket_address address;
    uint64_t refused;
    enum stranger_port port;
    char reason[STRANGERS_REASON_MAX];
};

static struct {
    pthread_mutex_t lock;
    struct host hosts[ADDRESSES_MAX];
    unsigned host_count;
    uint64_t untaken;
    struct port {
        struct stranger_counts counts;
        uint64_t unlogged;
        int64_t next_line_ms; /* 0: none has been written */
    } ports[sizeof port_names / sizeof *port_names];
} strangers = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void log_refusal(enum stranger_port port, const union socket_address *address, const char *reason,
                        uint64_t unlogged)
{
    char text[SOCKET_ADDRESS_TEXT_MAX], more[24];
    socket_address_format(address, text);
    snprintf(more, sizeof more, "%llu", (unsigned long long)unlogged);
    log_warning("refused a connection", "port", port_names[port], "address", text, "reason", reason, "unlogged",
                unlogged > 0 ? more : NULL, NULL);
}

static void count_host(enum stranger_port port, const union socket_address *address, const char *reason)
{
    struct host *host = NULL, *rarest = &strangers.hosts[0];
    for (unsigned i = 0; i < strangers.host_count && host == NULL; i++) {
        if (socket_address_same_host(&strangers.hosts[i].address, address))
            host = &strangers.hosts[i];
        if (strangers.hosts[i].refused < rarest->refused)
            rarest = &strangers.hosts[i];
    }
    if (host == NULL && strangers.host_count < ADDRESSES_MAX) {
        host = &strangers.hosts[strangers.host_count++];
        host->refused = 0;
    }
    if (host == NULL)
        host = rarest;
    host->address = *address;
    host->refused++;
    host->port = port;
    snprintf(host->reason, sizeof host->reason, "%s", reason);
    strangers.untaken++;
}

void strangers_take(struct stranger_summary *ret_summary)
{
    *ret_summary = (struct stranger_summary){0};
    SCOPED_LOCK(&strangers.lock);
    const struct host *worst = &strangers.hosts[0];
    for (unsigned i = 1; i < strangers.host_count; i++)
        if (strangers.hosts[i].refused > worst->refused)
            worst = &strangers.hosts[i];
    if (strangers.host_count > 0) {
        ret_summary->refused = strangers.untaken;
        ret_summary->from_worst = worst->refused;
        ret_summary->port = worst->port;
        socket_address_format_host(&worst->address, ret_summary->worst);
        snprintf(ret_summary->reason, sizeof ret_summary->reason, "%s", worst->reason);
    }
    strangers.host_count = 0;
    strangers.untaken = 0;
}

const char *stranger_port_name(enum stranger_port port)
{
    return port_names[port];
}

static void count_refusal(enum stranger_port number, const union socket_address *address, const char *reason, bool full)
{
    struct port *port = &strangers.ports[number];
    int64_t now = clock_monotonic_ms();
    pthread_mutex_lock(&strangers.lock);
    port->counts.refused++;
    port->counts.door_full += full;
    count_host(number, address, reason);
    bool has_line = port->next_line_ms == 0 || now >= port->next_line_ms;
    uint64_t unlogged = port->unlogged;
    port->unlogged = has_line ? 0 : unlogged + 1;
    if (has_line)
        port->next_line_ms = now + LINE_EVERY_MS;
    pthread_mutex_unlock(&strangers.lock);
    if (has_line)
        log_refusal(number, address, reason, unlogged);
}

void strangers_refuse(enum stranger_port port, const union socket_address *address, const char *reason)
{
    count_refusal(port, address, reason, false);
}

void strangers_evict(enum stranger_port port, const union socket_address *address)
{
    count_refusal(port, address, "it had not proven itself when newer connections needed its place", true);
}

struct stranger_counts strangers_count(enum stranger_port port)
{
    SCOPED_LOCK(&strangers.lock);
    struct stranger_counts counts = strangers.ports[port].counts;
    return counts;
}
