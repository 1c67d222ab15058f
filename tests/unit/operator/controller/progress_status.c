/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/progress_status.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "operator/controller/progress_poll.h"

Test(progress_status, unknown_keeps_what_was_known)
{
    struct arena arena = {0};
    struct status_document document;
    status_document_init(&document);
    document.step = 1200;
    document.total_steps = 3000;
    document.metric_count = 1;
    snprintf(document.metrics[0].name, sizeof document.metrics[0].name, "loss");
    document.metrics[0].value = 0.03125;
    struct progress before = progress_none();
    before.last_checkpoint_step = 1000;
    struct progress progress = progress_from_document(&document, &before, &arena);
    cr_assert_eq(progress.step, 1200);
    cr_assert_eq(progress.percent, 40);
    cr_assert_eq(progress.last_checkpoint_step, 1000);
    cr_assert_str_eq(progress.metrics[0].value, "0.03125");
    cr_assert_null(progress.goodput);
    progress_complete(&progress);
    cr_assert_eq(progress.step, 3000);
    cr_assert_eq(progress.percent, 100);
    cr_assert_eq(progress.seconds_remaining, 0);
    arena_release(&arena);
}
