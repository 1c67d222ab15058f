/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/strangers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"

#define LINE_EVERY_MS 10000

static const char *const port_names[] = {[STRANGER_CONTROL_PORT] = "control", [STRANGER_DATA_PORT] = "data"};

static struct {
    pthread_mutex_t lock;
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

static void count_refusal(enum stranger_port number, const union socket_address *address, const char *reason, bool full)
{
    struct port *port = &strangers.ports[number];
    int64_t now = clock_monotonic_ms();
    pthread_mutex_lock(&strangers.lock);
    port->counts.refused++;
    port->counts.door_full += full;
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
    pthread_mutex_lock(&strangers.lock);
    struct stranger_counts counts = strangers.ports[port].counts;
    pthread_mutex_unlock(&strangers.lock);
    return counts;
}
