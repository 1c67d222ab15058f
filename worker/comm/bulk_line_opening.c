/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "worker/comm/bulk_line_parts.h"

/* A connection is cut after this long with unacknowledged bytes, or if an idle peer does not answer. */
#define CUT_MS 30000
#define PROBE_S 10

static void set_option(int socket, int level, int name, int value)
{
    setsockopt(socket, level, name, &value, sizeof value);
}

static void notice_cuts(int socket)
{
    set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, CUT_MS);
    set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, PROBE_S);
    set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, PROBE_S);
}

/* ---------------------------------------------------------------- dialling */

struct bulk_line *bulk_line_dial(struct bulk_lines *lines, const char *address, uint16_t port, uint64_t token)
{
    struct bulk_line *line = line_new(lines, token);
    line->until_ns = clock_monotonic_ns() + HANDSHAKE_NS;
    handshake_dial(&line->handshake, &line->link, address, port);
    line->phase = line->handshake.phase == HANDSHAKE_FAILED ? LINE_CLOSED : LINE_DIALLING;
    if (line->phase == LINE_DIALLING)
        notice_cuts(line->link.socket);
    line_enter(line);
    return line;
}

void line_open_further(struct bulk_line *line, bool ready)
{
    struct handshake *handshake = &line->handshake;
    if (ready)
        handshake_advance(handshake, &line->link, NULL);
    if (handshake->phase == HANDSHAKE_GREET) {
        struct greeting greeting = {.nonce = line->token};
        snprintf(greeting.job_uid, sizeof greeting.job_uid, "%s", line->lines->job_uid);
        handshake_greet(handshake, &line->link, &greeting);
    }
    if (handshake->phase == HANDSHAKE_ANSWERED && handshake->answer == ANSWER_TCP)
        line_set_phase(line, LINE_OPEN);
    else if (handshake->phase == HANDSHAKE_ANSWERED || handshake->phase == HANDSHAKE_FAILED ||
             clock_monotonic_ns() >= line->until_ns)
        line_set_phase(line, LINE_CLOSED);
}

/* ---------------------------------------------------------------- being dialled */

struct bulk_line *bulk_line_expect(struct bulk_lines *lines, uint64_t *ret_token)
{
    uint64_t token = 0;
    if (getrandom(&token, sizeof token, 0) != sizeof token)
        token = (uint64_t)clock_monotonic_ns();
    struct bulk_line *line = line_new(lines, token);
    line_enter(line);
    *ret_token = token;
    return line;
}

/* A token is good for one line. */
static bool seat(struct bulk_line *line, struct arrival *arrival)
{
    pthread_mutex_lock(&line->lock);
    bool is_its = line->phase == LINE_WAITING && !line->dropped && line->token == arrival->greeting.nonce;
    if (is_its) {
        notice_cuts(arrival->link.socket);
        arrival_answer(arrival, ANSWER_TCP);
        line->link = arrival->link;
        link_init(&arrival->link);
        line_set_phase(line, LINE_OPEN);
    }
    pthread_mutex_unlock(&line->lock);
    return is_its;
}

void lines_take_arrivals(struct bulk_lines *lines)
{
    const struct generation any = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    struct arrival arrival;
    while (endpoint_take(lines->endpoint, any, &arrival)) {
        bool is_ours = strcmp(arrival.greeting.job_uid, lines->job_uid) == 0, seated = false;
        pthread_mutex_lock(&lines->lock);
        for (struct bulk_line *line = lines->first; line != NULL && is_ours && !seated; line = line->next)
            seated = seat(line, &arrival);
        pthread_mutex_unlock(&lines->lock);
        if (!seated)
            arrival_answer(&arrival, ANSWER_REFUSED);
        link_release(&arrival.link); /* unless it has a seat now */
    }
}
