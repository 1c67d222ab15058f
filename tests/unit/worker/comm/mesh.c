/* SPDX-License-Identifier: Apache-2.0
 *
 * Rank 0 of two connects. The test plays all processes that call it.
 */
#include "worker/comm/mesh.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "tests/unit/opening.h"
#include "worker/comm/crew_key.h"
#include "worker/comm/handshake.h"

struct house {
    struct endpoint *endpoint;
    struct collective_options options;
    struct collective_peer peers[2];
    struct link links[CREW_SIZE_MAX];
    int cancel, status;
    int64_t deadline_ms;
    struct error error;
    pthread_t thread;
};

static void *connect_all(void *context)
{
    struct house *house = context;
    house->status = mesh_connect(&house->options, house->cancel, house->deadline_ms, house->links, &house->error);
    return NULL;
}

static void house_set_up(struct house *house, int64_t deadline_ms)
{
    *house = (struct house){.deadline_ms = deadline_ms, .cancel = eventfd(0, EFD_CLOEXEC)};
    cr_assert_eq(endpoint_open("127.0.0.1", 0, &house->endpoint, NULL), 0);
    for (unsigned rank = 0; rank < 2; rank++)
        snprintf(house->peers[rank].address, sizeof(house->peers[rank].address), "127.0.0.1");
    house->peers[1].port = 7;
    house->options = (struct collective_options){.endpoint = house->endpoint,
                                                 .job_uid = "job",
                                                 .generation = {1, 2, 3},
                                                 .size = 2,
                                                 .peers = house->peers,
                                                 .transport = COLLECTIVE_TRANSPORT_TCP};
    for (unsigned i = 0; i < CREW_SIZE_MAX; i++)
        link_init(&house->links[i]);
}

static void house_open(struct house *house, int64_t deadline_ms)
{
    house_set_up(house, deadline_ms);
    cr_assert_eq(pthread_create(&house->thread, NULL, connect_all, house), 0);
}

/* Returns the result of mesh_connect. */
static int house_wait(struct house *house)
{
    pthread_join(house->thread, NULL);
    for (unsigned i = 0; i < CREW_SIZE_MAX; i++)
        link_release(&house->links[i]);
    endpoint_free(house->endpoint);
    close(house->cancel);
    return house->status;
}

static int knock(const struct house *house)
{
    return opening_connect("127.0.0.1", endpoint_port(house->endpoint));
}

static enum greeting_answer answer_to(const struct house *house, const struct greeting *greeting)
{
    return opening_answer_to("127.0.0.1", endpoint_port(house->endpoint), greeting);
}

static const struct greeting good = {.generation = {1, 2, 3}, .rank = 1, .size = 2, .job_uid = "job"};

Test(mesh, every_greeting_gets_the_answer_it_deserves, .timeout = 120)
{
    struct house house;
    struct greeting greeting = good;
    house_open(&house, 20000);
    greeting.generation.counter = 2;
    cr_assert_eq(answer_to(&house, &greeting), ANSWER_STALE);
    greeting = good;
    snprintf(greeting.job_uid, sizeof(greeting.job_uid), "another");
    cr_assert_eq(answer_to(&house, &greeting), ANSWER_REFUSED);
    for (uint32_t rank = 0; rank <= 2; rank += 2) {
        greeting = good;
        greeting.rank = rank;
        cr_assert_eq(answer_to(&house, &greeting), ANSWER_REFUSED, "rank %u", rank);
    }
    greeting = good;
    greeting.size = 3;
    cr_assert_eq(answer_to(&house, &greeting), ANSWER_REFUSED);
    greeting = good;
    greeting.to = 1;
    cr_assert_eq(answer_to(&house, &greeting), ANSWER_REFUSED, "the greeting is for another rank");
    cr_assert_eq(answer_to(&house, &good), ANSWER_TCP);
    cr_assert_eq(house_wait(&house), 0);
}

Test(mesh, a_newer_generation_waits_until_it_is_this_ones, .timeout = 120)
{
    struct house house;
    struct greeting newer = good;
    struct opening opening;
    newer.generation.counter++;
    house_open(&house, 20000);
    int early = knock(&house);
    opening_greet(early, &opening, &newer);
    cr_assert_eq(answer_to(&house, &good), ANSWER_TCP);
    pthread_join(house.thread, NULL);
    cr_assert_eq(house.status, 0);
    link_release(&house.links[1]);
    house.options.generation = newer.generation;
    cr_assert_eq(pthread_create(&house.thread, NULL, connect_all, &house), 0);
    cr_assert_eq(opening_hear_answer(early, &opening), ANSWER_TCP);
    cr_assert_eq(house_wait(&house), 0);
    close(early);
}

Test(mesh, noise_is_shown_the_door, .timeout = 120)
{
    struct house house;
    struct opening opening;
    unsigned char noise[GREETING_BYTES];
    house_open(&house, 20000);
    memset(noise, 0x5a, sizeof(noise));
    int incoming = knock(&house);
    opening_hear_challenge(incoming, &opening);
    cr_assert_eq(send(incoming, noise, sizeof(noise), MSG_NOSIGNAL), (ssize_t)sizeof(noise));
    cr_assert(opening_is_ended(incoming));
    close(incoming);
    int mute = knock(&house); /* says no more: holds nobody up */
    cr_assert_eq(send(mute, noise, 3, MSG_NOSIGNAL), 3);
    cr_assert_eq(answer_to(&house, &good), ANSWER_TCP);
    cr_assert_eq(house_wait(&house), 0);
    close(mute);
}

/* An attacker that has recorded a whole opening sends the same bytes again. */
Test(mesh, a_recorded_opening_is_of_no_use, .timeout = 120)
{
    struct house house;
    struct opening recorded, fresh;
    crew_key_set("the key of this crew", 20);
    house_open(&house, 20000);
    struct greeting greeting = good;
    greeting.generation.counter--; /* leaves the seat free */
    int member = knock(&house);
    opening_greet(member, &recorded, &greeting);
    cr_assert_eq(opening_hear_answer(member, &recorded), ANSWER_STALE);
    close(member);
    int stranger = knock(&house);
    opening_hear_challenge(stranger, &fresh);
    cr_assert_neq(memcmp(fresh.challenge, recorded.challenge, CHALLENGE_BYTES), 0);
    opening_send_greeting(stranger, &recorded);
    cr_assert(opening_is_ended(stranger));
    close(stranger);
    cr_assert_eq(answer_to(&house, &good), ANSWER_TCP);
    cr_assert_eq(house_wait(&house), 0);
    crew_key_set(NULL, 0);
}

Test(mesh, ranks_missing_at_the_deadline_are_named, .timeout = 120)
{
    struct house house;
    house_open(&house, 50);
    cr_assert_eq(house_wait(&house), -1);
    cr_assert_eq(house.error.kind, ERROR_TIMEOUT);
    cr_assert_not_null(strstr(house.error.message, "rank 1 (127.0.0.1:7)"), "%s", house.error.message);
}

Test(mesh, can_be_called_off, .timeout = 120)
{
    struct house house;
    house_open(&house, 20000);
    cr_assert_eq(eventfd_write(house.cancel, 1), 0);
    cr_assert_eq(house_wait(&house), -1);
    cr_assert_eq(house.error.kind, ERROR_CANCELLED);
}

/* Rank 1, which dials; the test plays rank 0. */
static int await_call(struct house *house, int *ret_listener)
{
    union socket_address where;
    socklen_t size = sizeof where;
    cr_assert_eq(socket_address_parse("127.0.0.1", 0, &where, NULL), 0);
    *ret_listener = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(bind(*ret_listener, &where.any, socket_address_size(&where)), 0);
    cr_assert_eq(listen(*ret_listener, 8), 0);
    cr_assert_eq(getsockname(*ret_listener, &where.any, &size), 0);
    house_set_up(house, 20000);
    house->options.rank = 1;
    house->peers[0].port = socket_address_port(&where);
    cr_assert_eq(pthread_create(&house->thread, NULL, connect_all, house), 0);
    return accept(*ret_listener, NULL, NULL);
}

/* Answers the greeting of a dialler `after_ms` later. `proved_for`: the opening that the answer is proved for, NULL: this one. */
static void answer(int dialler, const struct opening *challenge, enum greeting_answer what,
                   const struct opening *proved_for, unsigned after_ms)
{
    struct opening opening = *challenge;
    unsigned char bytes[GREETING_ANSWER_BYTES];
    cr_assert_eq(send(dialler, opening.challenge, CHALLENGE_BYTES, MSG_NOSIGNAL), CHALLENGE_BYTES);
    cr_assert_eq(recv(dialler, opening.greeting, GREETING_BYTES, MSG_WAITALL), GREETING_BYTES);
    greeting_answer_encode(what, proved_for ? proved_for : &opening, bytes);
    (void)usleep(after_ms * 1000);
    cr_assert_eq(send(dialler, bytes, sizeof bytes, MSG_NOSIGNAL), (ssize_t)sizeof bytes);
}

/* "Superseded" ends a worker: only a member can say it. */
Test(mesh, an_answer_must_be_proved_for_this_connection, .timeout = 120)
{
    struct house house;
    struct opening challenge, another = {0};
    int listener;
    crew_key_set("the key of this crew", 20);
    cr_assert_eq(challenge_make(&challenge, NULL), 0);
    int first = await_call(&house, &listener);
    answer(first, &challenge, ANSWER_STALE, &another, 0); /* an answer from another connection */
    int second = accept(listener, NULL, NULL);
    answer(second, &challenge, ANSWER_STALE, NULL, 0);
    cr_assert_eq(house_wait(&house), -1);
    cr_assert_eq(house.error.kind, ERROR_STALE, "%s", house.error.message);
    close(first);
    close(second);
    close(listener);
    crew_key_set(NULL, 0);
}

/* A peer may take a connection that it was greeted on when its own step is over: longer than a handshake may take before that. */
Test(mesh, a_connection_is_kept_until_the_peer_answers, .timeout = 120)
{
    struct house house;
    struct opening challenge;
    int listener;
    cr_assert_eq(challenge_make(&challenge, NULL), 0);
    int call = await_call(&house, &listener);
    answer(call, &challenge, ANSWER_TCP, NULL, HANDSHAKE_NS / 1000000 + 500);
    cr_expect_eq(house_wait(&house), 0, "%s", house.error.message);
    close(call);
    close(listener);
}
