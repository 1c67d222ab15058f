/* SPDX-License-Identifier: Apache-2.0
 *
 * A client of a scripted server, as the tests of client, informer, lease and events need it.
 */
#ifndef COXSWAIN_TESTS_LOOP_FIXTURE_H
#define COXSWAIN_TESTS_LOOP_FIXTURE_H

#include <criterion/criterion.h>

#include "common/clock.h"
#include "common/memory.h"
#include "operator/kube/client.h"
#include "tests/unit/scripted_server.h"

static struct event_loop *loop;
static struct scripted_server server;
static struct kube_client *client;

static inline void fixture_start(scripted_handler *handler, const char *token_file,
                                 const struct kube_client_options *options)
{
    struct kube_client_options quick = options ? *options : (struct kube_client_options){0};
    quick.retry_base_ms = quick.retry_base_ms ? quick.retry_base_ms : 2;
    quick.retry_ceiling_ms = quick.retry_ceiling_ms ? quick.retry_ceiling_ms : 10;
    scripted_server_start(&server, handler, NULL);
    SCOPED_FREE char *address = memory_format("http://127.0.0.1:%d", server.port);
    struct kube_config config = {
        .server = address, .token = token_file ? (char[]){"old"} : NULL, .token_file = (char *)token_file};
    cr_assert_eq(event_loop_new(&loop, NULL), 0);
    cr_assert_eq(kube_client_new(loop, &config, &quick, &client, NULL), 0);
}

/* As often as is wished. */
static inline void fixture_stop(void)
{
    kube_client_free(client);
    event_loop_free(loop);
    client = NULL;
    loop = NULL;
}

/* Turns the loop until `condition` holds; a minute of nothing fails the test. */
#define LOOP_UNTIL(condition)                                                                                          \
    do {                                                                                                               \
        for (int64_t give_up = clock_monotonic_ns() + 60000000000; !(condition);) {                                    \
            cr_assert_lt(clock_monotonic_ns(), give_up, "never came: %s", #condition);                                 \
            event_loop_turn(loop, 50, NULL);                                                                           \
        }                                                                                                              \
    } while (0)

/* The last answer, and how many there were. */
static struct {
    int calls;
    int status;
    char reason[64];
    char name[64];
    struct error error;
} answer;

static inline void on_answer(void *context, const struct kube_answer *given)
{
    (void)context;
    answer.calls++;
    answer.status = given->status;
    snprintf(answer.reason, sizeof answer.reason, "%s", given->reason);
    snprintf(answer.name, sizeof answer.name, "%s", json_string_at(given->object, "metadata.name", ""));
    answer.error = given->error ? *given->error : (struct error)ERROR_INIT;
}

static const struct kube_call_options plain = {.answered = on_answer};
static const struct resource_path pod = {{"", "v1", "pods"}, "n", "p", NULL};
static const struct resource_path pods = {{"", "v1", "pods"}, "n", NULL, NULL};

#endif
