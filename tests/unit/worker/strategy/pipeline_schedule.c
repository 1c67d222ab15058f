/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/pipeline_schedule.h"

#include <criterion/criterion.h>
#include <string.h>

#define DEPTHS_MAX 5
#define MICRO_BATCHES_MAX 9

/* One after another as soon as what they need is done: every action of all stages must come to its turn, with no more
 * micro-batches under way than there are slots. */
static void play(unsigned depths, unsigned micro_batches)
{
    struct pipeline_action actions[DEPTHS_MAX][2 * MICRO_BATCHES_MAX];
    unsigned next[DEPTHS_MAX] = {0}, done[DEPTHS_MAX][2] = {{0}}, left = 2 * micro_batches * depths;
    for (unsigned d = 0; d < depths; d++)
        pipeline_schedule(d, depths, micro_batches, actions[d]);
    for (bool moved = true; moved;) {
        moved = false;
        for (unsigned d = 0; d < depths; d++) {
            if (next[d] == 2 * micro_batches)
                continue;
            struct pipeline_action action = actions[d][next[d]];
            bool forward = action.work == PIPELINE_FORWARD;
            unsigned before = forward ? d - 1 : d + 1;
            if (before < depths && done[before][action.work] <= action.micro_batch)
                continue;
            cr_assert_eq(done[d][action.work], action.micro_batch);
            cr_assert(forward || done[d][PIPELINE_FORWARD] > action.micro_batch);
            done[d][action.work]++;
            cr_assert_leq(done[d][PIPELINE_FORWARD] - done[d][PIPELINE_BACKWARD],
                          pipeline_slots(d, depths, micro_batches));
            next[d]++;
            left--;
            moved = true;
        }
    }
    cr_expect_eq(left, 0, "%u depths, %u micro-batches: stuck", depths, micro_batches);
}

Test(pipeline_schedule, every_action_comes_to_its_turn)
{
    for (unsigned depths = 1; depths <= DEPTHS_MAX; depths++)
        for (unsigned micro_batches = 1; micro_batches <= MICRO_BATCHES_MAX; micro_batches++)
            play(depths, micro_batches);
}

Test(pipeline_schedule, the_picture_shows_who_waited)
{
    const struct pipeline_span first[] = {{{PIPELINE_FORWARD, 0}, 0, 10}, {{PIPELINE_BACKWARD, 0}, 30, 40}};
    const struct pipeline_span second[] = {{{PIPELINE_FORWARD, 0}, 10, 20}, {{PIPELINE_BACKWARD, 0}, 20, 30}};
    const struct pipeline_trace traces[] = {{first, 2}, {second, 2}};
    SCOPED_BUFFER text;
    buffer_init(&text, 1024);
    pipeline_picture(traces, 2, 8, &text);
    cr_expect_str_eq(buffer_text(&text), "stage 0   |00....aa|\nstage 1   |..00aa..|\n");
    cr_expect_float_eq(pipeline_bubble(traces, 2), 0.5, 1e-9);
    cr_expect_float_eq(pipeline_ideal_bubble(2, 1), 0.5, 1e-9);
}
