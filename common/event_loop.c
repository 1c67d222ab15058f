/* SPDX-License-Identifier: Apache-2.0 */
#include "common/event_loop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/event_loop_transfer.h"
#include "common/memory.h"

#define READY_MAX 64
#define SIGNALS_MAX 65
#define IDLE_CONNECTIONS_MAX 16
#define NS_PER_MS 1000000

struct event_timer {
    struct event_loop *loop;
    int64_t due_ns;
    uint64_t sequence; /* ties fire in the order of their start */
    size_t place;      /* in the heap */
    event_due *due;
    void *context;
};

struct watch {
    event_ready *ready; /* NULL: free */
    void *context;
    enum event_interest interest;
    uint32_t generation; /* tells a reused descriptor from the one an old event was about */
};

struct signal_handler {
    event_signal *caught;
    void *context;
};

struct event_loop {
    CURLM *multi;
    struct event_transfer *transfers;
    long transfers_count;
    struct event_transfer *noted;

    /* All watched descriptors sit behind one epoll descriptor: libcurl's own wait would not report a hang-up. */
    int epoll;
    struct watch *watches; /* by descriptor */
    size_t watches_capacity;
    uint32_t generation;

    struct event_timer **timers; /* binary heap, earliest first */
    size_t timers_count, timers_capacity;
    uint64_t sequence;

    int signals; /* signalfd, -1: none yet */
    sigset_t signal_set;
    struct signal_handler handlers[SIGNALS_MAX];

    event_guard *guard;
    void *guard_context;
    bool stopped;
};

/* ---------------------------------------------------------------- life cycle */

/* A peer that hangs up is an error of one write, not the end of the program. */
static void ignore_broken_pipes(void)
{
    struct sigaction present;
    if (sigaction(SIGPIPE, NULL, &present) == 0 && present.sa_handler == SIG_DFL)
        signal(SIGPIPE, SIG_IGN);
}

int event_loop_new(struct event_loop **ret_loop, struct error *error)
{
    ignore_broken_pipes();
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return error_set(error, ERROR_SYSTEM, "libcurl cannot be initialised");
    struct event_loop *loop = memory_allocate(1, sizeof *loop);
    loop->signals = -1;
    sigemptyset(&loop->signal_set);
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->multi = curl_multi_init();
    if (loop->epoll < 0 || loop->multi == NULL) {
        error_set_errno(error, "creating an event loop");
        event_loop_free(loop);
        return -1;
    }
    *ret_loop = loop;
    return 0;
}

void event_loop_free(struct event_loop *loop)
{
    if (loop == NULL)
        return;
    while (loop->transfers)
        loop->transfers->cancel(loop->transfers);
    for (size_t i = 0; i < loop->timers_count; i++)
        free(loop->timers[i]);
    free(loop->timers);
    free(loop->watches);
    if (loop->signals >= 0)
        close(loop->signals);
    if (loop->epoll >= 0)
        close(loop->epoll);
    if (loop->multi)
        curl_multi_cleanup(loop->multi);
    curl_global_cleanup();
    free(loop);
}

/* ---------------------------------------------------------------- timers */

static bool timer_is_earlier(const struct event_timer *left, const struct event_timer *right)
{
    return left->due_ns != right->due_ns ? left->due_ns < right->due_ns : left->sequence < right->sequence;
}

static void timer_place(struct event_loop *loop, size_t place, struct event_timer *timer)
{
    loop->timers[place] = timer;
    timer->place = place;
}

static void timer_rise(struct event_loop *loop, struct event_timer *timer)
{
    size_t place = timer->place;
    while (place > 0 && timer_is_earlier(timer, loop->timers[(place - 1) / 2])) {
        timer_place(loop, place, loop->timers[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    timer_place(loop, place, timer);
}

static void timer_sink(struct event_loop *loop, struct event_timer *timer)
{
    size_t place = timer->place;
    for (;;) {
        size_t child = 2 * place + 1;
        if (child >= loop->timers_count)
            break;
        if (child + 1 < loop->timers_count && timer_is_earlier(loop->timers[child + 1], loop->timers[child]))
            child++;
        if (!timer_is_earlier(loop->timers[child], timer))
            break;
        timer_place(loop, place, loop->timers[child]);
        place = child;
    }
    timer_place(loop, place, timer);
}

static void timer_remove(struct event_timer *timer)
{
    struct event_loop *loop = timer->loop;
    struct event_timer *last = loop->timers[--loop->timers_count];
    if (last == timer)
        return;
    timer_place(loop, timer->place, last);
    timer_rise(loop, last);
    timer_sink(loop, last);
}

struct event_timer *event_timer_start(struct event_loop *loop, int64_t delay_ms, event_due *due, void *context)
{
    if (loop->timers_count == loop->timers_capacity) {
        loop->timers_capacity = loop->timers_capacity ? 2 * loop->timers_capacity : 16;
        loop->timers = memory_resize(loop->timers, loop->timers_capacity, sizeof *loop->timers);
    }
    struct event_timer *timer = memory_allocate(1, sizeof *timer);
    *timer = (struct event_timer){
        .loop = loop,
        .due_ns = clock_monotonic_ns() + (delay_ms > 0 ? delay_ms * NS_PER_MS : 0),
        .sequence = loop->sequence++,
        .place = loop->timers_count++,
        .due = due,
        .context = context,
    };
    timer_rise(loop, timer);
    return timer;
}

void event_timer_cancel(struct event_timer *timer)
{
    if (timer == NULL)
        return;
    timer_remove(timer);
    free(timer);
}

/* Timers that are started during the turn wait for the next one, so that a timer which restarts itself at once does not keep others from
 * running. */
static void timers_fire(struct event_loop *loop)
{
    uint64_t started_before = loop->sequence;
    int64_t now = clock_monotonic_ns();
    while (loop->timers_count > 0) {
        struct event_timer *timer = loop->timers[0];
        if (timer->due_ns > now || timer->sequence >= started_before)
            break;
        event_due *due = timer->due;
        void *context = timer->context;
        event_timer_cancel(timer);
        due(context);
    }
}

/* Rounded up, so that a wait never ends just before the timer is due. */
static int timers_wait_ms(const struct event_loop *loop, int timeout_ms)
{
    if (loop->timers_count == 0)
        return timeout_ms;
    int64_t left_ns = loop->timers[0]->due_ns - clock_monotonic_ns();
    int64_t left_ms = left_ns <= 0 ? 0 : (left_ns + NS_PER_MS - 1) / NS_PER_MS;
    return timeout_ms >= 0 && timeout_ms < left_ms ? timeout_ms : (int)(left_ms < INT32_MAX ? left_ms : INT32_MAX);
}

/* ---------------------------------------------------------------- descriptors */

static void watches_reserve(struct event_loop *loop, int descriptor)
{
    size_t needed = (size_t)descriptor + 1;
    if (needed <= loop->watches_capacity)
        return;
    size_t capacity = loop->watches_capacity ? loop->watches_capacity : 32;
    while (capacity < needed)
        capacity *= 2;
    loop->watches = memory_resize(loop->watches, capacity, sizeof *loop->watches);
    memset(loop->watches + loop->watches_capacity, 0, (capacity - loop->watches_capacity) * sizeof *loop->watches);
    loop->watches_capacity = capacity;
}

static uint32_t epoll_events(enum event_interest interest)
{
    return ((interest & EVENT_READ) ? EPOLLIN : 0) | ((interest & EVENT_WRITE) ? EPOLLOUT : 0);
}

int event_loop_watch(struct event_loop *loop, int descriptor, enum event_interest interest, event_ready *ready,
                     void *context, struct error *error)
{
    watches_reserve(loop, descriptor);
    struct watch *watch = &loop->watches[descriptor];
    uint32_t generation = ++loop->generation;
    struct epoll_event event = {
        .events = epoll_events(interest),
        .data.u64 = (uint64_t)generation << 32 | (uint32_t)descriptor,
    };
    int operation = watch->ready ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (epoll_ctl(loop->epoll, operation, descriptor, &event) < 0)
        return error_set_errno(error, "watching descriptor %d", descriptor);
    *watch = (struct watch){ready, context, interest, generation};
    return 0;
}

void event_loop_unwatch(struct event_loop *loop, int descriptor)
{
    if (descriptor < 0 || (size_t)descriptor >= loop->watches_capacity || loop->watches[descriptor].ready == NULL)
        return;
    loop->watches[descriptor] = (struct watch){0};
    /* Fails only when the descriptor was closed first, which took it out already. */
    epoll_ctl(loop->epoll, EPOLL_CTL_DEL, descriptor, NULL);
}

static enum event_interest interest_met(const struct watch *watch, uint32_t events)
{
    if (events & (EPOLLERR | EPOLLHUP))
        return watch->interest;
    return (enum event_interest)(((events & EPOLLIN) ? EVENT_READ : 0) | ((events & EPOLLOUT) ? EVENT_WRITE : 0));
}

static void watches_call(struct event_loop *loop)
{
    struct epoll_event ready[READY_MAX];
    int count = epoll_wait(loop->epoll, ready, READY_MAX, 0);
    for (int i = 0; i < count; i++) {
        size_t descriptor = ready[i].data.u64 & UINT32_MAX;
        struct watch watch = loop->watches[descriptor];
        if (watch.ready && watch.generation == ready[i].data.u64 >> 32)
            watch.ready(watch.context, (int)descriptor, interest_met(&watch, ready[i].events));
    }
}

/* ---------------------------------------------------------------- signals */

static void signals_read(void *context, int descriptor, enum event_interest what)
{
    (void)what;
    struct event_loop *loop = context;
    struct signalfd_siginfo caught;
    while (read(descriptor, &caught, sizeof caught) == (ssize_t)sizeof caught) {
        struct signal_handler handler = loop->handlers[caught.ssi_signo];
        handler.caught(handler.context, (int)caught.ssi_signo);
    }
}

int event_loop_on_signal(struct event_loop *loop, int signal_number, event_signal *caught, void *context,
                         struct error *error)
{
    if (signal_number <= 0 || signal_number >= SIGNALS_MAX)
        return error_set(error, ERROR_INVALID, "%d is not a signal", signal_number);
    loop->handlers[signal_number] = (struct signal_handler){caught, context};
    sigaddset(&loop->signal_set, signal_number);
    if (pthread_sigmask(SIG_BLOCK, &loop->signal_set, NULL) != 0)
        return error_set_errno(error, "blocking signal %d", signal_number);
    int descriptor = signalfd(loop->signals, &loop->signal_set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor < 0)
        return error_set_errno(error, "waiting for signal %d", signal_number);
    if (loop->signals >= 0)
        return 0;
    loop->signals = descriptor;
    return event_loop_watch(loop, descriptor, EVENT_READ, signals_read, loop, error);
}

int event_loop_signals(const struct event_loop *loop)
{
    return loop->signals;
}

/* ---------------------------------------------------------------- transfers */

/* libcurl's limit of connections includes those in use. If it were only IDLE_CONNECTIONS_MAX, many watches would use it up, the
 * connection of every answer would be closed, and each request would need a handshake of its own. */
static void transfers_counted(struct event_loop *loop, long change)
{
    loop->transfers_count += change;
    curl_multi_setopt(loop->multi, CURLMOPT_MAXCONNECTS, loop->transfers_count + IDLE_CONNECTIONS_MAX);
}

CURLMcode event_loop_add_transfer(struct event_loop *loop, struct event_transfer *transfer)
{
    curl_easy_setopt(transfer->easy, CURLOPT_PRIVATE, transfer);
    CURLMcode code = curl_multi_add_handle(loop->multi, transfer->easy);
    if (code != CURLM_OK)
        return code;
    transfer->previous = NULL;
    transfer->next = loop->transfers;
    if (loop->transfers)
        loop->transfers->previous = transfer;
    loop->transfers = transfer;
    transfers_counted(loop, 1);
    return CURLM_OK;
}

static void noted_remove(struct event_loop *loop, struct event_transfer *transfer)
{
    if (!transfer->noted)
        return;
    struct event_transfer **link = &loop->noted;
    while (*link != transfer)
        link = &(*link)->next_noted;
    *link = transfer->next_noted;
    transfer->noted = false;
}

void event_loop_remove_transfer(struct event_loop *loop, struct event_transfer *transfer)
{
    noted_remove(loop, transfer);
    curl_multi_remove_handle(loop->multi, transfer->easy);
    if (transfer->previous)
        transfer->previous->next = transfer->next;
    else
        loop->transfers = transfer->next;
    if (transfer->next)
        transfer->next->previous = transfer->previous;
    transfers_counted(loop, -1);
}

void event_loop_note_transfer(struct event_loop *loop, struct event_transfer *transfer)
{
    if (transfer->noted)
        return;
    transfer->noted = true;
    transfer->next_noted = loop->noted;
    loop->noted = transfer;
}

static void transfers_deliver(struct event_loop *loop)
{
    while (loop->noted) {
        struct event_transfer *transfer = loop->noted;
        loop->noted = transfer->next_noted;
        transfer->noted = false;
        transfer->deliver(transfer);
    }
}

static void transfers_finish(struct event_loop *loop)
{
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(loop->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode result = message->data.result;
        struct event_transfer *transfer = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        transfer->finish(transfer, result);
    }
}

/* ---------------------------------------------------------------- running */

int event_loop_turn(struct event_loop *loop, int timeout_ms, struct error *error)
{
    struct curl_waitfd watched = {.fd = loop->epoll, .events = CURL_WAIT_POLLIN};
    int wait_ms = timers_wait_ms(loop, timeout_ms);
    /* curl_multi_poll knows no "for ever". */
    CURLMcode code = curl_multi_poll(loop->multi, &watched, 1, wait_ms < 0 ? INT32_MAX : wait_ms, NULL);
    int running;
    if (loop->guard)
        loop->guard(loop->guard_context);
    if (code == CURLM_OK)
        code = curl_multi_perform(loop->multi, &running);
    if (code != CURLM_OK)
        return error_set(error, ERROR_INTERNAL, "event loop: %s", curl_multi_strerror(code));
    transfers_deliver(loop);
    transfers_finish(loop);
    timers_fire(loop);
    if (watched.revents)
        watches_call(loop);
    return 0;
}

int event_loop_run(struct event_loop *loop, struct error *error)
{
    loop->stopped = false;
    while (!loop->stopped) {
        if (event_loop_turn(loop, -1, error) < 0)
            return -1;
    }
    return 0;
}

void event_loop_stop(struct event_loop *loop)
{
    loop->stopped = true;
}

void event_loop_set_guard(struct event_loop *loop, event_guard *guard, void *context)
{
    loop->guard = guard;
    loop->guard_context = context;
}
