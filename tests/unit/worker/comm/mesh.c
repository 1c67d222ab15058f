/* SPDX-License-Identifier: Apache-2.0
 *
 * Rank 0 of two connects; the test plays whoever knocks at its port.
 */
#include "worker/comm/mesh.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "worker/comm/frame.h"

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

static void house_open(struct house *house, int64_t deadline_ms)
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
    cr_assert_eq(pthread_create(&house->thread, NULL, connect_all, house), 0);
}

/* What mesh_connect has said. */
static int house_wait(struct house *house)
{
    pthread_join(house->thread, NULL);
    for (unsigned i = 0; i < CREW_SIZE_MAX; i++)
        link_release(&house->links[i]);
    endpoint_free(house->endpoint);
    close(house->cancel);
    return house->status;
}

static int knock(const struct house *house, const void *bytes, size_t length)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(endpoint_port(house->endpoint))};
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    int guest = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(connect(guest, (struct sockaddr *)&address, sizeof(address)), 0);
    cr_assert_eq(send(guest, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
    return guest;
}

/* 0: shown the door without a word. */
static enum greeting_answer answer_to(const struct house *house, const struct greeting *greeting)
{
    unsigned char bytes[GREETING_BYTES], answer_bytes[GREETING_ANSWER_BYTES];
    enum greeting_answer answer = 0;
    greeting_encode(greeting, bytes);
    int guest = knock(house, bytes, sizeof(bytes));
    if (recv(guest, answer_bytes, sizeof(answer_bytes), MSG_WAITALL) == sizeof(answer_bytes))
        cr_assert_eq(greeting_answer_decode(answer_bytes, &answer, NULL), 0);
    close(guest);
    return answer;
}

Test(mesh, every_guest_gets_the_answer_it_deserves, .timeout = 120)
{
    struct house house;
    const struct greeting good = {.generation = {1, 2, 3}, .rank = 1, .size = 2, .job_uid = "job"};
    struct greeting greeting = good;
    house_open(&house, 20000);
    greeting.generation.counter = 2;
    cr_assert_eq(answer_to(&house, &greeting), ANSWER_STALE);
    greeting.generation.counter = 4;
    cr_assert_eq(answer_to(&house, &greeting), ANSWER_LATER);
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
    cr_assert_eq(answer_to(&house, &good), ANSWER_TCP);
    cr_assert_eq(house_wait(&house), 0);
}

Test(mesh, noise_is_shown_the_door, .timeout = 120)
{
    struct house house;
    unsigned char noise[GREETING_BYTES], byte;
    const struct greeting good = {.generation = {1, 2, 3}, .rank = 1, .size = 2, .job_uid = "job"};
    house_open(&house, 20000);
    memset(noise, 0x5a, sizeof(noise));
    int guest = knock(&house, noise, sizeof(noise));
    cr_assert_leq(recv(guest, &byte, 1, 0), 0);
    close(guest);
    int mute = knock(&house, noise, 3); /* says no more: holds nobody up */
    cr_assert_eq(answer_to(&house, &good), ANSWER_TCP);
    cr_assert_eq(house_wait(&house), 0);
    close(mute);
}

Test(mesh, who_is_missing_at_the_deadline_is_named, .timeout = 120)
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
