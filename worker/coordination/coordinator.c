/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/coordinator.h"

#include <stdio.h>
#include <string.h>

#include "common/memory.h"

#define WHY_MAX (ENDPOINT_ADDRESS_MAX + 64)
/* The text changes with every member of a large crew that joins or falls silent, and is sent to all members; so it is sent only this
 * often. */
#define WAITING_EVERY_MS 250
#define NAMED_MAX 6
#define MORE_TEXT " and %u more"
#define UNREAD_DEATHS_MAX 6 /* after this many times death_ms, messages cannot still be unread */

/* A rank's seat and the member in it. */
struct seat {
    char *name;            /* "worker 1" */
    uint32_t incarnation;  /* the highest known; while the seat is taken, that of its member */
    uint64_t nonce;        /* of the process that has, or last had, this seat */
    bool given_up;         /* that one was declared dead and must not come back */
    coordinator_link link; /* 0: empty */
    struct collective_peer peer;
    char arithmetic[ARITHMETIC_MAX]; /* its best; "": it need not compute as others do */
    int64_t heard_ms;
    bool absent;   /* no process answers at its address: of a first world only */
    bool told;     /* what was last told to all */
    bool in_world; /* of the world in force, or of the last one */
    bool reported; /* its standing, since the last generation ended */
    bool holds_state;
    int64_t step;            /* of its standing */
    char why_empty[WHY_MAX]; /* for people; "": has never joined */
    int64_t empty_ms;        /* since when */
};

struct coordinator {
    struct coordinator_options options;
    char *job_uid;
    struct seat seats[CREW_SIZE_MAX];
    struct generation generation;
    bool named;                      /* a world is in force */
    bool has_named;                  /* at any time */
    bool changed;                    /* loose crews: a member has come or gone since */
    int64_t born_ms;                 /* first event; -1: none yet */
    bool superseded;                 /* by a newer chief */
    char arithmetic[ARITHMETIC_MAX]; /* the crew's; "": not settled */
    int64_t last_tick_ms;
    int64_t read_until_ms;               /* coordinator_tick */
    char waiting[COORDINATION_TEXT_MAX]; /* last told to all */
    int64_t waiting_ms;                  /* when */
};

static struct coordination_message message_of(const struct coordinator *coordinator,
                                              enum coordination_message_type type)
{
    struct coordination_message message;
    memset(&message, 0, sizeof(message));
    message.type = type;
    message.generation = coordinator->generation;
    message.size = coordinator->options.size;
    snprintf(message.job_uid, sizeof(message.job_uid), "%s", coordinator->job_uid);
    return message;
}

static void send_to(struct coordinator *coordinator, coordinator_link link, const struct coordination_message *message,
                    bool close)
{
    coordinator->options.send(coordinator->options.context, link, message, close);
}

static void send_to_all(struct coordinator *coordinator, const struct coordination_message *message)
{
    for (unsigned rank = 0; rank < coordinator->options.size; rank++)
        if (coordinator->seats[rank].link != 0)
            send_to(coordinator, coordinator->seats[rank].link, message, false);
}

static void refuse(struct coordinator *coordinator, coordinator_link link, enum coordination_refusal refusal,
                   const char *text)
{
    struct coordination_message message = message_of(coordinator, COORDINATION_REFUSED);
    message.refusal = refusal;
    snprintf(message.text, sizeof(message.text), "%s", text);
    if (refusal == REFUSE_ARITHMETIC)
        memcpy(message.arithmetic, coordinator->arithmetic, sizeof(message.arithmetic));
    send_to(coordinator, link, &message, true);
}

/* ---------------------------------------------------------------- whom the crew waits for */

static bool is_elastic(const struct coordinator *coordinator)
{
    return coordinator->options.least < coordinator->options.size;
}

static unsigned seated_count(const struct coordinator *coordinator)
{
    unsigned count = 0;
    for (unsigned rank = 0; rank < coordinator->options.size; rank++)
        count += coordinator->seats[rank].link != 0;
    return count;
}

/* Whether a first world waits for the seat's member to report: it is expected, it has joined, or it may be a survivor of an
 * earlier chief that does not know this one yet. */
static bool is_awaited(const struct coordinator *coordinator, unsigned rank, int64_t now_ms)
{
    const struct coordinator_options *options = &coordinator->options;
    const struct seat *seat = &coordinator->seats[rank];
    int64_t waited_ms = now_ms - coordinator->born_ms;
    if (rank < options->expected || seat->link != 0)
        return waited_ms < options->start_ms;
    return !seat->absent && waited_ms < options->death_ms && waited_ms < options->start_ms;
}

/* Returns whether the crew waits for a member to take the empty seat `rank`. */
static bool is_wanted(const struct coordinator *coordinator, unsigned rank, int64_t now_ms)
{
    const struct coordinator_options *options = &coordinator->options;
    if (coordinator->named && (is_elastic(coordinator) || options->loose))
        return false;
    if (rank == 0 || !is_elastic(coordinator))
        return true;
    if (!coordinator->has_named)
        return rank < options->expected || is_awaited(coordinator, rank, now_ms);
    return seated_count(coordinator) < options->least &&
           (rank < options->least || coordinator->seats[rank].why_empty[0] != '\0');
}

/* Messages that this busy process has not read yet do not count as silence. */
static int64_t silence_of(const struct coordinator *coordinator, const struct seat *seat)
{
    return coordinator->read_until_ms - seat->heard_ms;
}

static void describe_seat(const struct coordinator *coordinator, const struct seat *seat, int64_t now_ms, char *text,
                          size_t size)
{
    int64_t silent = silence_of(coordinator, seat);
    if (seat->link == 0 && !is_wanted(coordinator, (unsigned)(seat - coordinator->seats), now_ms))
        text[0] = '\0';
    else if (seat->link == 0 && seat->why_empty[0] != '\0')
        snprintf(text, size, "%s (%s %lld s ago)", seat->name, seat->why_empty,
                 (long long)((now_ms - seat->empty_ms) / 1000));
    else if (seat->link == 0)
        snprintf(text, size, "%s (has not joined yet)", seat->name);
    else if (silent >= coordinator->options.suspicion_ms)
        snprintf(text, size, "%s (silent for %.1f s, at %s:%u)", seat->name, (double)silent / 1000, seat->peer.address,
                 seat->peer.port);
    else if (!coordinator->named && !seat->reported && (seat->in_world || !coordinator->has_named))
        snprintf(text, size, "%s (finishing its step)", seat->name);
    else
        text[0] = '\0';
}

void coordinator_describe(const struct coordinator *coordinator, int64_t now_ms, char text[MEMBER_TEXT_MAX])
{
    SCOPED_BUFFER words = BUFFER_INIT(COORDINATION_TEXT_MAX);
    unsigned count = 0, named = 0;
    for (unsigned rank = 0; rank < coordinator->options.size; rank++) {
        char one[192];
        describe_seat(coordinator, &coordinator->seats[rank], now_ms, one, sizeof(one));
        if (one[0] == '\0')
            continue;
        bool fits = words.length + strlen(", ") + strlen(one) + sizeof(MORE_TEXT) + 2 < COORDINATION_TEXT_MAX;
        if (named == 0 || (named == count && named < NAMED_MAX && fits)) {
            buffer_format(&words, "%s%s", named > 0 ? ", " : "waiting for ", one);
            named++;
        }
        count++;
    }
    if (count > named)
        buffer_format(&words, MORE_TEXT, count - named);
    snprintf(text, MEMBER_TEXT_MAX, "%s", count > 0 ? buffer_text(&words) : "");
}

/* Tells everyone whom the crew waits for when that has changed, now or a little later, and newcomers at once. */
static void tell_waiting(struct coordinator *coordinator, int64_t now_ms)
{
    char text[MEMBER_TEXT_MAX];
    coordinator_describe(coordinator, now_ms, text);
    struct coordination_message message = message_of(coordinator, COORDINATION_WAITING);
    snprintf(message.text, sizeof(message.text), "%.*s", COORDINATION_TEXT_MAX - 1, text);
    bool changed = strcmp(message.text, coordinator->waiting) != 0;
    bool waited = coordinator->waiting[0] != '\0', waits = text[0] != '\0';
    if (changed && (!waited || !waits || now_ms - coordinator->waiting_ms >= WAITING_EVERY_MS)) {
        memcpy(coordinator->waiting, message.text, sizeof(message.text));
        coordinator->waiting_ms = now_ms;
        for (unsigned rank = 0; rank < coordinator->options.size; rank++)
            coordinator->seats[rank].told = false;
    }
    memcpy(message.text, coordinator->waiting, sizeof(message.text));
    for (unsigned rank = 0; rank < coordinator->options.size; rank++) {
        struct seat *seat = &coordinator->seats[rank];
        if (seat->link != 0 && !seat->told)
            send_to(coordinator, seat->link, &message, false);
        seat->told = true;
    }
}

/* ---------------------------------------------------------------- generations */

static void end_generation(struct coordinator *coordinator, const char *why)
{
    coordinator->changed = true;
    if (!coordinator->named || coordinator->options.loose)
        return;
    coordinator->named = false;
    for (unsigned rank = 0; rank < coordinator->options.size; rank++)
        coordinator->seats[rank].reported = false;
    struct coordination_message message = message_of(coordinator, COORDINATION_REFORM);
    snprintf(message.text, sizeof(message.text), "%s", why);
    send_to_all(coordinator, &message);
}

/* Over the seats that take part, by their ranks. */
static void choose_source(const struct coordinator *coordinator, struct coordination_message *world)
{
    int best = -1;
    for (unsigned rank = 0; rank < world->size; rank++) {
        const struct seat *seat = &coordinator->seats[world->members[rank]];
        if (seat->holds_state && (best < 0 || seat->step > coordinator->seats[world->members[best]].step))
            best = (int)rank;
    }
    world->source = best < 0 ? WORLD_SOURCE_CHIEF : WORLD_SOURCE_PEER;
    world->source_rank = best < 0 ? 0 : (uint32_t)best;
    world->step = best < 0 ? 0 : coordinator->seats[world->members[best]].step;
    for (unsigned rank = 0; rank < world->size; rank++) {
        const struct seat *seat = &coordinator->seats[world->members[rank]];
        world->receives[rank] = rank != world->source_rank && !(seat->holds_state && seat->step == world->step);
    }
}

/* Returns whether a world can be named: no member of the last world is still at its step, the chief and enough others have reported, and
 * before the first world all awaited members have. */
static bool is_ready(const struct coordinator *coordinator, int64_t now_ms)
{
    const struct coordinator_options *options = &coordinator->options;
    unsigned reported = 0, awaited = 0;
    for (unsigned rank = 0; rank < options->size; rank++) {
        const struct seat *seat = &coordinator->seats[rank];
        if (seat->link != 0 && seat->in_world && !seat->reported)
            return false;
        reported += seat->reported;
        awaited += !coordinator->has_named && !seat->reported && is_awaited(coordinator, rank, now_ms);
    }
    return coordinator->seats[0].reported && reported >= options->least && awaited == 0;
}

static void seat_members(struct coordinator *coordinator, struct coordination_message *world)
{
    world->seats = coordinator->options.size;
    world->size = 0;
    for (unsigned rank = 0; rank < coordinator->options.size; rank++) {
        struct seat *seat = &coordinator->seats[rank];
        world->incarnations[rank] = seat->incarnation;
        seat->in_world = seat->reported || (seat->in_world && coordinator->options.loose);
        if (!seat->in_world)
            continue;
        world->peers[world->size] = seat->peer;
        world->members[world->size++] = rank;
    }
}

static void name_world(struct coordinator *coordinator)
{
    coordinator->generation.counter++;
    coordinator->named = true;
    coordinator->has_named = true;
    coordinator->changed = false;
    struct coordination_message world = message_of(coordinator, COORDINATION_WORLD);
    world.logical_shards = coordinator->options.logical_shards;
    memcpy(world.arithmetic, coordinator->arithmetic, sizeof(world.arithmetic));
    seat_members(coordinator, &world);
    choose_source(coordinator, &world);
    for (world.rank = 0; world.rank < world.size; world.rank++) {
        struct seat *seat = &coordinator->seats[world.members[world.rank]];
        seat->reported = false;
        send_to(coordinator, seat->link, &world, false);
    }
}

static void seat_clear(struct seat *seat, const char *why, int64_t now_ms)
{
    seat->link = 0;
    seat->reported = false;
    seat->in_world = false;
    seat->holds_state = false;
    seat->empty_ms = now_ms;
    snprintf(seat->why_empty, sizeof(seat->why_empty), "%s", why);
}

static void seat_empty(struct coordinator *coordinator, unsigned rank, const char *why, int64_t now_ms)
{
    struct seat *seat = &coordinator->seats[rank];
    seat_clear(seat, why, now_ms);
    char text[COORDINATION_TEXT_MAX];
    snprintf(text, sizeof(text), "%s: %s", seat->name, why);
    end_generation(coordinator, text);
}

/* Empties a seat and tells its member why it is refused. */
static void seat_refuse(struct coordinator *coordinator, unsigned rank, enum coordination_refusal refusal,
                        const char *why, const char *text, int64_t now_ms)
{
    coordinator_link link = coordinator->seats[rank].link;
    seat_empty(coordinator, rank, why, now_ms);
    refuse(coordinator, link, refusal, text);
}

/* ---------------------------------------------------------------- what the crew computes with */

/* Returns the best arithmetic that all members who have reported share with the crew's arithmetic so far (before there is one, the
 * chief's). A member that has nothing in common with it is not considered. */
static const char *choose_arithmetic(const struct coordinator *coordinator)
{
    bool settled = coordinator->arithmetic[0] != '\0';
    const char *chosen = settled ? coordinator->arithmetic : coordinator->seats[0].arithmetic;
    for (unsigned rank = 0; rank < coordinator->options.size; rank++) {
        const struct seat *seat = &coordinator->seats[rank];
        const char *common = seat->reported ? arithmetic_in_common(chosen, seat->arithmetic) : chosen;
        chosen = common != NULL ? common : chosen;
    }
    return chosen;
}

/* Whether this device and the crew's have no arithmetic in common. A lesser processor has one: the crew then goes on with that. */
static bool cannot_join(const struct coordinator *coordinator, const char *best)
{
    return coordinator->arithmetic[0] != '\0' && arithmetic_in_common(coordinator->arithmetic, best) == NULL;
}

/* What the user can change so that all members run the same code. */
static const char *const remedies[ARITHMETIC_PARTS] = {
    [ARITHMETIC_PROCESSOR] = "choose nodes of one kind for all",
    [ARITHMETIC_PLUGIN] = "give all the same image or devices.plugin",
    [ARITHMETIC_SETTINGS] = "set the same for all",
};

static void tell_lack(const struct coordinator *coordinator, const struct seat *seat, const char *best,
                      char text[COORDINATION_TEXT_MAX])
{
    int threads = arithmetic_threads(coordinator->arithmetic), own = arithmetic_threads(best);
    enum arithmetic_part part = arithmetic_difference(coordinator->arithmetic, best);
    if (part == ARITHMETIC_THREADS)
        snprintf(
            text, COORDINATION_TEXT_MAX,
            "the crew's program runs on %d thread%s and that of %s on %d, which gives other bits: set the same CPU "
            "limit or COXSWAIN_THREADS for all, or training.determinism to Run",
            threads, threads == 1 ? "" : "s", seat->name, own);
    else if (part < ARITHMETIC_PARTS)
        snprintf(text, COORDINATION_TEXT_MAX,
                 "%s has %s than the crew's, whose code gives other bits: %s, or set training.determinism to Run",
                 seat->name, arithmetic_difference_words(part), remedies[part]);
    else
        snprintf(
            text, COORDINATION_TEXT_MAX,
            "the crew computes with %s arithmetic and the device of %s has %s alone: start it on a machine like the "
            "others', or set training.determinism to Run",
            coordinator->arithmetic, seat->name, best);
}

/* Before a world is named. */
static void agree_on_arithmetic(struct coordinator *coordinator, int64_t now_ms)
{
    char chosen[ARITHMETIC_MAX];
    snprintf(chosen, sizeof(chosen), "%s", choose_arithmetic(coordinator));
    memcpy(coordinator->arithmetic, chosen, sizeof(chosen));
    for (unsigned rank = 0; rank < coordinator->options.size; rank++) {
        const struct seat *seat = &coordinator->seats[rank];
        if (seat->link == 0 || !cannot_join(coordinator, seat->arithmetic))
            continue;
        char text[COORDINATION_TEXT_MAX];
        tell_lack(coordinator, seat, seat->arithmetic, text);
        seat_refuse(coordinator, rank, REFUSE_ARITHMETIC, "lacks the crew's arithmetic", text, now_ms);
    }
}

/* While a world is in force, its members' planned reports are what its successor waits for. */
static bool has_planned_reports(const struct coordinator *coordinator)
{
    for (unsigned rank = 0; rank < coordinator->options.size; rank++)
        if (coordinator->seats[rank].in_world && coordinator->seats[rank].reported)
            return true;
    return false;
}

static void name_world_when_ready(struct coordinator *coordinator, int64_t now_ms)
{
    if (coordinator->named && coordinator->options.loose) {
        if (coordinator->changed)
            name_world(coordinator);
        return;
    }
    if (coordinator->named && !has_planned_reports(coordinator))
        return;
    if (is_ready(coordinator, now_ms))
        agree_on_arithmetic(coordinator, now_ms);
    if (is_ready(coordinator, now_ms)) /* still, if no member was refused */
        name_world(coordinator);
}

/* ---------------------------------------------------------------- messages */

static struct seat *seat_of(struct coordinator *coordinator, coordinator_link link)
{
    for (unsigned rank = 0; rank < coordinator->options.size; rank++)
        if (coordinator->seats[rank].link == link)
            return &coordinator->seats[rank];
    return NULL;
}

static enum coordination_refusal judge_join(const struct coordinator *coordinator,
                                            const struct coordination_message *join, char text[COORDINATION_TEXT_MAX])
{
    const struct generation *ours = &coordinator->generation;
    if (strcmp(join->job_uid, coordinator->job_uid) != 0) {
        snprintf(text, COORDINATION_TEXT_MAX, "this crew belongs to another job (its UID differs)");
        return REFUSE_OTHER_JOB;
    }
    if (join->size != coordinator->options.size || join->rank >= coordinator->options.size) {
        snprintf(text, COORDINATION_TEXT_MAX, "rank %u of %u does not fit a crew of %u", join->rank, join->size,
                 coordinator->options.size);
        return REFUSE_BAD_SEAT;
    }
    const struct seat *seat = &coordinator->seats[join->rank];
    if (join->generation.attempt < ours->attempt || join->generation.incarnation < seat->incarnation) {
        snprintf(text, COORDINATION_TEXT_MAX,
                 "%s with attempt %u, incarnation %u is superseded by attempt %u, incarnation %u", seat->name,
                 join->generation.attempt, join->generation.incarnation, ours->attempt, seat->incarnation);
        return REFUSE_STALE;
    }
    if (seat->given_up && join->nonce == seat->nonce) {
        snprintf(text, COORDINATION_TEXT_MAX, "%s was declared dead and is being replaced", seat->name);
        return REFUSE_STALE;
    }
    if (cannot_join(coordinator, join->arithmetic)) {
        tell_lack(coordinator, seat, join->arithmetic, text);
        return REFUSE_ARITHMETIC;
    }
    return REFUSE_NOT;
}

/* A process that dials twice in a row has connections that may come to be heard in either order: the one that is closed here may be
 * the one that it listens to, over which it then joins anew. A refusal there would end the process for having dialled. */
static void close_link(struct coordinator *coordinator, coordinator_link link)
{
    struct coordination_message message = message_of(coordinator, COORDINATION_REFORM);
    snprintf(message.text, sizeof(message.text), "another connection of this process has taken its seat");
    send_to(coordinator, link, &message, true);
}

static void on_join(struct coordinator *coordinator, coordinator_link link, const struct coordination_message *join,
                    int64_t now_ms)
{
    char text[COORDINATION_TEXT_MAX];
    enum coordination_refusal refusal = judge_join(coordinator, join, text);
    if (refusal != REFUSE_NOT) {
        refuse(coordinator, link, refusal, text);
        return;
    }
    struct seat *seat = &coordinator->seats[join->rank];
    coordinator_link old = seat->link;
    if (old != 0 && old != link) {
        bool same = join->nonce == seat->nonce;
        seat_empty(coordinator, join->rank, same ? "has dialled again" : "replaced by a newer one", now_ms);
        if (same)
            close_link(coordinator, old);
        else
            refuse(coordinator, old, REFUSE_STALE, "another process has taken this seat");
    }
    seat->incarnation = join->generation.incarnation;
    seat->nonce = join->nonce;
    seat->given_up = false;
    seat->link = link;
    seat->peer = join->peer;
    memcpy(seat->arithmetic, join->arithmetic, sizeof(seat->arithmetic));
    seat->heard_ms = now_ms;
    seat->reported = false;
    seat->in_world = false;
    seat->told = coordinator->waiting[0] == '\0';
}

static void be_superseded(struct coordinator *coordinator, const struct seat *witness, struct generation newer)
{
    char text[COORDINATION_TEXT_MAX];
    const struct generation *ours = &coordinator->generation;
    if (coordinator->seats[0].link == 0)
        return;
    snprintf(text, sizeof(text),
             "this chief of attempt %u, incarnation %u is superseded: %s follows one of attempt %u, incarnation %u",
             ours->attempt, ours->incarnation, witness->name, newer.attempt, newer.incarnation);
    coordinator->superseded = true;
    refuse(coordinator, coordinator->seats[0].link, REFUSE_STALE, text);
}

static void learn_incarnations(struct coordinator *coordinator, const struct coordination_message *standing,
                               int64_t now_ms)
{
    for (unsigned rank = 0; rank < coordinator->options.size && rank < standing->seats; rank++) {
        struct seat *seat = &coordinator->seats[rank];
        if (standing->incarnations[rank] <= seat->incarnation)
            continue;
        char text[96];
        snprintf(text, sizeof(text), "incarnation %u is superseded by incarnation %u", seat->incarnation,
                 standing->incarnations[rank]);
        seat->incarnation = standing->incarnations[rank];
        if (seat->link == 0)
            continue;
        seat_refuse(coordinator, rank, REFUSE_STALE, text, text, now_ms);
    }
}

static void on_standing(struct coordinator *coordinator, struct seat *seat, const struct coordination_message *standing,
                        int64_t now_ms)
{
    learn_incarnations(coordinator, standing, now_ms);
    if (seat->link == 0)
        return;
    /* Sent before the member heard of the newest world: it is about that one's forerunner and has served its turn. Also once that
     * world has ended: the member may have taken steps in it, and reports again. */
    if (seat->in_world && generation_compare(standing->generation, coordinator->generation) < 0)
        return;
    bool of_world = coordinator->named && seat->in_world;
    coordinator->changed |= !of_world;
    if (of_world && !standing->planned) {
        char text[COORDINATION_TEXT_MAX];
        snprintf(text, sizeof(text), "%s could not finish its step", seat->name);
        end_generation(coordinator, text);
    }
    /* A chief that was restarted under the same incarnation goes on counting where its predecessor was. */
    if (generation_compare(standing->generation, coordinator->generation) > 0)
        coordinator->generation.counter = standing->generation.counter;
    /* A new chief goes on with what the state was computed with. */
    if (standing->holds_state && coordinator->arithmetic[0] == '\0')
        memcpy(coordinator->arithmetic, standing->arithmetic, sizeof(coordinator->arithmetic));
    seat->reported = true;
    seat->holds_state = standing->holds_state;
    seat->step = standing->step;
}

/* Does not end the generation, since the others may be about to finish the operation after which this member leaves. If they need it for
 * another one, they will notice. */
static void on_leave(struct coordinator *coordinator, struct seat *seat, int64_t now_ms)
{
    coordinator_link link = seat->link;
    coordinator->changed = true;
    seat_clear(seat, "left by request", now_ms);
    struct coordination_message goodbye = message_of(coordinator, COORDINATION_LEAVE);
    send_to(coordinator, link, &goodbye, true);
}

/* Does what an event may have made possible, and sends the crew what it waits for. */
static void settle(struct coordinator *coordinator, int64_t now_ms)
{
    if (coordinator->superseded)
        return;
    name_world_when_ready(coordinator, now_ms);
    tell_waiting(coordinator, now_ms);
}

void coordinator_receive(struct coordinator *coordinator, coordinator_link link,
                         const struct coordination_message *message, int64_t now_ms)
{
    if (coordinator->superseded)
        return;
    if (coordinator->born_ms < 0)
        coordinator->born_ms = now_ms;
    if (message->type == COORDINATION_JOIN)
        on_join(coordinator, link, message, now_ms);
    struct seat *seat = seat_of(coordinator, link);
    if (seat == NULL)
        return;
    seat->heard_ms = now_ms;
    /* A join has the member's own incarnation, everything else the generation of the chief that it knows. */
    if (message->type != COORDINATION_JOIN &&
        generation_compare_chiefs(message->generation, coordinator->generation) > 0)
        be_superseded(coordinator, seat, message->generation);
    else if (message->type == COORDINATION_STANDING)
        on_standing(coordinator, seat, message, now_ms);
    else if (message->type == COORDINATION_LEAVE)
        on_leave(coordinator, seat, now_ms);
    settle(coordinator, now_ms);
}

void coordinator_link_closed(struct coordinator *coordinator, coordinator_link link, const char *why, int64_t now_ms)
{
    struct seat *seat = seat_of(coordinator, link);
    if (seat == NULL)
        return;
    seat_empty(coordinator, (unsigned)(seat - coordinator->seats), why, now_ms);
    settle(coordinator, now_ms);
}

/* If this process itself was frozen, members' beats may not have been read yet, so their silence does not count. */
static void forgive_own_absence(struct coordinator *coordinator, int64_t now_ms)
{
    int64_t gap = now_ms - coordinator->last_tick_ms;
    for (unsigned rank = 0; gap > coordinator->options.suspicion_ms && rank < coordinator->options.size; rank++)
        coordinator->seats[rank].heard_ms = now_ms;
    coordinator->last_tick_ms = now_ms;
}

void coordinator_tick(struct coordinator *coordinator, int64_t read_until_ms, int64_t now_ms)
{
    int64_t least = now_ms - UNREAD_DEATHS_MAX * coordinator->options.death_ms;
    coordinator->read_until_ms = read_until_ms > least ? read_until_ms : least;
    forgive_own_absence(coordinator, now_ms);
    for (unsigned rank = 0; rank < coordinator->options.size; rank++) {
        struct seat *seat = &coordinator->seats[rank];
        coordinator_link link = seat->link;
        if (link == 0 || silence_of(coordinator, seat) < coordinator->options.death_ms)
            continue;
        char why[WHY_MAX];
        snprintf(why, sizeof(why), "declared dead after %.1f s of silence, at %s:%u",
                 (double)silence_of(coordinator, seat) / 1000, seat->peer.address, seat->peer.port);
        seat_empty(coordinator, rank, why, now_ms);
        seat->given_up = true;
        refuse(coordinator, link, REFUSE_STALE, why);
    }
    settle(coordinator, now_ms);
}

bool coordinator_seat_empty(const struct coordinator *coordinator, unsigned rank)
{
    return coordinator->seats[rank].link == 0;
}

uint32_t coordinator_seat_incarnation(const struct coordinator *coordinator, unsigned rank)
{
    return coordinator->seats[rank].incarnation;
}

bool coordinator_seat_missing(const struct coordinator *coordinator, unsigned rank)
{
    bool searched = !is_elastic(coordinator) || !coordinator->has_named;
    return searched && coordinator_seat_empty(coordinator, rank);
}

void coordinator_seat_absent(struct coordinator *coordinator, unsigned rank, int64_t now_ms)
{
    if (coordinator->seats[rank].absent)
        return;
    coordinator->seats[rank].absent = true;
    settle(coordinator, now_ms);
}

unsigned coordinator_newcomers(const struct coordinator *coordinator)
{
    unsigned count = 0;
    for (unsigned rank = 0; coordinator->named && rank < coordinator->options.size; rank++)
        count += coordinator->seats[rank].reported && !coordinator->seats[rank].in_world;
    return count;
}

/* ---------------------------------------------------------------- life cycle */

struct coordinator *coordinator_new(const struct coordinator_options *options)
{
    struct coordinator *coordinator = memory_allocate(1, sizeof(*coordinator));
    coordinator->options = *options;
    coordinator->job_uid = memory_copy_string(options->job_uid);
    coordinator->generation = options->generation;
    coordinator->born_ms = -1;
    struct coordinator_options *own = &coordinator->options;
    own->least = own->least > 0 && own->least < own->size ? own->least : own->size;
    own->expected = own->expected > 0 && own->expected < own->size ? own->expected : own->size;
    for (unsigned rank = 0; rank < options->size; rank++)
        coordinator->seats[rank].name = memory_format("%s %u", options->seats[rank].role, options->seats[rank].index);
    return coordinator;
}

void coordinator_free(struct coordinator *coordinator)
{
    if (coordinator == NULL)
        return;
    for (unsigned rank = 0; rank < coordinator->options.size; rank++)
        free(coordinator->seats[rank].name);
    free(coordinator->job_uid);
    free(coordinator);
}
