/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "worker/train/ps_chief_parts.h"

/* 25 batches, the last of one example: tickets 48 and 98 have shares without any. */
static struct trainer trainer = {.sampler.count = 577, .plan.global_batch = 24};

static void read_source(const char *text, unsigned servers, struct recovery_source *source)
{
    const struct ps_chief chief = {.trainer = &trainer, .per_step = 2, .placement.server_count = servers};
    struct error error = ERROR_INIT;
    struct json *tickets;
    *source = (struct recovery_source){.step = 24, .consumed = 576};
    cr_assert(json_parse(text, strlen(text), 1000, &tickets, &error) == 0, "%s", error.message);
    cr_assert(ps_chief_read_tickets(&chief, tickets, source, &error) == 0, "%s", error.message);
    cr_assert(source->server_count == servers);
    json_free(tickets);
}

Test(ps_chief_start, an_older_checkpoint_has_lost_no_update_with_a_share_without_examples)
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

Test(ps_chief_start, what_a_checkpoint_says_of_shares_without_examples_is_taken)
{
    struct recovery_source source;
    read_source("{\"perStep\":2,\"servers\":[{\"updates\":47,\"empty\":3,\"applied\":{\"low\":50,\"above\":[]}}]}", 1,
                &source);
    cr_expect(source.empty[0] == 3);
    recovery_source_release(&source);
}

/* It was made by a crew whose shares all had examples, then resumed with another. */
Test(ps_chief_start, an_older_checkpoint_has_no_more_empty_shares_than_tickets_without_update)
{
    struct recovery_source source;
    read_source("{\"perStep\":2,\"servers\":[{\"updates\":50,\"applied\":{\"low\":50,\"above\":[]}}]}", 1, &source);
    cr_expect(source.empty[0] == 0);
    recovery_source_release(&source);
}
