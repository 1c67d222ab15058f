/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "worker/train/ps_restoring.h"
#include "worker/train/resumed_order.h"

/* 25 batches, the last of one example: tickets 48 and 98 have shares without any. */
static struct trainer trainer = {.sampler.count = 577, .plan = {.global_batch = 24, .shares = 2}};

/* 0: as earlier releases left it. */
static struct json *describe_batch(int64_t batch)
{
    struct json *model = json_new_object();
    if (batch != 0)
        resumed_order_describe(model, &trainer.sampler, batch);
    return model;
}

static void read_source_of(int64_t batch, const char *text, unsigned servers, struct recovery_source *source)
{
    struct error error = ERROR_INIT;
    struct json *tickets;
    trainer.crew.server_count = servers;
    *source = (struct recovery_source){.step = 24, .consumed = 576};
    cr_assert(json_parse(text, strlen(text), 1000, &tickets, &error) == 0, "%s", error.message);
    const struct manifest manifest = {.tickets = tickets, .model = describe_batch(batch)};
    cr_assert(ps_restoring_read_tickets(&trainer, &manifest, source, &error) == 0, "%s", error.message);
    json_free(manifest.model);
    json_free(tickets);
}

static void read_source(const char *text, unsigned servers, struct recovery_source *source)
{
    read_source_of(0, text, servers, source);
    cr_assert(source->server_count == servers);
}

Test(ps_restoring, an_older_checkpoint_has_lost_no_update_with_a_share_without_examples)
{
    struct recovery_source source;
    read_source("{\"perStep\":2,\"servers\":["
                "{\"updates\":49,\"applied\":{\"low\":50,\"above\":[]}},"
                "{\"updates\":49,\"applied\":{\"low\":48,\"above\":[49,98]}},"
                "{\"updates\":48,\"applied\":{\"low\":49,\"above\":[]}}]}",
                3, &source);
    cr_expect(source.empty[0] == 1 && source.empty[1] == 1 && source.empty[2] == 1, "%lld, %lld and %lld are empty",
              (long long)source.empty[0], (long long)source.empty[1], (long long)source.empty[2]);
    recovery_source_release(&source);
}

Test(ps_restoring, what_a_checkpoint_says_of_shares_without_examples_is_taken)
{
    struct recovery_source source;
    read_source("{\"perStep\":2,\"servers\":[{\"updates\":47,\"empty\":3,\"applied\":{\"low\":50,\"above\":[]}}]}", 1,
                &source);
    cr_expect(source.empty[0] == 3);
    recovery_source_release(&source);
}

/* The checkpoint was made by a crew in which every share had examples, and is resumed by another crew. */
Test(ps_restoring, an_older_checkpoint_has_no_more_empty_shares_than_tickets_without_update)
{
    struct recovery_source source;
    read_source("{\"perStep\":2,\"servers\":[{\"updates\":50,\"applied\":{\"low\":50,\"above\":[]}}]}", 1, &source);
    cr_expect(source.empty[0] == 0);
    recovery_source_release(&source);
}

/* Half of the first ticket's examples would count as learnt from, though nobody has. */
Test(ps_restoring, tickets_of_another_batch_stand_for_other_examples)
{
    static const char text[] = "{\"perStep\":2,\"servers\":[{\"updates\":49,\"applied\":{\"low\":48,\"above\":[49]}}]}";
    struct recovery_source source;
    read_source_of(24, text, 1, &source);
    cr_expect_eq(source.server_count, 1);
    recovery_source_release(&source);
    read_source_of(48, text, 1, &source);
    cr_expect_eq(source.server_count, 0, "what is above the step is computed again");
    recovery_source_release(&source);
}
