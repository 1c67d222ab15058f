/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "worker/comm/bulk_line_parts.h"

/* Bytes that nobody acknowledges for so long, and a peer that does not answer when nothing is under way: the way is cut. */
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

static bool begin_dialling(struct bulk_line *line, const char *address, uint16_t port)
{
    line->until_ns = clock_monotonic_ns() + HANDSHAKE_NS;
    if (!handshake_dial(&line->link, address, port))
        return false;
    notice_cuts(line->link.socket);
    return true;
}

struct bulk_line *bulk_line_dial(struct bulk_lines *lines, const char *address, uint16_t port, uint64_t token)
{
    struct bulk_line *line = line_new(lines, token);
    line->phase = begin_dialling(line, address, port) ? LINE_CONNECTING : LINE_CLOSED;
    line_enter(line);
    return line;
}

static void greet(struct bulk_line *line)
{
    struct greeting greeting = {.nonce = line->token};
    snprintf(greeting.job_uid, sizeof greeting.job_uid, "%s", line->lines->job_uid);
    line_set_phase(line, handshake_greet(&line->link, &greeting) ? LINE_GREETED : LINE_CLOSED);
}

static void finish_securing(struct bulk_line *line)
{
    int secured = handshake_secure(&line->link, false, NULL);
    if (secured > 0)
        greet(line);
    else if (secured < 0)
        line_set_phase(line, LINE_CLOSED);
}

static void finish_connecting(struct bulk_line *line)
{
    if (!handshake_is_connected(&line->link)) {
        line_set_phase(line, LINE_CLOSED);
        return;
    }
    line_set_phase(line, LINE_SECURING);
    finish_securing(line);
}

static void hear_answer(struct bulk_line *line)
{
    enum greeting_answer answer;
    line->answered += link_read(&line->link, line->answer + line->answered, sizeof line->answer - line->answered);
    if (line->answered == sizeof line->answer)
        line_set_phase(line, greeting_answer_decode(line->answer, &answer, NULL) == 0 && answer == ANSWER_TCP
                                 ? LINE_OPEN
                                 : LINE_CLOSED);
    else if (line->link.closed)
        line_set_phase(line, LINE_CLOSED);
}

bool line_is_being_dialled(const struct bulk_line *line)
{
    return line->phase == LINE_CONNECTING || line->phase == LINE_SECURING || line->phase == LINE_GREETED;
}

void line_open_further(struct bulk_line *line, bool ready)
{
    if (ready && line->phase == LINE_CONNECTING)
        finish_connecting(line);
    else if (ready && line->phase == LINE_SECURING)
        finish_securing(line);
    else if (ready && line->phase == LINE_GREETED)
        hear_answer(line);
    if (line_is_being_dialled(line) && clock_monotonic_ns() >= line->until_ns)
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
static bool seat(struct bulk_line *line, struct guest *guest, uint64_t token)
{
    pthread_mutex_lock(&line->lock);
    bool is_its = line->phase == LINE_WAITING && !line->dropped && line->token == token;
    if (is_its) {
        handshake_answer(&guest->link, ANSWER_TCP);
        line->link = guest->link;
        link_init(&guest->link);
        line_set_phase(line, LINE_OPEN);
    }
    pthread_mutex_unlock(&line->lock);
    return is_its;
}

static void hear_greeting(struct bulk_lines *lines, struct guest *guest)
{
    struct greeting greeting;
    bool seated = false;
    if (greeting_decode(guest->bytes, &greeting, NULL) < 0)
        return;
    bool is_ours = strcmp(greeting.job_uid, lines->job_uid) == 0;
    pthread_mutex_lock(&lines->lock);
    for (struct bulk_line *line = lines->first; line != NULL && is_ours && !seated; line = line->next)
        seated = seat(line, guest, greeting.nonce);
    pthread_mutex_unlock(&lines->lock);
    if (!seated)
        handshake_answer(&guest->link, ANSWER_REFUSED);
}

/* The others keep their order, which is that of their coming. */
static void remove_guest(struct bulk_lines *lines, unsigned number)
{
    link_release(&lines->guests[number].link); /* unless it has a seat now */
    lines->guest_count--;
    memmove(&lines->guests[number], &lines->guests[number + 1],
            (lines->guest_count - number) * sizeof lines->guests[0]);
}

void lines_advance_guests(struct bulk_lines *lines)
{
    int64_t now = clock_monotonic_ns();
    for (unsigned i = 0; i < lines->guest_count;) {
        struct guest *guest = &lines->guests[i];
        enum guest_state state = guest_hear(guest, NULL);
        if (state == GUEST_EXPECTED && now < guest->until_ns) {
            i++;
            continue;
        }
        if (state == GUEST_GREETED)
            hear_greeting(lines, guest);
        remove_guest(lines, i);
    }
}

/* Strangers who sit there in silence keep nobody out: the oldest goes, before all one that has shown no certificate where that is
 * asked for. */
static void make_room(struct bulk_lines *lines)
{
    unsigned number = 0;
    if (lines->guest_count < BULK_GUESTS_MAX)
        return;
    while (number < lines->guest_count && (lines->guests[number].link.tls == NULL || lines->guests[number].secured))
        number++;
    remove_guest(lines, number < lines->guest_count ? number : 0);
}

void lines_accept(struct bulk_lines *lines)
{
    int64_t now = clock_monotonic_ns();
    for (unsigned taken = 0; taken < BULK_GUESTS_MAX && now >= lines->door_shut_until_ns; taken++) {
        int socket = accept4(endpoint_descriptor(lines->endpoint), NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (socket < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                lines->door_shut_until_ns = now + LINES_LOOK_MS * 1000000LL;
            return;
        }
        make_room(lines);
        notice_cuts(socket);
        lines->guests[lines->guest_count++] = guest_of(socket, now);
    }
}
