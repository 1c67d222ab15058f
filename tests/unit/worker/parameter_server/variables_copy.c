/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/variables_copy.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "worker/comm/link.h"

/* Several segments, the last one short. */
#define ELEMENTS (5 * 65536 + 123)
#define UPDATES 8

static struct parameter_tensor tensors[] = {
    {.name = "w", .shape = {ELEMENTS}, .rank = 1, .offset = 0, .elements = ELEMENTS}};
static const struct parameter_layout layout = {.tensors = tensors, .tensor_count = 1, .elements = ELEMENTS};
static const struct optimizer_spec momentum = {.type = OPTIMIZER_SGD, .learning_rate = 1, .momentum = 0.5};

static struct device *device;
static struct placement placement;
static struct variables variables;
static struct variables_copy copy;
static float flat[ELEMENTS];

static void set_up(void)
{
    const struct ticket_set none = {0};
    cr_assert(device_open(&(struct device_options){.threads = 1}, &device, NULL) == 0);
    placement_init(&placement, &layout, 1);
    const struct variables_options options = {.device = device, .optimizer = &momentum, .placement = &placement};
    cr_assert(variables_init(&variables, &options, NULL) == 0);
    variables_start(&variables, flat, &none, 0);
    for (int64_t i = 0; i < ELEMENTS; i++)
        flat[i] = 1;
}

static void tear_down(void)
{
    variables_copy_release(&copy);
    variables_release(&variables);
    placement_release(&placement);
    device_close(device);
}

static void apply(int64_t ticket)
{
    enum update_verdict verdict;
    const struct update update = {.ticket = ticket, .learning_rate = 1, .gradient_scale = 1, .gradients = flat};
    cr_assert(variables_apply(&variables, &update, &verdict, NULL) == 0 && verdict == UPDATE_APPLIED);
}

/* Expects the values after `updates` updates, each of which has changed everything. */
static void expect_moment(int64_t updates, float parameter, float velocity)
{
    cr_expect(copy.values.updates == updates && copy.values.applied.low == updates);
    for (int64_t i = 0; i < ELEMENTS; i++)
        cr_assert(copy.values.parameters[i] == parameter && copy.values.slots[0][i] == velocity, "element %lld: %g, %g",
                  (long long)i, (double)copy.values.parameters[i], (double)copy.values.slots[0][i]);
}

Test(variables_copy, what_is_updated_meanwhile_is_copied_first)
{
    set_up();
    apply(0);
    float parameter = variables.parameters[0], velocity = variables.slots[0][0];
    cr_assert(variables_copy_begin(&copy, &variables, VARIABLES_WITH_SLOTS, NULL) == 0);
    apply(1);
    apply(2);
    variables_copy_complete(&copy);
    expect_moment(1, parameter, velocity);
    cr_expect(variables.parameters[0] != parameter);
    variables_copy_end(&copy, &variables);
    tear_down();
}

static void write_part(int64_t first, int64_t count)
{
    variables_keep(&variables, first, count);
    for (int64_t i = first; i < first + count; i++)
        variables.parameters[i] = 7;
}

Test(variables_copy, a_part_alone_may_be_written)
{
    set_up();
    cr_assert(variables_copy_begin(&copy, &variables, VARIABLES_WITH_SLOTS, NULL) == 0);
    write_part(65535, 2); /* of two segments */
    write_part(ELEMENTS - 1, 1);
    write_part(ELEMENTS - 1, 0);
    variables_copy_complete(&copy);
    expect_moment(0, 0, 0);
    variables_copy_end(&copy, &variables);
    write_part(0, ELEMENTS);
    expect_moment(0, 0, 0);
    tear_down();
}

static void *complete(void *context)
{
    variables_copy_complete(context);
    return NULL;
}

/* Both threads copy; again and again, with the same memory. */
Test(variables_copy, updates_go_on_while_another_thread_copies)
{
    set_up();
    for (int64_t ticket = 0; ticket < UPDATES; ticket += 2) {
        pthread_t thread;
        float parameter = variables.parameters[0], velocity = variables.slots[0][0];
        cr_assert(variables_copy_begin(&copy, &variables, VARIABLES_WITH_SLOTS, NULL) == 0);
        cr_assert(pthread_create(&thread, NULL, complete, &copy) == 0);
        apply(ticket);
        apply(ticket + 1);
        pthread_join(thread, NULL);
        expect_moment(ticket, parameter, velocity);
        variables_copy_end(&copy, &variables);
    }
    tear_down();
}

/* ---------------------------------------------------------------- sending */

static unsigned char received[ELEMENTS * sizeof(float)];

/* Receives as much as the link has at once, about a socket's buffer. */
static void receive(struct link *link, size_t *length)
{
    for (size_t got; (got = link_read(link, received + *length, sizeof received - *length)) > 0;)
        *length += got;
}

/* Sends all, in turns with the updates that are given the number of the turn. */
static void pass_on(struct variables_copy *from, void (*update)(int64_t turn))
{
    struct link out, in;
    int sockets[2];
    size_t given = 0, length = 0;
    cr_assert(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    link_init(&out);
    link_init(&in);
    out.socket = sockets[0];
    in.socket = sockets[1];
    for (int64_t turn = 0; given < sizeof received; turn++) {
        for (size_t step = 1; step > 0 && given < sizeof received; given += step)
            step = variables_copy_give(from, given, &out);
        update(turn);
        receive(&in, &length);
    }
    receive(&in, &length);
    cr_assert(length == sizeof received);
    link_release(&out);
    link_release(&in);
}

static void apply_next(int64_t turn)
{
    (void)turn;
    apply(variables.updates);
}

static void apply_none(int64_t turn)
{
    (void)turn;
}

static void expect_sent(float parameter)
{
    float value;
    for (size_t i = 0; i < ELEMENTS; i++) {
        memcpy(&value, received + i * sizeof value, sizeof value);
        cr_assert(value == parameter, "element %zu: %g", i, (double)value);
    }
}

/* A socket takes less than a segment, so that updates come in the middle of each. */
Test(variables_copy, what_is_sent_is_of_one_moment_though_updates_come_in_between)
{
    set_up();
    apply(0);
    float parameter = variables.parameters[0];
    cr_assert(variables_copy_begin(&copy, &variables, VARIABLES_PARAMETERS, NULL) == 0);
    pass_on(&copy, apply_next);
    expect_sent(parameter);
    cr_expect(variables.updates > 2 && variables.parameters[0] != parameter);
    variables_copy_end(&copy, &variables);
    tear_down();
}

Test(variables_copy, what_nobody_updates_is_sent_without_a_copy)
{
    set_up();
    apply(0);
    cr_assert(variables_copy_begin(&copy, &variables, VARIABLES_PARAMETERS, NULL) == 0);
    pass_on(&copy, apply_none);
    expect_sent(variables.parameters[0]);
    for (int64_t i = 0; i < ELEMENTS; i++)
        cr_assert(copy.memory[i] == 0);
    variables_copy_end(&copy, &variables);
    tear_down();
}

Test(variables_copy, several_are_under_way_each_of_its_moment)
{
    struct variables_copy other = {0};
    set_up();
    apply(0);
    float first = variables.parameters[0], velocity = variables.slots[0][0];
    cr_assert(variables_copy_begin(&copy, &variables, VARIABLES_WITH_SLOTS, NULL) == 0);
    apply(1);
    float second = variables.parameters[0];
    cr_assert(variables_copy_begin(&other, &variables, VARIABLES_PARAMETERS, NULL) == 0);
    apply(2);
    variables_copy_complete(&copy);
    expect_moment(1, first, velocity);
    variables_copy_end(&copy, &variables);
    apply(3);
    variables_copy_complete(&other);
    cr_expect(other.values.parameters[ELEMENTS - 1] == second);
    variables_copy_end(&other, &variables);
    variables_copy_end(&other, &variables); /* fine, once more */
    cr_expect(variables.copies == NULL);
    variables_copy_release(&other);
    tear_down();
}

/* ---------------------------------------------------------------- values after an update that is being applied */

static void reach(void *context, int64_t end)
{
    (void)context;
    variables_copy_reach(&copy, end);
}

static void apply_reaching(int64_t ticket)
{
    enum update_verdict verdict;
    const struct update update = {
        .ticket = ticket, .learning_rate = 1, .gradient_scale = 1, .gradients = flat, .reached = reach};
    cr_assert(variables_apply(&variables, &update, &verdict, NULL) == 0 && verdict == UPDATE_APPLIED);
}

Test(variables_copy, values_after_an_update_are_given_as_it_reaches_them)
{
    struct link nowhere;
    set_up();
    link_init(&nowhere);
    cr_assert(variables_copy_expect(&copy, &variables, VARIABLES_PARAMETERS, NULL) == 0);
    cr_expect(variables_copy_give(&copy, 0, &nowhere) == BULK_CONNECTION_LATER);
    variables_copy_reach(&copy, 65536 + 1);
    cr_expect(variables_copy_give(&copy, 65536 * sizeof(float), &nowhere) == BULK_CONNECTION_LATER,
              "a part is not enough");
    variables_copy_end(&copy, &variables);
    cr_assert(variables_copy_expect(&copy, &variables, VARIABLES_PARAMETERS, NULL) == 0);
    apply_reaching(0);
    float parameter = variables.parameters[0];
    apply(1); /* does not spoil it */
    pass_on(&copy, apply_none);
    expect_sent(parameter);
    variables_copy_end(&copy, &variables);
    tear_down();
}
