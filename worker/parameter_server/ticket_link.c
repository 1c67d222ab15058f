/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/ticket_link.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/lock.h"
#include "common/memory.h"
#include "worker/parameter_server/bulk.h"
#include "worker/parameter_server/waiting.h"

#define REDIAL_MS 100
#define LEAVE_MS 1000
#define BEAT_MS 500
#define DEATH_MS 5000
#define LOST_MS_DEFAULT 600000
/* One is computed while the next is on its way. */
#define AHEAD 2
#define NO_TICKET (-1)

struct ticket_link {
    struct ticket_link_options options;
    char *job_uid;
    uint64_t nonce;

    /* The rpc's thread only. */
    int64_t next_dial_ms, next_beat_ms, heard_ms;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct rpc_stream *stream;
    bool welcome;
    struct ticket_grant terms; /* of the last welcome or restart */
    int64_t clock;             /* tickets finished, from what a chief has begun with (ticket_scheduler.h) */
    uint32_t clock_lineage;    /* in which `clock` counts; 0: none yet */
    int64_t joined_clock;      /* as the chief was told when we joined */
    int64_t granted[AHEAD];
    unsigned granted_count, wanted;
    int64_t computing;
    bool orphaned;              /* no chief knows that this worker has it, nor at which clock it would begin another */
    uint32_t computing_lineage; /* in which it was granted; the terms may have changed since */
    bool over, cancelled, refused, leaving, left;
    bool strange; /* it was refused for its protocol */
    char refusal[PS_TEXT_MAX];
    int64_t unled_since_ms;        /* 0: led */
    int64_t asked_ms;              /* since when the caller waits for a ticket; 0: it does not */
    struct ps_message done[AHEAD]; /* to be sent; there are no more, for each ticket is asked for after a word is out */
    unsigned done_count;
};

/* ---------------------------------------------------------------- what goes out; on the rpc's thread, with the lock held */

static void say(struct ticket_link *link, const struct ps_message *message)
{
    if (link->stream != NULL)
        ps_message_send(link->stream, message);
}

static void say_join(struct ticket_link *link)
{
    struct ps_message message = {.type = PS_JOIN,
                                 .generation = link->options.generation,
                                 .index = link->options.worker,
                                 .nonce = link->nonce,
                                 .ticket = link->computing_lineage == link->clock_lineage ? link->computing : NO_TICKET,
                                 .lineage = link->clock_lineage,
                                 .holds_state = link->clock_lineage != 0,
                                 .clock = link->clock};
    snprintf(message.job_uid, sizeof message.job_uid, "%s", link->job_uid);
    link->joined_clock = link->clock;
    say(link, &message);
}

static void say_what_is_due(struct ticket_link *link)
{
    if (!link->welcome)
        return;
    for (unsigned i = 0; i < link->done_count; i++)
        say(link, &link->done[i]);
    link->done_count = 0;
    if (link->leaving && !link->left) {
        say(link, &(struct ps_message){.type = PS_LEAVE});
        link->left = true;
    }
    while (!link->over && !link->leaving && !link->orphaned &&
           link->wanted + link->granted_count + (link->computing != NO_TICKET) < AHEAD) {
        link->wanted++;
        say(link, &(struct ps_message){.type = PS_WANT, .lineage = link->clock_lineage, .clock = link->clock});
    }
}

/* ---------------------------------------------------------------- what comes in */

/* Shares are computed from them: what cannot be a plan is no welcome. */
static bool are_terms(const struct ps_message *message)
{
    return message->per_step > 0 && message->per_step <= INT32_MAX && message->base_step >= 0 &&
           message->base_epoch >= 0 && message->base_consumed >= 0;
}

static void take_terms(struct ticket_link *link, const struct ps_message *message)
{
    link->terms = (struct ticket_grant){.lineage = message->lineage,
                                        .per_step = message->per_step,
                                        .base_step = message->base_step,
                                        .base_epoch = message->base_epoch,
                                        .base_consumed = message->base_consumed};
    link->granted_count = 0;
    link->wanted = 0;
    if (message->lineage == 0) /* the chief has not begun */
        return;
    if (message->lineage != link->clock_lineage)
        link->clock = message->clock;
    else if (message->type == PS_WELCOME) /* what was finished since it was told counts from where we were let in */
        link->clock += message->clock - link->joined_clock;
    else if (message->clock > link->clock) /* others have gone on without us */
        link->clock = message->clock;
    link->clock_lineage = message->lineage;
}

static void take_ticket(struct ticket_link *link, const struct ps_message *message)
{
    link->wanted -= link->wanted > 0;
    if (!link->welcome || message->lineage != link->terms.lineage || message->ticket < 0 ||
        link->granted_count == AHEAD)
        return;
    link->granted[link->granted_count++] = message->ticket;
    struct ticket_grant grant = link->terms;
    grant.ticket = message->ticket;
    if (link->options.foresee != NULL)
        link->options.foresee(link->options.context, &grant);
}

static void hear(struct ticket_link *link, const struct ps_message *message)
{
    link->heard_ms = clock_monotonic_ms();
    switch (message->type) {
    case PS_WELCOME:
    case PS_RESTART:
        link->welcome = are_terms(message);
        if (!link->welcome)
            break;
        link->unled_since_ms = 0;
        take_terms(link, message);
        break;
    case PS_TICKET:
        take_ticket(link, message);
        break;
    case PS_OVER:
        link->over = true;
        break;
    case PS_REFUSED:
        link->refused = true;
        snprintf(link->refusal, sizeof link->refusal, "%s", message->text);
        break;
    default:
        break;
    }
    say_what_is_due(link);
    pthread_cond_broadcast(&link->changed);
}

/* A chief of another protocol refuses this process, whatever the message is. */
static void hear_stranger(struct ticket_link *link, const struct error *error)
{
    SCOPED_LOCK(&link->lock);
    link->refused = link->strange = true;
    snprintf(link->refusal, sizeof link->refusal, "%.250s", error->message);
    pthread_cond_broadcast(&link->changed);
}

static void on_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct ticket_link *link = context;
    struct ps_message message;
    struct error error = ERROR_INIT;
    if (ps_message_decode(bytes, length, &message, &error) < 0) {
        if (error.kind == ERROR_UNSUPPORTED)
            hear_stranger(link, &error);
        rpc_stream_close(stream);
        return;
    }
    pthread_mutex_lock(&link->lock);
    if (link->stream == stream)
        hear(link, &message);
    pthread_mutex_unlock(&link->lock);
    ps_message_release(&message);
}

/* With the lock held. */
static void lose_chief(struct ticket_link *link)
{
    link->stream = NULL;
    link->welcome = false;
    link->orphaned = link->computing != NO_TICKET;
    link->granted_count = 0;
    link->wanted = 0;
    if (link->unled_since_ms == 0)
        link->unled_since_ms = clock_monotonic_ms();
    pthread_cond_broadcast(&link->changed);
}

static void on_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)error;
    struct ticket_link *link = context;
    SCOPED_LOCK(&link->lock);
    if (link->stream == stream)
        lose_chief(link);
}

/* ---------------------------------------------------------------- the tick */

static void dial(struct ticket_link *link)
{
    static const struct rpc_stream_events events = {.message = on_message, .closed = on_closed};
    char address[RESOLVE_ADDRESS_MAX];
    if (clock_monotonic_ms() < link->next_dial_ms || link->refused || link->over || link->leaving ||
        !address_book_ask(link->options.book, 0, address))
        return;
    link->next_dial_ms = clock_monotonic_ms() + REDIAL_MS;
    link->heard_ms = clock_monotonic_ms();
    if (rpc_stream_open(link->options.rpc, address, link->options.chief_port, PS_METHOD_TICKETS, 0, &events, link,
                        &link->stream, NULL) == 0)
        say_join(link);
}

static void beat(struct ticket_link *link)
{
    if (clock_monotonic_ms() < link->next_beat_ms)
        return;
    link->next_beat_ms = clock_monotonic_ms() + BEAT_MS;
    say(link, &(struct ps_message){.type = PS_BEAT});
}

void ticket_link_tick(struct ticket_link *link)
{
    SCOPED_LOCK(&link->lock);
    if (link->stream != NULL && clock_monotonic_ms() - link->heard_ms > DEATH_MS) {
        rpc_stream_close(link->stream);
        lose_chief(link);
    }
    if (link->stream == NULL)
        dial(link);
    beat(link);
    say_what_is_due(link);
}

/* ---------------------------------------------------------------- the caller's side */

static int64_t unled_ms(const struct ticket_link *link)
{
    return link->unled_since_ms == 0 ? 0 : clock_monotonic_ms() - link->unled_since_ms;
}

static bool is_lost(const struct ticket_link *link)
{
    int64_t lost_ms = link->options.lost_ms > 0 ? link->options.lost_ms : LOST_MS_DEFAULT;
    return unled_ms(link) > lost_ms;
}

/* With the lock held. */
static int tell_lost(const struct ticket_link *link, struct error *error)
{
    const struct crew_seat *chief = link->options.chief;
    char name[WAITING_NAME_MAX];
    waiting_name(chief ? chief->role : "worker", chief ? chief->index : 0, chief, name);
    return error_set(
        error, ERROR_TIMEOUT,
        "the crew is lost: no connection to the chief, %s, for %lld s; start the chief, then this process again", name,
        (long long)(unled_ms(link) / 1000));
}

bool ticket_link_is_lost(struct ticket_link *link)
{
    SCOPED_LOCK(&link->lock);
    return is_lost(link);
}

int ticket_link_tell_lost(struct ticket_link *link, struct error *error)
{
    SCOPED_LOCK(&link->lock);
    return tell_lost(link, error);
}

int ticket_link_next(struct ticket_link *link, struct ticket_grant *ret_grant, struct error *error)
{
    int result = 0;
    SCOPED_LOCK(&link->lock);
    link->asked_ms = clock_monotonic_ms();
    while (link->granted_count == 0 && !link->over && !link->cancelled && !link->refused && !is_lost(link)) {
        rpc_wake(link->options.rpc);
        condition_wait_ms(&link->changed, &link->lock, 1000);
    }
    link->asked_ms = 0;
    if (link->refused) {
        result = error_set(error, link->strange ? ERROR_FORBIDDEN : ERROR_STALE,
                           "the chief has refused this worker: %s", link->refusal);
    } else if (link->cancelled) {
        result = error_set(error, ERROR_CANCELLED, "left on request; the crew goes on without this worker");
    } else if (link->granted_count > 0) {
        *ret_grant = link->terms;
        ret_grant->ticket = link->computing = link->granted[0];
        ret_grant->clock = link->clock;
        link->computing_lineage = link->terms.lineage;
        link->granted[0] = link->granted[--link->granted_count];
    } else if (link->over) {
        *ret_grant = (struct ticket_grant){.over = true};
    } else {
        result = tell_lost(link, error);
    }
    return result;
}

void ticket_link_done(struct ticket_link *link, const struct ticket_result *result)
{
    pthread_mutex_lock(&link->lock);
    link->clock += result != NULL && link->computing_lineage == link->clock_lineage;
    if (result != NULL && link->done_count < AHEAD) {
        struct ps_message *done = &link->done[link->done_count++];
        *done = (struct ps_message){.type = PS_DONE,
                                    .ticket = link->computing,
                                    .lineage = link->computing_lineage,
                                    .clock = link->clock,
                                    .loss = result->loss,
                                    .squares = result->squares,
                                    .correct = result->correct,
                                    .targets = result->targets,
                                    .examples = result->examples,
                                    .server_count = result->server_count};
        memcpy(done->nonces, result->nonces, sizeof done->nonces);
    }
    link->computing = NO_TICKET;
    link->orphaned = false;
    pthread_mutex_unlock(&link->lock);
    rpc_wake(link->options.rpc);
}

bool ticket_link_is_over(struct ticket_link *link)
{
    SCOPED_LOCK(&link->lock);
    bool over = link->over;
    return over;
}

void ticket_link_cancel(struct ticket_link *link)
{
    SCOPED_LOCK(&link->lock);
    link->cancelled = true;
    pthread_cond_broadcast(&link->changed);
}

void ticket_link_leave(struct ticket_link *link)
{
    int64_t deadline_ns = clock_monotonic_ns() + LEAVE_MS * 1000000;
    SCOPED_LOCK(&link->lock);
    link->leaving = true;
    rpc_wake(link->options.rpc);
    while (link->welcome && condition_wait_until(&link->changed, &link->lock, deadline_ns))
        ;
}

void ticket_link_describe(struct ticket_link *link, char text[PS_TEXT_MAX])
{
    char name[WAITING_NAME_MAX];
    const struct crew_seat *chief = link->options.chief;
    text[0] = '\0';
    waiting_name(chief ? chief->role : "chief", chief ? chief->index : 0, chief, name);
    SCOPED_LOCK(&link->lock);
    int64_t patience = waiting_patience_ms(link->options.patience_ms, link->welcome);
    if (link->asked_ms != 0 && clock_monotonic_ms() - link->asked_ms >= patience && !link->over)
        waiting_add(text, name, link->welcome ? ", the chief, to give a ticket" : ", the chief");
}

int ticket_link_new(const struct ticket_link_options *options, struct ticket_link **ret_link, struct error *error)
{
    (void)error;
    struct ticket_link *link = memory_allocate(1, sizeof *link);
    link->options = *options;
    link->job_uid = memory_copy_string(options->job_uid);
    link->computing = NO_TICKET;
    link->unled_since_ms = clock_monotonic_ms();
    pthread_mutex_init(&link->lock, NULL);
    condition_init(&link->changed);
    if (getrandom(&link->nonce, sizeof link->nonce, 0) < 0)
        link->nonce = (uint64_t)clock_monotonic_ns();
    *ret_link = link;
    return 0;
}

void ticket_link_free(struct ticket_link *link)
{
    if (link == NULL)
        return;
    pthread_cond_destroy(&link->changed);
    pthread_mutex_destroy(&link->lock);
    free(link->job_uid);
    free(link);
}
