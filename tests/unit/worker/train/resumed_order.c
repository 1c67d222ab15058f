/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/resumed_order.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct sampler sampler = {.seed = 7, .count = 600};

/* Makes a manifest of step 5 with these values. */
static struct manifest manifest_of(int64_t seed, int64_t count, int64_t consumed)
{
    struct manifest manifest = {.step = 5, .data_epoch = 1, .examples_consumed = consumed, .seed = seed};
    const struct sampler then = {.seed = (uint64_t)seed, .count = count};
    manifest.model = json_new_object();
    resumed_order_describe(manifest.model, &then, 24);
    return manifest;
}

static int check(int64_t seed, int64_t count, int64_t consumed, struct error *error)
{
    struct manifest manifest = manifest_of(seed, count, consumed);
    int result = resumed_order_check(&manifest, &sampler, error);
    manifest_release(&manifest);
    return result;
}

Test(resumed_order, within_an_epoch_it_is_the_same)
{
    struct error error = ERROR_INIT;
    cr_assert_eq(check(7, 600, 250, &error), 0, "%s", error.message);
    cr_assert_eq(check(8, 600, 250, &error), -1);
    cr_assert_eq(error.kind, ERROR_INVALID);
    cr_assert_not_null(strstr(error.message, "training.seed 8; with 7 it would differ"), "%s", error.message);
    cr_assert_eq(check(7, 601, 250, &error), -1);
    cr_assert_not_null(strstr(error.message, "examples of 601; with 600 it would differ"), "%s", error.message);
}

Test(resumed_order, an_epoch_that_begins_is_drawn_anew)
{
    cr_assert_eq(check(8, 601, 0, NULL), 0);
}

Test(resumed_order, what_an_earlier_release_did_not_tell_is_believed)
{
    const struct manifest manifest = {.step = 5, .examples_consumed = 250, .seed = 7};
    cr_assert_eq(resumed_order_check(&manifest, &sampler, NULL), 0);
}

Test(resumed_order, the_batch_is_known_unless_an_earlier_release_wrote_it)
{
    struct manifest manifest = manifest_of(7, 600, 250);
    const struct manifest earlier = {.step = 5};
    cr_expect_eq(resumed_order_batch(&manifest), 24);
    cr_expect_eq(resumed_order_batch(&earlier), 0);
    manifest_release(&manifest);
}
