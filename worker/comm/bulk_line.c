/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/memory.h"
#include "worker/comm/bulk_line_parts.h"

/* A line's turn, before the others have theirs. */
#define TURN_BYTES ((size_t)4 << 20)
/* A receiver sleeps until this many bytes, or all missing ones, have arrived. */
#define READ_MIN ((size_t)1 << 20)

static void ring(struct bulk_lines *lines)
{
    const uint64_t one = 1;
    (void)!write(lines->bell, &one, sizeof one);
}

static void tell_owner(const struct bulk_line *line)
{
    const struct bulk_lines_options *options = &line->lines->options;
    if (!atomic_load(&line->dropped))
        options->wake(options->context);
}

void line_set_phase(struct bulk_line *line, enum line_phase phase)
{
    atomic_store(&line->phase, phase);
    if (phase == LINE_OPEN || phase == LINE_CLOSED)
        tell_owner(line);
}

/* ---------------------------------------------------------------- loads; with the line's lock held */

static void end_load(struct bulk_line *line)
{
    line->number++;
    atomic_store(&line->load, LOAD_NONE);
    tell_owner(line);
}

static bool pass_head(struct bulk_line *line, bool sends)
{
    unsigned char *at = line->head + line->head_done;
    size_t left = sizeof line->head - line->head_done;
    line->head_done += sends ? link_write(&line->link, &(struct iovec){at, left}, 1) : link_read(&line->link, at, left);
    return line->head_done == sizeof line->head;
}

/* Once all of it is there. */
static bool head_holds(const struct bulk_line *line)
{
    struct load_head head;
    return load_head_decode(line->head, &head, NULL) == 0 && head.number == line->number && head.length == line->length;
}

static size_t send_some(struct bulk_line *line, size_t most)
{
    if (line->give != NULL)
        return line->give(line->context, line->done, &line->link);
    return link_write(&line->link, &(struct iovec){line->bytes + line->done, most}, 1);
}

/* Fewer and larger reads; a session reads records. */
static void sleep_until_enough(const struct bulk_line *line)
{
    size_t left = sizeof line->head - line->head_done + line->length - line->done;
    int enough = (int)(left < READ_MIN ? left : READ_MIN);
    if (line->link.tls == NULL)
        setsockopt(line->link.socket, SOL_SOCKET, SO_RCVLOWAT, &enough, sizeof enough);
}

static void move_load(struct bulk_line *line)
{
    bool sends = line->load == LOAD_OUT;
    size_t turn = 0;
    bool had_head = line->head_done == sizeof line->head, has_head = had_head || pass_head(line, sends);
    if (has_head && !had_head && !sends && !head_holds(line)) {
        line->link.closed = true;
        return;
    }
    for (size_t moved = has_head; moved > 0 && line->done < line->length && turn < TURN_BYTES;) {
        if (atomic_load(&line->dropped))
            return;
        size_t left = line->length - line->done, most = left < TURN_BYTES ? left : TURN_BYTES;
        moved = sends ? send_some(line, most) : link_read(&line->link, line->bytes + line->done, most);
        line->waits = moved == BULK_LINE_LATER;
        moved = line->waits ? 0 : moved;
        line->done += moved;
        turn += moved;
    }
    atomic_fetch_add(&line->moved, turn);
    if (line->done == line->length)
        end_load(line);
    else if (!sends)
        sleep_until_enough(line);
}

static void begin_load(struct bulk_line *line, enum load_kind kind, unsigned char *bytes, size_t length,
                       bulk_line_give *give, void *context)
{
    pthread_mutex_lock(&line->lock);
    line->link.closed |= line->phase != LINE_OPEN || line->load != LOAD_NONE || length == 0;
    line->is_new = true;
    line->waits = false;
    line->head_done = line->done = 0;
    line->length = length;
    line->bytes = bytes;
    line->give = give;
    line->context = context;
    load_head_encode(&(struct load_head){.number = line->number, .length = length}, line->head);
    atomic_store(&line->load, kind);
    pthread_mutex_unlock(&line->lock);
    ring(line->lines);
}

void bulk_line_send(struct bulk_line *line, const void *bytes, size_t length)
{
    begin_load(line, LOAD_OUT, (unsigned char *)bytes, length, NULL, NULL);
}

void bulk_line_receive(struct bulk_line *line, void *bytes, size_t length)
{
    begin_load(line, LOAD_IN, bytes, length, NULL, NULL);
}

void bulk_line_send_from(struct bulk_line *line, size_t length, bulk_line_give *give, void *context)
{
    begin_load(line, LOAD_OUT, NULL, length, give, context);
}

void bulk_line_poke(struct bulk_line *line)
{
    atomic_store(&line->poked, true);
    ring(line->lines);
}

/* ---------------------------------------------------------------- lines */

struct bulk_line *line_new(struct bulk_lines *lines, uint64_t token)
{
    struct bulk_line *line = memory_allocate(1, sizeof *line);
    line->lines = lines;
    line->token = token;
    link_init(&line->link);
    pthread_mutex_init(&line->lock, NULL);
    return line;
}

void line_enter(struct bulk_line *line)
{
    struct bulk_lines *lines = line->lines;
    pthread_mutex_lock(&lines->lock);
    line->next = lines->first;
    lines->first = line;
    pthread_mutex_unlock(&lines->lock);
    ring(lines);
}

/* The thread may be at it. */
void bulk_line_free(struct bulk_line *line)
{
    if (line == NULL)
        return;
    struct bulk_lines *lines = line->lines;
    atomic_store(&line->dropped, true);
    pthread_mutex_lock(&line->lock);
    atomic_store(&line->left, true);
    pthread_mutex_unlock(&line->lock);
    ring(lines);
}

enum bulk_line_state bulk_line_state(struct bulk_line *line)
{
    int phase = atomic_load(&line->phase);
    return phase == LINE_OPEN ? BULK_LINE_OPEN : phase == LINE_CLOSED ? BULK_LINE_CLOSED : BULK_LINE_OPENING;
}

bool bulk_line_is_ready(struct bulk_line *line)
{
    pthread_mutex_lock(&line->lock);
    bool ready = line->phase == LINE_OPEN && line->load == LOAD_NONE && !line->link.closed;
    pthread_mutex_unlock(&line->lock);
    return ready;
}

bool bulk_line_is_busy(struct bulk_line *line)
{
    return atomic_load(&line->load) != LOAD_NONE;
}

uint64_t bulk_line_moved(struct bulk_line *line)
{
    return atomic_load(&line->moved);
}

static void release(struct bulk_line *line)
{
    link_release(&line->link);
    pthread_mutex_destroy(&line->lock);
    free(line);
}

/* ---------------------------------------------------------------- the thread */

/* Returns whether the TLS session has bytes that were read from the socket but not by the line; poll(2) does not report these. */
static bool has_input(struct bulk_line *line)
{
    struct pollfd poll;
    return line->load == LOAD_IN && !link_prepare_poll(&line->link, true, false, &poll);
}

/* With the line's lock held. */
static void advance(struct bulk_line *line, short happened)
{
    bool is_new = atomic_exchange(&line->poked, false) || line->is_new;
    line->is_new = false;
    if (line->phase == LINE_DIALLING) {
        line_open_further(line, happened != 0);
        return;
    }
    if (line->phase != LINE_OPEN)
        return;
    bool is_left = (happened & (POLLHUP | POLLERR | POLLRDHUP)) != 0;
    if (line->load != LOAD_IN && is_left) /* what it sent before may be of use to a reader alone */
        line->link.closed = true;
    if (!line->link.closed && line->load != LOAD_NONE && (happened != 0 || is_new || has_input(line)))
        move_load(line);
    if (line->link.closed)
        line_set_phase(line, LINE_CLOSED);
}

/* What the thread polls: the bell, arrivals, lines. */
struct watch {
    struct pollfd *polls;
    struct bulk_line **lines; /* of the last `line_count` polls */
    unsigned count, line_count, capacity;
    bool at_once; /* something can be done without waiting */
};

static struct pollfd *watch_add(struct watch *watch)
{
    if (watch->count == watch->capacity) {
        watch->capacity = 2 * watch->capacity + 8;
        watch->polls = memory_resize(watch->polls, watch->capacity, sizeof *watch->polls);
        watch->lines = memory_resize(watch->lines, watch->capacity, sizeof(struct bulk_line *));
    }
    return &watch->polls[watch->count++];
}

static void watch_line(struct watch *watch, struct bulk_line *line)
{
    struct pollfd *poll = watch_add(watch);
    pthread_mutex_lock(&line->lock);
    bool opens = line->phase == LINE_DIALLING, connects = opens && line->handshake.phase == HANDSHAKE_CONNECTING;
    bool is_open = line->phase == LINE_OPEN;
    *poll = (struct pollfd){.fd = -1};
    if (opens || is_open) {
        bool ready = !link_prepare_poll(&line->link, line->load == LOAD_IN || (opens && !connects),
                                        (line->load == LOAD_OUT && !line->waits) || connects, poll);
        poll->events |= POLLRDHUP;
        watch->at_once |= line->is_new || atomic_load(&line->poked) || ready || line->link.closed;
    }
    pthread_mutex_unlock(&line->lock);
    watch->lines[watch->line_count++] = line;
}

static void watch_all(struct watch *watch, struct bulk_lines *lines)
{
    watch->count = watch->line_count = 0;
    watch->at_once = false;
    *watch_add(watch) = (struct pollfd){.fd = lines->bell, .events = POLLIN};
    *watch_add(watch) =
        (struct pollfd){.fd = lines->endpoint ? endpoint_descriptor(lines->endpoint) : -1, .events = POLLIN};
    pthread_mutex_lock(&lines->lock);
    for (struct bulk_line *line = lines->first; line != NULL; line = line->next)
        watch_line(watch, line);
    pthread_mutex_unlock(&lines->lock);
}

static void advance_watched(const struct watch *watch)
{
    const struct pollfd *polls = watch->polls + (watch->count - watch->line_count);
    for (unsigned i = 0; i < watch->line_count; i++) {
        struct bulk_line *line = watch->lines[i];
        pthread_mutex_lock(&line->lock);
        if (!atomic_load(&line->dropped))
            advance(line, polls[i].revents);
        pthread_mutex_unlock(&line->lock);
    }
}

static void sweep(struct bulk_lines *lines)
{
    pthread_mutex_lock(&lines->lock);
    for (struct bulk_line **place = &lines->first; *place != NULL;) {
        struct bulk_line *line = *place;
        if (!atomic_load(&line->left)) {
            place = &line->next;
            continue;
        }
        *place = line->next;
        pthread_mutex_lock(&line->lock); /* its owner may be about to leave it */
        pthread_mutex_unlock(&line->lock);
        release(line);
    }
    pthread_mutex_unlock(&lines->lock);
}

static bool is_stopping(struct bulk_lines *lines)
{
    pthread_mutex_lock(&lines->lock);
    bool stopping = lines->stopping;
    pthread_mutex_unlock(&lines->lock);
    return stopping;
}

static void *run(void *context)
{
    struct bulk_lines *lines = context;
    struct watch watch = {0};
    while (!is_stopping(lines)) {
        uint64_t rings;
        watch_all(&watch, lines);
        if (poll(watch.polls, watch.count, watch.at_once ? 0 : LINES_LOOK_MS) < 0)
            continue;
        if (watch.polls[0].revents != 0)
            (void)!read(lines->bell, &rings, sizeof rings);
        advance_watched(&watch);
        if (lines->endpoint != NULL && watch.polls[1].revents != 0)
            lines_take_arrivals(lines);
        sweep(lines);
    }
    free(watch.polls);
    free(watch.lines);
    return NULL;
}

int bulk_lines_start(const struct bulk_lines_options *options, struct bulk_lines **ret_lines, struct error *error)
{
    struct bulk_lines *lines = memory_allocate(1, sizeof *lines);
    lines->options = *options;
    lines->job_uid = memory_copy_string(options->job_uid);
    pthread_mutex_init(&lines->lock, NULL);
    lines->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int result = lines->bell < 0 ? error_set_errno(error, "make an event for data connections") : 0;
    if (result == 0 && options->listens)
        result = endpoint_open(options->listen_address, options->port, &lines->endpoint, error);
    if (result == 0 && options->listens)
        result = endpoint_start(lines->endpoint, error);
    if (result == 0) {
        errno = pthread_create(&lines->thread, NULL, run, lines);
        lines->has_thread = errno == 0;
        result = errno ? error_set_errno(error, "start the thread for data connections") : 0;
    }
    if (result < 0)
        bulk_lines_free(lines);
    else
        *ret_lines = lines;
    return result;
}

uint16_t bulk_lines_port(const struct bulk_lines *lines)
{
    return lines->endpoint ? endpoint_port(lines->endpoint) : 0;
}

void bulk_lines_free(struct bulk_lines *lines)
{
    if (lines == NULL)
        return;
    pthread_mutex_lock(&lines->lock);
    lines->stopping = true;
    pthread_mutex_unlock(&lines->lock);
    ring(lines);
    if (lines->has_thread)
        pthread_join(lines->thread, NULL);
    while (lines->first != NULL) {
        struct bulk_line *line = lines->first;
        lines->first = line->next;
        release(line);
    }
    endpoint_free(lines->endpoint);
    if (lines->bell >= 0)
        close(lines->bell);
    pthread_mutex_destroy(&lines->lock);
    free(lines->job_uid);
    free(lines);
}
