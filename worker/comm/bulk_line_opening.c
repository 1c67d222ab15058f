/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/comm/bulk_line_parts.h"
#include "worker/comm/crew_certificates.h"
#include "worker/comm/socket_address.h"

#define HANDSHAKE_NS (2000 * 1000000LL)
/* Bytes that nobody acknowledges for so long, and a peer that does not answer when nothing is under way: the way is cut. */
#define CUT_MS 30000
#define PROBE_S 10

static void set_option(int socket, int level, int name, int value)
{
    setsockopt(socket, level, name, &value, sizeof value);
}

static void set_socket_options(int socket)
{
    set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, CUT_MS);
    set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, PROBE_S);
    set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, PROBE_S);
}

/* With certificates, nothing is said before both sides have shown theirs. 1: now it can be; 0: not yet; -1: never. */
static int secure(struct link *link, bool answers)
{
    if (link->tls == NULL && crew_certificates_are_set() &&
        tls_session_new(link->socket, answers, &link->tls, NULL) < 0)
        return -1;
    return link->tls != NULL ? tls_session_handshake(link->tls, NULL) : 1;
}

/* ---------------------------------------------------------------- dialling */

static bool begin_dialling(struct bulk_line *line, const char *address, uint16_t port)
{
    union socket_address where;
    if (socket_address_parse(address, port, &where, NULL) < 0)
        return false;
    line->link.socket = socket(where.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (line->link.socket < 0)
        return false;
    set_socket_options(line->link.socket);
    line->until_ns = clock_monotonic_ns() + HANDSHAKE_NS;
    return connect(line->link.socket, &where.any, socket_address_size(&where)) == 0 || errno == EINPROGRESS;
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
    unsigned char bytes[GREETING_BYTES];
    snprintf(greeting.job_uid, sizeof greeting.job_uid, "%s", line->lines->job_uid);
    greeting_encode(&greeting, bytes);
    bool sent = link_write(&line->link, &(struct iovec){bytes, sizeof bytes}, 1) == sizeof bytes;
    line_set_phase(line, sent ? LINE_GREETED : LINE_CLOSED);
}

static void finish_securing(struct bulk_line *line)
{
    int secured = secure(&line->link, false);
    if (secured > 0)
        greet(line);
    else if (secured < 0)
        line_set_phase(line, LINE_CLOSED);
}

static void finish_connecting(struct bulk_line *line)
{
    int failure = 0;
    socklen_t size = sizeof failure;
    if (getsockopt(line->link.socket, SOL_SOCKET, SO_ERROR, &failure, &size) < 0 || failure != 0) {
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

static void answer_guest(struct link *link, enum greeting_answer answer)
{
    unsigned char bytes[GREETING_ANSWER_BYTES];
    greeting_answer_encode(answer, bytes);
    (void)link_write(link, &(struct iovec){bytes, sizeof bytes}, 1);
}

/* A token is good for one line. */
static bool seat(struct bulk_line *line, struct line_guest *guest, uint64_t token)
{
    pthread_mutex_lock(&line->lock);
    bool is_its = line->phase == LINE_WAITING && !line->dropped && line->token == token;
    if (is_its) {
        answer_guest(&guest->link, ANSWER_TCP);
        line->link = guest->link;
        link_init(&guest->link);
        line_set_phase(line, LINE_OPEN);
    }
    pthread_mutex_unlock(&line->lock);
    return is_its;
}

static void hear_greeting(struct bulk_lines *lines, struct line_guest *guest)
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
        answer_guest(&guest->link, ANSWER_REFUSED);
}

/* True when the guest has been dealt with, one way or the other. */
static bool advance_guest(struct bulk_lines *lines, struct line_guest *guest)
{
    int secured = guest->secured ? 1 : secure(&guest->link, true);
    guest->secured = secured > 0;
    if (secured <= 0)
        return secured < 0;
    guest->received += link_read(&guest->link, guest->bytes + guest->received, sizeof guest->bytes - guest->received);
    if (guest->received < sizeof guest->bytes)
        return guest->link.closed;
    hear_greeting(lines, guest);
    return true;
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
        struct line_guest *guest = &lines->guests[i];
        if (!advance_guest(lines, guest) && now < guest->until_ns)
            i++;
        else
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
        set_socket_options(socket);
        lines->guests[lines->guest_count++] =
            (struct line_guest){.link = {.socket = socket}, .until_ns = now + HANDSHAKE_NS};
    }
}
