/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/pipeline_schedule.h"

#include <criterion/criterion.h>
#include <string.h>

#define DEPTHS_MAX 5
#define MICRO_BATCHES_MAX 9

/* A pipeline of as many stages as depths, played action by action. */
struct play {
    unsigned depths, micro_batches;
    struct pipeline_action actions[DEPTHS_MAX][2 * MICRO_BATCHES_MAX + 1];
    unsigned next[DEPTHS_MAX];
    unsigned done[DEPTHS_MAX][2];
};

/* What it needs has been done by the stage before it, or behind it. */
static bool is_ready(const struct play *play, unsigned depth, struct pipeline_action action)
{
    unsigned before = action.work == PIPELINE_FORWARD ? depth - 1 : depth + 1;
    return before >= play->depths || play->done[before][action.work] > action.micro_batch;
}

static void check(const struct play *play, unsigned depth, struct pipeline_action action)
{
    const unsigned *done = play->done[depth];
    cr_assert_eq(done[action.work], action.micro_batch, "out of order");
    cr_assert(action.work == PIPELINE_FORWARD || done[PIPELINE_FORWARD] > action.micro_batch);
    cr_assert_lt(done[PIPELINE_FORWARD] - done[PIPELINE_BACKWARD],
                 pipeline_slots(depth, play->depths, play->micro_batches) + (action.work == PIPELINE_BACKWARD));
}

static bool advance(struct play *play, unsigned depth)
{
    struct pipeline_action action = play->actions[depth][play->next[depth]];
    if (play->next[depth] == 2 * play->micro_batches || !is_ready(play, depth, action))
        return false;
    check(play, depth, action);
    play->done[depth][action.work]++;
    play->next[depth]++;
    return true;
}

static void play_out(unsigned depths, unsigned micro_batches)
{
    struct play play = {.depths = depths, .micro_batches = micro_batches};
    for (unsigned d = 0; d < depths; d++)
        pipeline_schedule(d, depths, micro_batches, play.actions[d]);
    for (bool moved = true; moved;) {
        moved = false;
        for (unsigned d = 0; d < depths; d++)
            moved |= advance(&play, d);
    }
    for (unsigned d = 0; d < depths; d++)
        cr_expect_eq(play.next[d], 2 * micro_batches, "%u depths, %u micro-batches: stuck", depths, micro_batches);
}

Test(pipeline_schedule, every_action_comes_to_its_turn)
{
    for (unsigned depths = 1; depths <= DEPTHS_MAX; depths++)
        for (unsigned micro_batches = 1; micro_batches <= MICRO_BATCHES_MAX; micro_batches++)
            play_out(depths, micro_batches);
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
