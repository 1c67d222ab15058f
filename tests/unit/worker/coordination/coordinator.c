/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/coordinator.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define SIZE 3

/* The last message of each type that each link was sent. */
struct inbox {
    struct coordination_message last[COORDINATION_TYPE_COUNT];
    unsigned count[COORDINATION_TYPE_COUNT];
    bool closed;
};

static struct inbox inboxes[64];
static const struct crew_seat seats[SIZE] = {{"worker", 0, "h0", 1}, {"worker", 1, "h1", 1}, {"worker", 2, "h2", 1}};

static void keep(void *context, coordinator_link link, const struct coordination_message *message, bool close)
{
    (void)context;
    inboxes[link].last[message->type] = *message;
    inboxes[link].count[message->type]++;
    inboxes[link].closed |= close;
}

static struct coordinator *start(uint32_t incarnation)
{
    memset(inboxes, 0, sizeof(inboxes));
    return coordinator_new(&(struct coordinator_options){.job_uid = "job",
                                                         .generation = {1, incarnation, 0},
                                                         .size = SIZE,
                                                         .seats = seats,
                                                         .logical_shards = 12,
                                                         .suspicion_ms = 2000,
                                                         .death_ms = 5000,
                                                         .send = keep});
}

static void join_as(struct coordinator *c, coordinator_link link, uint64_t nonce, unsigned rank, uint32_t incarnation,
                    int64_t now)
{
    struct coordination_message message = {.type = COORDINATION_JOIN,
                                           .generation = {1, incarnation, 0},
                                           .nonce = nonce,
                                           .rank = rank,
                                           .size = SIZE,
                                           .job_uid = "job"};
    snprintf(message.peer.address, sizeof(message.peer.address), "10.0.0.%u", rank);
    coordinator_receive(c, link, &message, now);
}

static void join(struct coordinator *c, coordinator_link link, unsigned rank, uint32_t incarnation, int64_t now)
{
    join_as(c, link, link, rank, incarnation, now);
}

static void stand(struct coordinator *c, coordinator_link link, bool holds, int64_t step, uint32_t counter, int64_t now)
{
    struct coordination_message message = {
        .type = COORDINATION_STANDING, .generation = {1, 1, counter}, .holds_state = holds, .step = step};
    coordinator_receive(c, link, &message, now);
}

static void beat(struct coordinator *c, coordinator_link link, int64_t now)
{
    coordinator_receive(c, link, &(struct coordination_message){.type = COORDINATION_BEAT}, now);
}

static void form(struct coordinator *c)
{
    for (unsigned rank = 0; rank < SIZE; rank++) {
        join(c, rank + 1, rank, 1, 0);
        stand(c, rank + 1, false, 0, 0, 0);
    }
}

static const struct coordination_message *world(coordinator_link link)
{
    return &inboxes[link].last[COORDINATION_WORLD];
}

Test(coordinator, names_a_world_once_all_have_reported)
{
    struct coordinator *c = start(1);
    join(c, 1, 0, 1, 0);
    join(c, 2, 1, 1, 0);
    join(c, 3, 2, 1, 0);
    stand(c, 1, false, 0, 0, 0);
    stand(c, 3, false, 0, 0, 0);
    cr_assert_eq(inboxes[1].count[COORDINATION_WORLD], 0);
    stand(c, 2, false, 0, 0, 0);
    for (coordinator_link link = 1; link <= 3; link++) {
        cr_assert_eq(world(link)->generation.counter, 1);
        cr_assert_eq(world(link)->source, WORLD_SOURCE_CHIEF);
        cr_assert_eq(world(link)->logical_shards, 12);
        cr_assert_str_eq(world(link)->peers[2].address, "10.0.0.2");
        cr_assert_not(world(link)->receives[0]);
        cr_assert(world(link)->receives[1] && world(link)->receives[2]);
    }
    coordinator_free(c);
}

Test(coordinator, a_death_ends_the_generation_and_the_highest_step_wins)
{
    struct coordinator *c = start(1);
    form(c);
    coordinator_link_closed(c, 2, "connection closed", 100);
    cr_assert_eq(inboxes[1].count[COORDINATION_REFORM], 1);
    cr_assert_not_null(strstr(inboxes[3].last[COORDINATION_REFORM].text, "worker 1"));
    stand(c, 1, true, 41, 1, 100);
    stand(c, 3, true, 42, 1, 100);
    char text[MEMBER_TEXT_MAX];
    coordinator_describe(c, 3100, text);
    cr_assert_not_null(strstr(text, "worker 1 (connection closed 3 s ago)"), "%s", text);
    join(c, 4, 1, 2, 200);
    stand(c, 4, false, 0, 0, 200);
    cr_assert_eq(world(4)->generation.counter, 2);
    cr_assert_eq(world(4)->source, WORLD_SOURCE_PEER);
    cr_assert_eq(world(4)->source_rank, 2);
    cr_assert_eq(world(4)->step, 42);
    cr_assert(world(4)->receives[0] && world(4)->receives[1] && !world(4)->receives[2]);
    coordinator_free(c);
}

Test(coordinator, a_report_given_before_the_death_still_counts)
{
    struct coordinator *c = start(1);
    join(c, 1, 0, 1, 0);
    stand(c, 1, true, 7, 0, 0);
    join(c, 2, 1, 1, 0);
    coordinator_link_closed(c, 2, "connection closed", 0);
    join(c, 3, 2, 1, 0);
    stand(c, 3, false, 0, 0, 0);
    join(c, 4, 1, 2, 0);
    stand(c, 4, false, 0, 0, 0);
    cr_assert_eq(world(1)->step, 7);
    cr_assert_eq(world(1)->source_rank, 0);
    coordinator_free(c);
}

Test(coordinator, a_lower_incarnation_is_stale_and_a_higher_one_takes_the_seat)
{
    struct coordinator *c = start(1);
    form(c);
    join(c, 4, 2, 3, 10);
    cr_assert_eq(inboxes[3].last[COORDINATION_REFUSED].refusal, REFUSE_STALE);
    cr_assert(inboxes[3].closed);
    cr_assert_eq(inboxes[1].count[COORDINATION_REFORM], 1);
    join(c, 5, 2, 2, 20);
    cr_assert_eq(inboxes[5].last[COORDINATION_REFUSED].refusal, REFUSE_STALE);
    cr_assert_eq(inboxes[4].count[COORDINATION_REFUSED], 0);
    coordinator_link_closed(c, 3, "connection closed", 30); /* of the replaced one: nobody's loss */
    cr_assert_not(coordinator_seat_empty(c, 2));
    coordinator_free(c);
}

/* The process has given up the first of two connections, which is heard last. */
Test(coordinator, a_member_that_dials_twice_is_not_superseded_by_itself)
{
    struct coordinator *c = start(1);
    join(c, 1, 0, 1, 0);
    stand(c, 1, false, 0, 0, 0);
    join(c, 3, 2, 1, 0);
    stand(c, 3, false, 0, 0, 0);
    join_as(c, 5, 77, 1, 1, 0);
    join_as(c, 4, 77, 1, 1, 0);
    cr_assert_eq(inboxes[5].count[COORDINATION_REFUSED], 0);
    cr_assert(inboxes[5].closed);
    coordinator_link_closed(c, 4, "connection closed", 0);
    join_as(c, 6, 77, 1, 1, 0);
    stand(c, 6, false, 0, 0, 0);
    cr_assert_eq(world(6)->generation.counter, 1);
    coordinator_free(c);
}

Test(coordinator, strangers_are_refused)
{
    struct coordinator *c = start(1);
    struct coordination_message message = {
        .type = COORDINATION_JOIN, .generation = {1, 1, 0}, .size = SIZE, .job_uid = "old"};
    coordinator_receive(c, 9, &message, 0);
    cr_assert_eq(inboxes[9].last[COORDINATION_REFUSED].refusal, REFUSE_OTHER_JOB);
    join(c, 10, SIZE, 1, 0);
    cr_assert_eq(inboxes[10].last[COORDINATION_REFUSED].refusal, REFUSE_BAD_SEAT);
    stand(c, 11, true, 99, 0, 0); /* has not joined */
    cr_assert_eq(inboxes[11].count[COORDINATION_WORLD], 0);
    coordinator_free(c);
}

Test(coordinator, silence_is_named_and_then_is_death)
{
    struct coordinator *c = start(1);
    form(c);
    char text[MEMBER_TEXT_MAX];
    for (int64_t now = 0; now <= 5000; now += 500) {
        beat(c, 1, now);
        beat(c, 2, now);
        coordinator_tick(c, now, now);
        coordinator_describe(c, now, text);
        cr_assert_eq(strstr(text, "worker 2 (silent") != NULL, now >= 2000 && now < 5000, "%s", text);
        cr_assert_eq(strstr(text, ", at 10.0.0.2:") != NULL, now >= 2000, "%s", text);
    }
    cr_assert(coordinator_seat_empty(c, 2));
    cr_assert_eq(inboxes[3].last[COORDINATION_REFUSED].refusal, REFUSE_STALE);
    cr_assert_eq(inboxes[1].count[COORDINATION_REFORM], 1);
    cr_assert_not_null(strstr(inboxes[1].last[COORDINATION_REFORM].text,
                              "worker 2: declared dead after 5.0 s of silence, at 10.0.0.2:"));
    /* Thawed, it tries again with the same incarnation; its successor may have the same one, when started by hand. */
    struct coordination_message thawed = {
        .type = COORDINATION_JOIN, .generation = {1, 1, 0}, .nonce = 3, .rank = 2, .size = SIZE, .job_uid = "job"};
    coordinator_receive(c, 20, &thawed, 5100);
    cr_assert_eq(inboxes[20].last[COORDINATION_REFUSED].refusal, REFUSE_STALE);
    join(c, 21, 2, 1, 5200);
    cr_assert_not(coordinator_seat_empty(c, 2));
    coordinator_free(c);
}

Test(coordinator, what_lies_unread_is_no_silence)
{
    struct coordinator *c = start(1);
    form(c);
    coordinator_tick(c, 100, 100);
    for (int64_t now = 600; now <= 30000; now += 500) /* it has much to do, and has come to nobody's beats */
        coordinator_tick(c, 100, now);
    char text[MEMBER_TEXT_MAX];
    coordinator_describe(c, 30000, text);
    cr_assert_str_empty(text);
    beat(c, 1, 30000);
    beat(c, 2, 30000);
    coordinator_tick(c, 30100, 30500);
    cr_assert_not(coordinator_seat_empty(c, 1));
    cr_assert(coordinator_seat_empty(c, 2), "whose beat was not among what has come");
    for (int64_t now = 31000; now <= 65500; now += 500)
        coordinator_tick(c, 30100, now);
    cr_assert(coordinator_seat_empty(c, 1), "nothing lies unread for ever");
    coordinator_free(c);
}

/* Seats enough that not all can be named. */
#define MANY 20
static void join_many(struct coordinator *c, unsigned rank, int64_t now)
{
    struct coordination_message message = {.type = COORDINATION_JOIN,
                                           .generation = {1, 1, 0},
                                           .nonce = rank + 1,
                                           .rank = rank,
                                           .size = MANY,
                                           .job_uid = "job"};
    coordinator_receive(c, rank + 1, &message, now);
}

Test(coordinator, many_joins_are_not_each_reported_to_all)
{
    struct crew_seat many[MANY];
    for (unsigned rank = 0; rank < MANY; rank++)
        many[rank] = (struct crew_seat){"worker", rank, "h", 1};
    memset(inboxes, 0, sizeof(inboxes));
    struct coordinator *c = coordinator_new(&(struct coordinator_options){.job_uid = "job",
                                                                          .generation = {1, 1, 0},
                                                                          .size = MANY,
                                                                          .seats = many,
                                                                          .suspicion_ms = 2000,
                                                                          .death_ms = 5000,
                                                                          .send = keep});
    const unsigned *told = &inboxes[1].count[COORDINATION_WAITING];
    join_many(c, 0, 0);
    cr_assert_eq(*told, 1);
    cr_assert_not_null(strstr(inboxes[1].last[COORDINATION_WAITING].text,
                              "worker 4 (has not joined yet), worker 5 (has not joined yet) and 14 more"),
                       "%s", inboxes[1].last[COORDINATION_WAITING].text);
    for (unsigned rank = 1; rank < MANY - 1; rank++) {
        join_many(c, rank, 10 * rank);
        cr_assert_eq(inboxes[rank + 1].count[COORDINATION_WAITING], 1, "a newcomer is told at once");
    }
    cr_assert_eq(*told, 1);
    coordinator_tick(c, 400, 400);
    cr_assert_eq(*told, 2);
    cr_assert_not_null(strstr(inboxes[1].last[COORDINATION_WAITING].text, "worker 5 (finishing its step) and 14 more"));
    join_many(c, MANY - 1, 410);
    for (unsigned rank = 0; rank < MANY; rank++)
        stand(c, rank + 1, false, 0, 0, 410);
    cr_assert_str_empty(inboxes[1].last[COORDINATION_WAITING].text, "that it is whole all hear at once");
    for (int64_t now = 910; now <= 2910; now += 500)
        coordinator_tick(c, now, now);
    const char *silent = inboxes[1].last[COORDINATION_WAITING].text;
    cr_assert(strstr(silent, "worker 0 (silent for 2.5 s, at ") && strstr(silent, " more"), "%s", silent);
    cr_assert_eq(world(MANY)->size, MANY);
    coordinator_free(c);
}

Test(coordinator, its_own_freeze_kills_nobody)
{
    struct coordinator *c = start(1);
    form(c);
    coordinator_tick(c, 100, 100);
    coordinator_tick(c, 60000, 60000);
    for (unsigned rank = 0; rank < SIZE; rank++)
        cr_assert_not(coordinator_seat_empty(c, rank));
    coordinator_free(c);
}

Test(coordinator, a_report_about_an_older_world_does_not_end_the_new_one)
{
    struct coordinator *c = start(1);
    form(c);
    stand(c, 1, true, 5, 1, 10); /* its step failed */
    cr_assert_eq(inboxes[2].count[COORDINATION_REFORM], 1);
    stand(c, 2, true, 5, 1, 10);
    stand(c, 3, true, 5, 1, 10);
    cr_assert_eq(world(1)->generation.counter, 2);
    stand(c, 2, true, 5, 1, 20); /* said again before it heard of the new world */
    cr_assert_eq(inboxes[2].count[COORDINATION_REFORM], 1);
    stand(c, 2, true, 5, 2, 30);
    cr_assert_eq(inboxes[1].count[COORDINATION_REFORM], 2);
    coordinator_free(c);
}

/* Said again when it heard of the end of generation 1, and overtaken by all of generation 2, in which it took step 7: that would be
 * lost with its first word for the next. */
Test(coordinator, a_report_that_a_whole_generation_has_overtaken_is_void)
{
    struct coordinator *c = start(1);
    form(c);
    for (coordinator_link link = 1; link <= 3; link++)
        stand(c, link, true, 5, 1, 10);
    cr_assert_eq(world(2)->generation.counter, 2);
    coordinator_link_closed(c, 3, "connection closed", 20);
    stand(c, 2, true, 5, 1, 20);
    join(c, 4, 2, 2, 20);
    stand(c, 4, false, 0, 0, 20);
    stand(c, 1, true, 6, 2, 20);
    cr_assert_eq(world(1)->generation.counter, 2, "worker 1 has not reported yet");
    stand(c, 2, true, 7, 2, 20);
    cr_assert_eq(world(1)->generation.counter, 3);
    cr_assert_eq(world(1)->source_rank, 1);
    cr_assert_eq(world(1)->step, 7);
    cr_assert_not(world(1)->receives[1]);
    coordinator_free(c);
}

Test(coordinator, a_successor_of_equal_incarnation_counts_on)
{
    struct coordinator *c = start(1);
    join(c, 1, 0, 1, 0);
    stand(c, 1, false, 0, 0, 0);
    join(c, 2, 1, 1, 0);
    stand(c, 2, true, 80, 17, 0);
    join(c, 3, 2, 1, 0);
    stand(c, 3, true, 80, 17, 0);
    cr_assert_eq(world(1)->generation.counter, 18);
    cr_assert_eq(world(1)->source_rank, 1);
    coordinator_free(c);
}

Test(coordinator, a_goodbye_is_told_as_such)
{
    struct coordinator *c = start(1);
    form(c);
    coordinator_receive(c, 2, &(struct coordination_message){.type = COORDINATION_LEAVE}, 0);
    char text[MEMBER_TEXT_MAX];
    coordinator_describe(c, 1000, text);
    cr_assert_not_null(strstr(text, "worker 1 (left by request 1 s ago)"));
    cr_assert(inboxes[2].closed);
    coordinator_free(c);
}

Test(coordinator, a_member_that_has_followed_a_newer_chief_ends_this_one)
{
    struct coordinator *c = start(3);
    form(c);
    struct coordination_message beat = {.type = COORDINATION_BEAT, .generation = {1, 5, 0}};
    coordinator_receive(c, 9, &beat, 10); /* a stranger's word does not count */
    cr_assert_eq(inboxes[1].count[COORDINATION_REFUSED], 0);
    coordinator_receive(c, 2, &beat, 10);
    cr_assert_eq(inboxes[1].last[COORDINATION_REFUSED].refusal, REFUSE_STALE);
    cr_assert_not_null(strstr(inboxes[1].last[COORDINATION_REFUSED].text, "incarnation 5"));
    /* The others have their own way to the newer one. */
    cr_assert_eq(inboxes[2].count[COORDINATION_REFUSED] + inboxes[3].count[COORDINATION_REFUSED], 0);
    for (coordinator_link link = 1; link <= 3; link++)
        stand(c, link, true, 7, 1, 20);
    cr_assert_eq(world(3)->generation.counter, 1, "a superseded chief named a world");
    coordinator_free(c);
}

static void stand_knowing(struct coordinator *c, coordinator_link link, const uint32_t incarnations[SIZE])
{
    struct coordination_message message = {
        .type = COORDINATION_STANDING, .generation = {1, 1, 4}, .holds_state = true, .step = 60, .seats = SIZE};
    memcpy(message.incarnations, incarnations, SIZE * sizeof(*incarnations));
    coordinator_receive(c, link, &message, 0);
}

Test(coordinator, a_world_names_the_members_incarnations)
{
    struct coordinator *c = start(1);
    form(c);
    join(c, 4, 2, 3, 10);
    for (coordinator_link link = 1; link <= 4; link++)
        stand(c, link, false, 0, 1, 10);
    cr_assert_eq(world(1)->incarnations[0], 1);
    cr_assert_eq(world(1)->incarnations[2], 3);
    coordinator_free(c);
}

Test(coordinator, a_new_chief_learns_from_survivors_which_members_are_superseded)
{
    struct coordinator *c = start(3);
    join(c, 1, 0, 3, 0);
    stand(c, 1, false, 0, 0, 0);
    join(c, 2, 1, 1, 0); /* was cut off; its successor has incarnation 2 */
    stand(c, 2, true, 90, 2, 0);
    join(c, 3, 2, 1, 0);
    stand_knowing(c, 3, (uint32_t[]){1, 2, 1});
    cr_assert_eq(inboxes[2].last[COORDINATION_REFUSED].refusal, REFUSE_STALE);
    cr_assert(inboxes[2].closed);
    cr_assert_eq(inboxes[1].count[COORDINATION_WORLD], 0);
    join(c, 4, 1, 1, 10);
    cr_assert_eq(inboxes[4].last[COORDINATION_REFUSED].refusal, REFUSE_STALE);
    join(c, 5, 1, 2, 20);
    stand(c, 5, true, 60, 4, 20);
    cr_assert_eq(world(1)->source_rank, 1);
    cr_assert_eq(world(1)->step, 60);
    coordinator_free(c);
}

Test(coordinator, a_member_that_knows_itself_superseded_is_heeded)
{
    struct coordinator *c = start(3);
    join(c, 1, 0, 3, 0);
    join(c, 2, 1, 1, 0);
    stand_knowing(c, 2, (uint32_t[]){1, 2, 1});
    cr_assert(coordinator_seat_empty(c, 1));
    cr_assert_eq(inboxes[2].last[COORDINATION_REFUSED].refusal, REFUSE_STALE);
    coordinator_free(c);
}

/* ---------------------------------------------------------------- what members compute with */

static void join_with(struct coordinator *c, coordinator_link link, unsigned rank, const char *arithmetic)
{
    struct coordination_message message = {.type = COORDINATION_JOIN,
                                           .generation = {1, 1, 0},
                                           .nonce = link,
                                           .rank = rank,
                                           .size = SIZE,
                                           .job_uid = "job"};
    snprintf(message.arithmetic, sizeof(message.arithmetic), "%s", arithmetic);
    coordinator_receive(c, link, &message, 0);
}

static void form_with(struct coordinator *c, const char *const arithmetic[SIZE])
{
    for (unsigned rank = 0; rank < SIZE; rank++)
        join_with(c, rank + 1, rank, arithmetic[rank]);
    for (unsigned rank = 0; rank < SIZE; rank++)
        stand(c, rank + 1, false, 0, 0, 0);
}

static void assert_lacking(coordinator_link link, const char *words)
{
    const struct coordination_message *refusal = &inboxes[link].last[COORDINATION_REFUSED];
    cr_assert_eq(inboxes[link].count[COORDINATION_REFUSED], 1);
    cr_assert_eq(refusal->refusal, REFUSE_ARITHMETIC);
    cr_assert_not_null(strstr(refusal->text, words), "%s", refusal->text);
}

Test(coordinator, takes_the_best_arithmetic_that_all_have)
{
    struct coordinator *c = start(1);
    form_with(c, (const char *const[]){"avx512", "avx2", "avx512"});
    for (coordinator_link link = 1; link <= SIZE; link++)
        cr_assert_str_eq(world(link)->arithmetic, "avx2");
    coordinator_free(c);
}

static void stand_with(struct coordinator *c, coordinator_link link, const char *arithmetic)
{
    struct coordination_message message = {.type = COORDINATION_STANDING, .holds_state = true, .step = 40};
    snprintf(message.arithmetic, sizeof(message.arithmetic), "%s", arithmetic);
    coordinator_receive(c, link, &message, 0);
}

/* And it stays: bits that have changed once do not again for a better processor. */
Test(coordinator, a_crew_goes_on_with_the_lesser_arithmetic_of_a_later_member)
{
    struct coordinator *c = start(1);
    form_with(c, (const char *const[]){"avx512", "avx512", "avx512"});
    for (unsigned time = 0; time < 2; time++) {
        coordinator_link link = 4 + time;
        coordinator_link_closed(c, time == 0 ? 2 : 4, "connection closed", 100);
        join_with(c, link, 1, time == 0 ? "avx2" : "avx512");
        stand(c, 1, true, 9, 1 + time, 100);
        stand(c, 3, true, 9, 1 + time, 100);
        stand(c, link, false, 0, 0, 100);
        cr_assert_eq(world(link)->generation.counter, 2 + time);
        cr_assert_str_eq(world(link)->arithmetic, "avx2");
        cr_assert_str_eq(world(1)->arithmetic, "avx2");
    }
    coordinator_free(c);
}

Test(coordinator, a_member_without_a_common_arithmetic_is_refused_and_the_next_taken)
{
    struct coordinator *c = start(1);
    form_with(c, (const char *const[]){"avx512", "avx2", "avx512"});
    coordinator_link_closed(c, 2, "connection closed", 100);
    join_with(c, 4, 1, "sm_90");
    assert_lacking(4, "the crew computes with avx2 arithmetic and the device of worker 1 has sm_90 alone");
    join_with(c, 5, 1, "avx512");
    stand(c, 1, true, 9, 1, 100);
    stand(c, 3, true, 9, 1, 100);
    stand(c, 5, false, 0, 0, 100);
    cr_assert_str_eq(world(5)->arithmetic, "avx2");
    coordinator_free(c);
}

Test(coordinator, a_member_with_another_number_of_threads_is_refused)
{
    struct coordinator *c = start(1);
    form_with(c, (const char *const[]){"avx512/2", "avx2/2", "avx512/4"});
    assert_lacking(3, "the crew's program runs on 2 threads and that of worker 2 on 4, which gives other bits: set");
    cr_assert_str_eq(inboxes[3].last[COORDINATION_REFUSED].arithmetic, "avx2/2");
    join_with(c, 4, 2, "avx512/2");
    stand(c, 4, false, 0, 0, 0);
    cr_assert_str_eq(world(4)->arithmetic, "avx2/2");
    coordinator_free(c);
}

Test(coordinator, a_new_chief_keeps_the_arithmetic_of_the_state)
{
    struct coordinator *c = start(1);
    for (unsigned rank = 0; rank < SIZE; rank++)
        join_with(c, rank + 1, rank, "avx512");
    stand(c, 1, false, 0, 0, 0);
    stand_with(c, 2, "avx2");
    stand(c, 3, false, 0, 0, 0);
    cr_assert_str_eq(world(1)->arithmetic, "avx2");
    coordinator_free(c);
}

/* Starts the coordinator of a new chief, with two workers that are alive and hold the state. */
static struct coordinator *start_of_chief(const char *own, const char *others)
{
    struct coordinator *c = start(1);
    join_with(c, 1, 0, own);
    join_with(c, 2, 1, others);
    join_with(c, 3, 2, others);
    stand(c, 1, false, 0, 0, 0);
    stand_with(c, 2, others);
    stand_with(c, 3, others);
    return c;
}

Test(coordinator, a_new_chief_of_a_lesser_arithmetic_brings_the_crew_to_it)
{
    struct coordinator *c = start_of_chief("portable", "avx2");
    for (coordinator_link link = 1; link <= SIZE; link++)
        cr_assert_str_eq(world(link)->arithmetic, "portable");
    coordinator_free(c);
}

Test(coordinator, a_new_chief_that_has_no_arithmetic_in_common_goes)
{
    struct coordinator *c = start_of_chief("sm_90", "avx2");
    assert_lacking(1, "worker 0 has sm_90 alone");
    cr_assert_eq(inboxes[2].count[COORDINATION_WORLD], 0);
    coordinator_free(c);
}

Test(coordinator, without_a_common_arithmetic_the_chiefs_counts)
{
    struct coordinator *c = start(1);
    form_with(c, (const char *const[]){"sm_90", "sm_90", "avx512"});
    assert_lacking(3, "sm_90");
    cr_assert_eq(inboxes[1].count[COORDINATION_WORLD], 0);
    coordinator_free(c);
}

Test(coordinator, members_that_need_not_compute_alike_are_not_compared)
{
    struct coordinator *c = start(1);
    form(c);
    cr_assert_str_eq(world(1)->arithmetic, "");
    coordinator_free(c);
}

/* ---------------------------------------------------------------- elastic crews */

/* Nothing is known yet of the seats from `expected` on. */
static struct coordinator *start_unknowing(unsigned least, unsigned expected)
{
    memset(inboxes, 0, sizeof(inboxes));
    return coordinator_new(&(struct coordinator_options){.job_uid = "job",
                                                         .generation = {1, 1, 0},
                                                         .size = SIZE,
                                                         .least = least,
                                                         .expected = expected,
                                                         .start_ms = 10000,
                                                         .seats = seats,
                                                         .logical_shards = 12,
                                                         .suspicion_ms = 2000,
                                                         .death_ms = 5000,
                                                         .send = keep});
}

static struct coordinator *start_elastic(unsigned least, unsigned expected)
{
    struct coordinator *c = start_unknowing(least, expected);
    for (unsigned rank = expected; rank < SIZE; rank++)
        coordinator_seat_absent(c, rank, 0);
    return c;
}

static void plan(struct coordinator *c, coordinator_link link, int64_t step, uint32_t counter)
{
    struct coordination_message message = {.type = COORDINATION_STANDING,
                                           .generation = {1, 1, counter},
                                           .holds_state = true,
                                           .planned = true,
                                           .step = step};
    coordinator_receive(c, link, &message, 100);
}

static void form_two(struct coordinator *c)
{
    join(c, 1, 0, 1, 0);
    stand(c, 1, false, 0, 0, 0);
    join(c, 2, 1, 1, 0);
    stand(c, 2, false, 0, 0, 0);
}

Test(coordinator, an_elastic_crew_starts_with_the_expected_members)
{
    struct coordinator *c = start_elastic(1, 2);
    form_two(c);
    cr_assert_eq(world(1)->size, 2);
    cr_assert_eq(world(2)->rank, 1);
    char text[MEMBER_TEXT_MAX];
    coordinator_describe(c, 100, text);
    cr_assert_str_empty(text);
    coordinator_free(c);
}

Test(coordinator, a_first_world_waits_for_the_expected_but_not_for_ever)
{
    struct coordinator *c = start_elastic(1, 2);
    join(c, 1, 0, 1, 0);
    stand(c, 1, false, 0, 0, 0);
    for (int64_t now = 500; now < 10000; now += 500) {
        beat(c, 1, now);
        coordinator_tick(c, now, now);
    }
    cr_assert_eq(inboxes[1].count[COORDINATION_WORLD], 0);
    cr_assert_not_null(strstr(inboxes[1].last[COORDINATION_WAITING].text, "worker 1 (has not joined yet)"));
    cr_assert_null(strstr(inboxes[1].last[COORDINATION_WAITING].text, "worker 2"));
    coordinator_tick(c, 10000, 10000);
    cr_assert_eq(world(1)->size, 1);
    coordinator_free(c);
}

/* Beats as the chief would, until `until`. */
static void pass_time(struct coordinator *c, int64_t from, int64_t until)
{
    for (int64_t now = from; now <= until; now += 500) {
        beat(c, 1, now);
        coordinator_tick(c, now, now);
    }
}

Test(coordinator, a_survivor_beyond_the_expected_brings_its_state)
{
    struct coordinator *c = start_unknowing(1, 1);
    join(c, 1, 0, 2, 0);
    stand(c, 1, false, 0, 0, 0);
    coordinator_seat_absent(c, 2, 100);
    cr_assert_eq(inboxes[1].count[COORDINATION_WORLD], 0, "worker 1 may be alive");
    char text[MEMBER_TEXT_MAX];
    coordinator_describe(c, 100, text);
    cr_assert_str_eq(text, "waiting for worker 1 (has not joined yet)");
    join(c, 2, 1, 1, 200);
    coordinator_seat_absent(c, 1, 250); /* what was dialled before it joined */
    cr_assert_eq(inboxes[1].count[COORDINATION_WORLD], 0, "worker 1 has not reported");
    stand(c, 2, true, 552, 0, 300);
    cr_assert_eq(world(1)->size, 2);
    cr_assert_eq(world(1)->source, WORLD_SOURCE_PEER);
    cr_assert_eq(world(1)->step, 552);
    coordinator_free(c);
}

Test(coordinator, a_first_world_waits_until_it_is_known_that_nobody_else_is_there)
{
    struct coordinator *c = start_unknowing(1, 1);
    join(c, 1, 0, 2, 0);
    stand(c, 1, false, 0, 0, 0);
    coordinator_seat_absent(c, 1, 100);
    cr_assert_eq(inboxes[1].count[COORDINATION_WORLD], 0);
    coordinator_seat_absent(c, 2, 200);
    cr_assert_eq(world(1)->size, 1);
    coordinator_free(c);
}

Test(coordinator, seats_of_which_nothing_is_known_delay_a_first_world_as_long_as_a_silent_member)
{
    struct coordinator *c = start_unknowing(1, 1);
    join(c, 1, 0, 2, 0);
    stand(c, 1, false, 0, 0, 0);
    pass_time(c, 500, 4500);
    cr_assert_eq(inboxes[1].count[COORDINATION_WORLD], 0);
    coordinator_tick(c, 5000, 5000);
    cr_assert_eq(world(1)->size, 1);
    coordinator_free(c);
}

Test(coordinator, a_first_world_waits_no_longer_than_its_time_for_one_that_has_joined)
{
    struct coordinator *c = start_elastic(1, 1);
    join(c, 2, 1, 1, 0);
    join(c, 1, 0, 2, 0);
    stand(c, 1, false, 0, 0, 0);
    for (int64_t now = 500; now < 10000; now += 500) {
        beat(c, 2, now);
        pass_time(c, now, now);
    }
    cr_assert_eq(inboxes[1].count[COORDINATION_WORLD], 0);
    coordinator_tick(c, 10000, 10000);
    cr_assert_eq(world(1)->size, 1);
    coordinator_free(c);
}

Test(coordinator, a_newcomer_waits_for_a_boundary_that_all_have_agreed_on)
{
    struct coordinator *c = start_elastic(2, 2);
    form_two(c);
    join(c, 3, 2, 1, 50);
    cr_assert_eq(coordinator_newcomers(c), 0);
    stand(c, 3, false, 0, 0, 50);
    cr_assert_eq(coordinator_newcomers(c), 1);
    cr_assert_eq(inboxes[1].count[COORDINATION_REFORM], 0);
    plan(c, 1, 7, 1);
    cr_assert_eq(inboxes[1].count[COORDINATION_WORLD], 1);
    plan(c, 2, 7, 1);
    cr_assert_eq(inboxes[1].count[COORDINATION_REFORM], 0);
    cr_assert_eq(world(3)->size, 3);
    cr_assert_eq(world(3)->rank, 2);
    cr_assert_eq(world(3)->step, 7);
    cr_assert(world(3)->receives[2] && !world(3)->receives[1]);
    cr_assert_eq(coordinator_newcomers(c), 0);
    coordinator_free(c);
}

Test(coordinator, planned_reports_go_with_a_generation_that_ends)
{
    struct coordinator *c = start_elastic(1, 2);
    form_two(c);
    plan(c, 1, 7, 1);
    coordinator_link_closed(c, 2, "connection closed", 100);
    cr_assert_eq(inboxes[1].count[COORDINATION_REFORM], 1);
    cr_assert_eq(inboxes[1].count[COORDINATION_WORLD], 1);
    stand(c, 1, true, 7, 1, 100);
    cr_assert_eq(world(1)->size, 1);
    coordinator_free(c);
}

Test(coordinator, ranks_close_over_an_empty_seat)
{
    struct coordinator *c = start_elastic(2, 3);
    form(c);
    plan(c, 1, 7, 1);
    plan(c, 3, 7, 1);
    cr_assert_eq(inboxes[1].count[COORDINATION_WORLD], 1);
    coordinator_receive(c, 2, &(struct coordination_message){.type = COORDINATION_LEAVE}, 100);
    cr_assert_eq(inboxes[1].count[COORDINATION_WORLD], 2);
    cr_assert_eq(world(3)->size, 2);
    cr_assert_eq(world(3)->rank, 1);
    cr_assert_eq(world(3)->members[1], 2);
    cr_assert_str_eq(world(3)->peers[1].address, "10.0.0.2");
    coordinator_free(c);
}

Test(coordinator, fewer_than_the_least_wait_in_place)
{
    struct coordinator *c = start_elastic(2, 2);
    form_two(c);
    coordinator_link_closed(c, 2, "connection closed", 100);
    stand(c, 1, true, 7, 1, 100);
    cr_assert_eq(inboxes[1].count[COORDINATION_WORLD], 1);
    char text[MEMBER_TEXT_MAX];
    coordinator_describe(c, 3100, text);
    cr_assert_not_null(strstr(text, "worker 1 (connection closed 3 s ago)"), "%s", text);
    join(c, 4, 2, 1, 200);
    stand(c, 4, false, 0, 0, 200);
    cr_assert_eq(world(1)->size, 2);
    cr_assert_eq(world(4)->members[1], 2);
    coordinator_free(c);
}

/* ---------------------------------------------------------------- loose crews */

Test(coordinator, a_loose_crew_takes_each_change_as_it_comes)
{
    memset(inboxes, 0, sizeof(inboxes));
    struct coordinator *c = coordinator_new(&(struct coordinator_options){.job_uid = "job",
                                                                          .generation = {1, 1, 0},
                                                                          .size = SIZE,
                                                                          .seats = seats,
                                                                          .suspicion_ms = 2000,
                                                                          .death_ms = 5000,
                                                                          .loose = true,
                                                                          .send = keep});
    form(c);
    cr_assert_eq(world(1)->generation.counter, 1);
    cr_assert_eq(world(1)->size, 3);
    coordinator_link_closed(c, 2, "connection closed", 100);
    cr_assert_eq(inboxes[1].count[COORDINATION_REFORM], 0);
    cr_assert_eq(world(1)->generation.counter, 2);
    cr_assert_eq(world(1)->size, 2);
    cr_assert_eq(world(3)->members[1], 2);
    char text[MEMBER_TEXT_MAX];
    coordinator_describe(c, 150, text);
    cr_assert_str_empty(text);
    join(c, 4, 1, 2, 200);
    cr_assert_eq(world(1)->generation.counter, 2);
    stand(c, 4, false, 0, 0, 200);
    cr_assert_eq(world(4)->generation.counter, 3);
    cr_assert_eq(world(4)->size, 3);
    cr_assert_eq(world(1)->size, 3);
    beat(c, 1, 300);
    cr_assert_eq(inboxes[1].count[COORDINATION_WORLD], 3);
    coordinator_free(c);
}
