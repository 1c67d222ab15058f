/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/pipeline_schedule.h"

#include <criterion/criterion.h>
#include <string.h>

#define MICRO_BATCHES_MAX 9
#define PARTS_MAX 8

/* Parts in a row, each on a stage that is given: "010" is a way to device 1 and back. */
struct row {
    unsigned parts, stages;
    unsigned stage_of_part[PARTS_MAX], depth[PARTS_MAX];
    struct graph_crossing values[PARTS_MAX], gradients[PARTS_MAX];
    struct graph_partition partition;
    struct pipeline_course course;
};

static void make_row(struct row *row, const char *stages, unsigned most)
{
    *row = (struct row){.parts = (unsigned)strlen(stages)};
    for (unsigned p = 0; p < row->parts; p++) {
        row->stage_of_part[p] = (unsigned)(stages[p] - '0');
        row->stages = row->stage_of_part[p] >= row->stages ? row->stage_of_part[p] + 1 : row->stages;
        row->depth[p] = p;
        row->values[p] = (struct graph_crossing){.from = p, .to = p + 1};
        row->gradients[p] = (struct graph_crossing){.from = p + 1, .to = p};
    }
    row->partition = (struct graph_partition){.stages = row->stages,
                                              .parts = row->parts,
                                              .stage_of_part = row->stage_of_part,
                                              .depth = row->depth,
                                              .depths = row->parts};
    row->course = (struct pipeline_course){.partition = &row->partition,
                                           .values = row->values,
                                           .gradients = row->gradients,
                                           .value_count = row->parts - 1,
                                           .gradient_count = row->parts - 1,
                                           .most = most};
}

/* Played stage by stage, each as far as it gets, as if some were fast and some slow. */
struct play {
    const struct row *row;
    const struct pipeline_timetable *timetable;
    unsigned next[PARTS_MAX];
    unsigned done[PARTS_MAX][2];
};

/* Returns whether the part before it (in a backward pass, the part after it) has made its inputs. */
static bool is_ready(const struct play *play, struct pipeline_action action)
{
    unsigned before = action.work == PIPELINE_FORWARD ? action.part - 1 : action.part + 1;
    return before >= play->row->parts || play->done[before][action.work] > action.micro_batch;
}

static void check(const struct play *play, struct pipeline_action action)
{
    const unsigned *done = play->done[action.part];
    unsigned slots = pipeline_slots(action.part, play->row->parts, play->row->course.most);
    cr_assert_eq(done[action.work], action.micro_batch, "out of order");
    if (play->timetable->evaluates)
        return;
    cr_assert(action.work == PIPELINE_FORWARD || done[PIPELINE_FORWARD] > action.micro_batch);
    cr_assert_lt(done[PIPELINE_FORWARD] - done[PIPELINE_BACKWARD], slots + (action.work == PIPELINE_BACKWARD));
}

static bool advance(struct play *play, unsigned stage)
{
    struct pipeline_action action = play->timetable->actions[stage][play->next[stage]];
    if (play->next[stage] == play->timetable->counts[stage] || !is_ready(play, action))
        return false;
    check(play, action);
    play->done[action.part][action.work]++;
    play->next[stage]++;
    return true;
}

static void play_out(const char *stages, unsigned micro_batches, bool evaluates)
{
    struct row row;
    struct pipeline_timetable timetable;
    make_row(&row, stages, micro_batches);
    pipeline_timetable_init(&timetable, &row.course, micro_batches, evaluates);
    struct play play = {.row = &row, .timetable = &timetable};
    for (bool moved = true; moved;) {
        moved = false;
        for (unsigned s = 0; s < row.stages; s++)
            moved |= advance(&play, s);
    }
    for (unsigned p = 0; p < row.parts; p++)
        cr_expect(play.done[p][PIPELINE_FORWARD] == micro_batches &&
                      play.done[p][PIPELINE_BACKWARD] == (evaluates ? 0 : micro_batches),
                  "stages %s, %u micro-batches: stuck", stages, micro_batches);
    pipeline_timetable_release(&timetable);
}

Test(pipeline_schedule, every_action_comes_to_its_turn)
{
    static const char *const rows[] = {"0", "01", "012", "0123", "01234", "010", "0101", "0120", "01210", "0102"};
    for (unsigned r = 0; r < sizeof rows / sizeof *rows; r++)
        for (unsigned micro_batches = 1; micro_batches <= MICRO_BATCHES_MAX; micro_batches++) {
            play_out(rows[r], micro_batches, false);
            play_out(rows[r], micro_batches, true);
        }
}

/* The tick in which a part has done this; the row's last for what none does. */
static unsigned tick_of(const struct row *row, const struct pipeline_timetable *timetable,
                        struct pipeline_action action)
{
    unsigned stage = row->stage_of_part[action.part];
    for (unsigned i = 0; i < timetable->counts[stage]; i++) {
        const struct pipeline_action *other = &timetable->actions[stage][i];
        if (other->work == action.work && other->part == action.part && other->micro_batch == action.micro_batch)
            return timetable->tick_of[stage][i];
    }
    return timetable->ticks;
}

/* A part may send in a tick what it makes in that tick: the reader has taken the former contents before, and needs these only later. */
static void expect_exchange_by_ticks(const char *stages, unsigned micro_batches)
{
    struct row row;
    struct pipeline_timetable timetable;
    make_row(&row, stages, micro_batches);
    pipeline_timetable_init(&timetable, &row.course, micro_batches, false);
    for (unsigned i = 0; i < 2 * (row.parts - 1); i++) {
        bool forward = i < row.parts - 1;
        const struct graph_crossing *crossing = forward ? &row.values[i] : &row.gradients[i - (row.parts - 1)];
        unsigned slots = pipeline_slots(crossing->from, row.parts, micro_batches);
        for (unsigned m = 0; m < micro_batches; m++) {
            enum pipeline_work work = forward ? PIPELINE_FORWARD : PIPELINE_BACKWARD;
            unsigned made = tick_of(&row, &timetable, (struct pipeline_action){work, m, crossing->from});
            cr_expect_lt(made, tick_of(&row, &timetable, (struct pipeline_action){work, m, crossing->to}));
            if (m >= slots)
                cr_expect_gt(made, tick_of(&row, &timetable, (struct pipeline_action){work, m - slots, crossing->to}));
        }
    }
    for (unsigned s = 0; s < row.stages; s++)
        for (unsigned i = 1; i < timetable.counts[s]; i++)
            cr_expect_gt(timetable.tick_of[s][i], timetable.tick_of[s][i - 1]);
    pipeline_timetable_release(&timetable);
}

Test(pipeline_schedule, what_crosses_can_go_tick_by_tick)
{
    static const char *const rows[] = {"01", "012", "0123", "010", "0101", "01210"};
    for (unsigned r = 0; r < sizeof rows / sizeof *rows; r++)
        for (unsigned micro_batches = 1; micro_batches <= MICRO_BATCHES_MAX; micro_batches++)
            expect_exchange_by_ticks(rows[r], micro_batches);
}

static void expect_order(const char *stages, unsigned stage, const char *order)
{
    struct row row;
    struct pipeline_timetable timetable;
    SCOPED_BUFFER text = BUFFER_INIT(1024);
    make_row(&row, stages, 4);
    pipeline_timetable_init(&timetable, &row.course, 4, false);
    for (unsigned i = 0; i < timetable.counts[stage]; i++)
        buffer_format(&text, "%s%u ", timetable.actions[stage][i].work == PIPELINE_FORWARD ? "F" : "B",
                      timetable.actions[stage][i].micro_batch);
    cr_expect_str_eq(buffer_text(&text), order);
    pipeline_timetable_release(&timetable);
}

Test(pipeline_schedule, stages_in_a_row_go_one_forward_and_one_backward)
{
    expect_order("012", 0, "F0 F1 F2 B0 F3 B1 B2 B3 ");
    expect_order("012", 1, "F0 F1 B0 F2 B1 F3 B2 B3 ");
    expect_order("012", 2, "F0 B0 F1 B1 F2 B2 F3 B3 ");
    struct row row;
    struct pipeline_timetable timetable;
    make_row(&row, "012", 4);
    pipeline_timetable_init(&timetable, &row.course, 4, false);
    cr_expect_float_eq(pipeline_timetable_idle(&timetable), 2.0 / 6, 1e-9);
    pipeline_timetable_release(&timetable);
}

Test(pipeline_schedule, the_picture_shows_which_stage_waited)
{
    const struct pipeline_span first[] = {{{PIPELINE_FORWARD, 0, 0}, 0, 10}, {{PIPELINE_BACKWARD, 0, 0}, 30, 40}};
    const struct pipeline_span second[] = {{{PIPELINE_FORWARD, 0, 1}, 10, 20}, {{PIPELINE_BACKWARD, 0, 1}, 20, 30}};
    const struct pipeline_trace traces[] = {{first, 2}, {second, 2}};
    SCOPED_BUFFER text = BUFFER_INIT(1024);
    pipeline_picture(traces, 2, 8, &text);
    cr_expect_str_eq(buffer_text(&text), "stage 0   |00....aa|\nstage 1   |..00aa..|\n");
    cr_expect_float_eq(pipeline_bubble(traces, 2), 0.5, 1e-9);
}
