/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/loop.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/contract/environment.h"
#include "worker/comm/traffic.h"
#include "worker/coordination/stragglers.h"
#include "worker/data/step_record.h"
#include "worker/strategy/preflight.h"
#include "worker/train/abandonment.h"
#include "worker/train/averaging.h"
#include "worker/train/best.h"
#include "worker/train/crew_evaluation.h"
#include "worker/train/crew_pace.h"
#include "worker/train/error_exit_code.h"
#include "worker/train/export.h"
#include "worker/train/gathered_model.h"
#include "worker/train/leaving.h"
#include "worker/train/saving.h"
#include "worker/train/stop.h"
#include "worker/train/wait_reporter.h"

#define STRATEGY_TEXT_MAX 65536
#define PAUSE_LOOK_NS 50000000L
#define PAUSE_TEXT_MAX 160

/* The result of a part of the loop. */
enum outcome {
    OUTCOME_ON,     /* go on */
    OUTCOME_REFORM, /* the crew lost a member: form it anew */
    OUTCOME_FAILED, /* loop->code and the error say why */
};

struct loop {
    struct trainer *trainer;
    enum exit_code code;
    int64_t lost_ns;               /* when the crew lost a member, 0: it is whole */
    int64_t lost_step;             /* the step that was under way */
    int64_t open_first, open_last; /* steps that failed here: the crew may yet have taken them; 0: none */
    unsigned size;                 /* of the last world */
    int64_t sent;                  /* bytes, in steps alone */
    int64_t steps;                 /* in which they were */
    bool formed;                   /* this process has been in a whole crew */
    struct stragglers *stragglers; /* by seat, of the world in force */
    struct crew_pace pace;
};

static enum outcome fail(struct loop *loop, const struct error *error, enum exit_code code)
{
    loop->code = error_exit_code(error, code);
    return OUTCOME_FAILED;
}

/* In a step that failed: more than one where steps are taken back together. */
static int64_t steps_under_way(const struct trainer *trainer)
{
    int64_t abandoned = strategy_steps_abandoned(trainer->strategy);
    return abandoned > 1 ? abandoned : 1;
}

/* A rank that leaves during a step takes its part of the state with it, unless that is on disk; so each rank saves its part. */
static void save_if_called(struct trainer *trainer)
{
    struct error cause = ERROR_INIT;
    if (saving_is_called(trainer) && saving_finish(trainer, &cause) < 0)
        report_warn(trainer->report, "no checkpoint of step %lld, after which a worker left: %s",
                    (long long)trainer->state.progress.step, cause.message);
}

/* A lost member is mended; everything else ends the process. */
static enum outcome judge(struct loop *loop, const struct error *error, enum exit_code code)
{
    struct trainer *trainer = loop->trainer;
    if (error->kind != ERROR_UNAVAILABLE || trainer->member == NULL)
        return fail(loop, error, code);
    save_if_called(trainer);
    if (loop->lost_ns == 0) {
        loop->lost_ns = clock_monotonic_ns();
        loop->lost_step = trainer->state.progress.step + steps_under_way(trainer);
    }
    return OUTCOME_REFORM;
}

/* After a loss: how long it took until `step` was done and every member there, and how many steps were done twice for it. */
static void tell_recovery(struct loop *loop, int64_t step, int64_t repeated)
{
    if (loop->lost_ns == 0)
        return;
    double seconds = (double)(clock_monotonic_ns() - loop->lost_ns) / 1e9;
    char words[64] = "nothing was repeated";
    if (repeated == 1)
        snprintf(words, sizeof words, "one step was repeated");
    else if (repeated > 1)
        snprintf(words, sizeof words, "%lld steps were repeated", (long long)repeated);
    report_say(loop->trainer->report, "the crew is whole again: step %lld done %.2f s after a member was lost, %s",
               (long long)step, seconds, words);
    loop->lost_ns = 0;
}

/* ---- forming the crew */

/* Saves when this process is asked to leave while the crew is incomplete, since its state may exist nowhere else. If several ranks hold
 * parts, each rank that is asked saves its part; without all parts there is no checkpoint. */
static void save_before_leaving(struct trainer *trainer)
{
    struct error cause = ERROR_INIT;
    bool holds = trainer_is_chief(trainer) ? trainer->files.store_begun : strategy_writers(trainer->strategy) > 1;
    if (holds && strategy_is_whole(trainer->strategy) && trainer->job->checkpoint.save_on_preemption &&
        saving_finish(trainer, &cause) < 0)
        report_warn(trainer->report, "left without a checkpoint: %s", cause.message);
}

/* The values that are known of a failed step may suffice to finish it while the crew forms. It then belongs to the world before. */
static void record_open_steps(struct loop *loop)
{
    struct trainer *trainer = loop->trainer;
    if (loop->open_last > 0 && trainer->state.progress.step == loop->open_last) {
        trainer->applied_step = loop->open_last;
        step_record_applied(loop->open_first, loop->open_last);
    }
    loop->open_last = 0;
}

/* Generations count members' worlds; a process alone has but its own incarnation. */
static void record_world(struct loop *loop)
{
    struct trainer *trainer = loop->trainer;
    const struct world *world = strategy_world(trainer->strategy);
    struct generation generation = world->generation;
    record_open_steps(loop);
    if (trainer->member)
        step_record_world(generation.attempt, generation.incarnation, generation.counter);
}

/* Reports the size of the world if it has changed. */
static void tell_size(struct loop *loop)
{
    struct trainer *trainer = loop->trainer;
    unsigned size = strategy_world(trainer->strategy)->size;
    bool varies = crew_is_elastic(&trainer->crew) || strategy_is_loose(trainer->strategy);
    if (varies && size != loop->size)
        report_say(trainer->report, "the crew has %u worker%s from step %lld on", size, size == 1 ? "" : "s",
                   (long long)trainer->state.progress.step + 1);
    loop->size = size;
}

/* A new world cuts the batch anew. Seats without a rank have no time. */
static void forget_paces(struct loop *loop)
{
    const struct trainer *trainer = loop->trainer;
    const struct world *world = strategy_world(trainer->strategy);
    unsigned kin[CREW_SIZE_MAX] = {0};
    for (unsigned rank = 0; rank < world->size; rank++)
        kin[world->members[rank]] = strategy_kin(trainer->strategy, rank);
    stragglers_free(loop->stragglers);
    loop->stragglers = stragglers_new(trainer->crew.size, trainer->crew.size > 1 ? kin : NULL);
    crew_pace_clear(&loop->pace);
    report_straggler(trainer->report, NULL, 0, 0, 0);
}

/* The chief prints every few seconds how long each member takes for its own part of a step. */
static void tell_pace(struct loop *loop, const struct strategy_result *result, int64_t steps, int64_t ns)
{
    const struct trainer *trainer = loop->trainer;
    int64_t now_ns = clock_monotonic_ns();
    char text[CREW_PACE_TEXT_MAX];
    if (!trainer_is_chief(trainer))
        return;
    crew_pace_add(&loop->pace, strategy_world(trainer->strategy), result, steps, ns, now_ns);
    if (crew_pace_line(&loop->pace, trainer->crew.seats, result->step, now_ns, text))
        report_say(trainer->report, "%s", text);
}

/* Names members that are much slower than the rest, and reports when they keep up again. */
static void tell_stragglers(struct loop *loop, const struct strategy_result *result)
{
    struct trainer *trainer = loop->trainer;
    const struct world *world = strategy_world(trainer->strategy);
    for (unsigned rank = 0; trainer_is_chief(trainer) && rank < world->size; rank++) {
        int64_t own_ns, due_ns;
        unsigned member = world->members[rank];
        const struct crew_seat *seat = &trainer->crew.seats[member];
        switch (stragglers_add_steps(loop->stragglers, member, result->own_steps, result->own_ns[rank],
                                     result->longest_ns[rank], &own_ns, &due_ns)) {
        case STRAGGLER_AS_BEFORE:
            break;
        case STRAGGLER_IS_SLOW:
            report_warn(trainer->report, STRAGGLER_TEXT, seat->role, seat->index, (double)own_ns / 1e6,
                        stragglers_measure(loop->stragglers, member), (double)due_ns / 1e6,
                        stragglers_again(loop->stragglers, member), (long long)result->step);
            break;
        case STRAGGLER_KEEPS_UP:
            report_say(trainer->report, "%s %u keeps up again", seat->role, seat->index);
            break;
        }
    }
}

/* The status has it with the next step. */
static void publish_straggler(struct loop *loop)
{
    struct trainer *trainer = loop->trainer;
    struct straggler straggler;
    if (!trainer_is_chief(trainer))
        return;
    if (stragglers_find(loop->stragglers, &straggler))
        report_straggler(trainer->report, trainer->crew.seats[straggler.member].role,
                         trainer->crew.seats[straggler.member].index, straggler.own_ns, straggler.due_ns);
    else
        report_straggler(trainer->report, NULL, 0, 0, 0);
}

/* All ranks have the same figures. A rank that has failed ends; the others lose it in the first step, and wait for its successor. */
static enum outcome judge_preflight(struct loop *loop, const struct preflight_figures *figures, double seconds,
                                    struct error *error)
{
    struct trainer *trainer = loop->trainer;
    const struct world *world = strategy_world(trainer->strategy);
    char text[PREFLIGHT_TEXT_MAX];
    unsigned failed = 0;
    for (unsigned rank = 0; rank < world->size; rank++) {
        const struct crew_seat *seat = &trainer->crew.seats[world->members[rank]];
        if (!preflight_judge(figures, world->size, rank, text))
            continue;
        failed++;
        if (trainer_is_chief(trainer))
            report_warn(trainer->report, "%s %u has failed the pre-flight check: it %s", seat->role, seat->index, text);
        if (rank == world->rank) {
            loop->code = EXIT_CODE_UNFIT;
            error_set(error, ERROR_DEVICE, "this worker has failed the pre-flight check: it %s; look at its node",
                      text);
        }
    }
    if (failed == 0 && trainer_is_chief(trainer))
        report_say(trainer->report, "the pre-flight check took %.1f s; all workers of %u have passed it", seconds,
                   world->size);
    return loop->code == EXIT_CODE_UNFIT ? OUTCOME_FAILED : OUTCOME_ON;
}

/* Before the first step, and again when the crew has formed anew before it. */
static enum outcome check_crew(struct loop *loop, struct error *error)
{
    struct trainer *trainer = loop->trainer;
    struct preflight_figures figures[CREW_SIZE_MAX];
    int64_t begun_ns = clock_monotonic_ns();
    if (!trainer->job->training.preflight || trainer->state.progress.step > 0)
        return OUTCOME_ON;
    abandonment_wait_begins(trainer->abandonment, "the pre-flight check");
    int result = strategy_preflight(trainer->strategy, trainer->identity->preflight_fault, figures, error);
    abandonment_wait_ends(trainer->abandonment);
    if (result < 0)
        return judge(loop, error, EXIT_CODE_INTERNAL);
    return judge_preflight(loop, figures, (double)(clock_monotonic_ns() - begun_ns) / 1e9, error);
}

static enum outcome form_crew(struct loop *loop, struct error *error)
{
    struct trainer *trainer = loop->trainer;
    struct wait_reporter reporter;
    wait_reporter_start(&reporter, trainer);
    if (leaving_can_leave_forming(trainer, loop->formed))
        abandonment_wait_begins(trainer->abandonment, "the forming of the crew");
    int result = strategy_reform(trainer->strategy, error);
    abandonment_wait_ends(trainer->abandonment);
    wait_reporter_end(&reporter);
    trainer->evaluated_step = -1;
    if (result < 0 && error->kind == ERROR_CANCELLED)
        save_before_leaving(trainer);
    if (result < 0)
        return judge(loop, error, EXIT_CODE_NO_CHECKPOINT);
    if (trainer_is_chief(trainer) && saving_begin(trainer, error) < 0)
        return fail(loop, error, EXIT_CODE_NO_CHECKPOINT);
    const struct training_progress *progress = &trainer->state.progress;
    step_plan_go_on(&trainer->plan, progress->step, progress->data_epoch, progress->examples_consumed);
    loop->formed = true;
    tell_size(loop);
    record_world(loop);
    forget_paces(loop);
    report_phase(trainer->report, STATUS_TRAINING, NULL);
    return check_crew(loop, error);
}

/* ---- evaluation */

/* Whether the crew pauses at this step (COXSWAIN_PAUSE_STEP), until the sweep has decided whether the job continues. */
static bool pause_is_due(const struct trainer *trainer)
{
    int64_t step = trainer->state.progress.step, pause_step = trainer->identity->pause_step;
    return pause_step > 0 && step >= pause_step && step < trainer->plan.total_steps &&
           trainer->files.checkpoint_directory != NULL && !strategy_is_loose(trainer->strategy);
}

/* Whether there would be an evaluation at this step without a pause, too. */
static bool evaluation_is_planned(const struct trainer *trainer)
{
    return step_plan_evaluates(&trainer->plan, strategy_step_before(trainer->strategy), trainer->state.progress.step);
}

static bool evaluation_is_due(const struct trainer *trainer)
{
    int64_t step = trainer->state.progress.step;
    if (strategy_is_loose(trainer->strategy) && !trainer_is_chief(trainer))
        return false;
    if (dataset_count(trainer->validation) == 0 || step == 0 || step == trainer->evaluated_step)
        return false;
    return evaluation_is_planned(trainer) || pause_is_due(trainer);
}

/* Evaluates the current state, which is the mean if replicas differ. */
static enum outcome judge_state(struct loop *loop, struct error *error)
{
    struct trainer *trainer = loop->trainer;
    struct loss_sums sums;
    trainer->evaluates = true;
    abandonment_step_begins(trainer->abandonment); /* the state is the boundary's all the while */
    int result = crew_evaluate(trainer, &sums, error);
    abandonment_step_ends(trainer->abandonment);
    trainer->evaluates = false;
    if (result < 0)
        return judge(loop, error, EXIT_CODE_BAD_DATA);
    trainer->evaluated_step = trainer->state.progress.step;
    struct evaluation_metrics metrics = evaluation_metrics_of(trainer->graph, trainer->validation, &sums);
    if (!isfinite(metrics.loss)) {
        error_set(error, ERROR_NOT_FINITE, "the validation loss after step %lld is %f; lower the learning rate",
                  (long long)trainer->evaluated_step, fabs(metrics.loss)); /* nan, not -nan */
        return fail(loop, error, EXIT_CODE_NOT_FINITE);
    }
    report_evaluation(trainer->report, trainer->state.progress.step, metrics.loss, metrics.accuracy, metrics.perplexity,
                      metrics.rmse);
    /* An evaluation that only a pause caused does not count here: the best weights are those of a job that does not pause. */
    if (evaluation_is_planned(trainer) && best_consider(trainer, &metrics, error) < 0)
        return judge(loop, error, EXIT_CODE_INTERNAL);
    return OUTCOME_ON;
}

static enum outcome evaluate(struct loop *loop, struct error *error)
{
    struct trainer *trainer = loop->trainer;
    if (!evaluation_is_due(trainer))
        return OUTCOME_ON;
    report_phase(trainer->report, STATUS_EVALUATING, NULL);
    if (averaging_begin(trainer, error) < 0)
        return judge(loop, error, EXIT_CODE_INTERNAL);
    enum outcome outcome = judge_state(loop, error);
    averaging_end(trainer);
    return outcome;
}

/* ---- one step */

/* As the step left it; 0: losses are not scaled. */
static int64_t loss_scale_of(const struct trainer *trainer)
{
    return (int64_t)loss_scaling_for_begin_step(&trainer->state.progress.scaling, trainer->job->training.precision);
}

/* Prints a line of its own, since most step lines may not be printed. */
static void tell_skipped(const struct trainer *trainer, const struct strategy_result *result)
{
    if (result->skipped && trainer_is_chief(trainer))
        report_say(trainer->report,
                   "step %lld is skipped: its gradient exceeds the range of float16; the loss scale is now %lld (%lld "
                   "steps skipped so far)",
                   (long long)result->step, (long long)loss_scale_of(trainer),
                   (long long)trainer->state.progress.scaling.skipped_steps);
}

static void report_applied(struct trainer *trainer, const struct strategy_result *result, double rate, int64_t steps,
                           int64_t ns)
{
    const struct step_report step = {
        .step = result->step,
        .total_steps = trainer->plan.total_steps,
        .data_epoch = trainer->state.progress.data_epoch,
        .loss = result->loss,
        .gradient_norm = result->gradient_norm,
        .learning_rate = rate,
        .steps = steps,
        .devices = strategy_world(trainer->strategy)->size * trainer->device_count,
        .loss_scale = loss_scale_of(trainer),
        .skipped = result->skipped,
        .skipped_steps = trainer->state.progress.scaling.skipped_steps,
    };
    report_step(trainer->report, step, result->examples, ns);
    tell_skipped(trainer, result);
}

/* Saves the state of a leaving chief. If several ranks hold parts of the state, all save theirs if any rank leaves, since it may be the
 * only one with its part. */
static void save_if_chief_leaves(struct trainer *trainer, const struct strategy_result *result)
{
    struct error cause = ERROR_INIT;
    bool shared = strategy_writers(trainer->strategy) > 1;
    bool wanted = shared || (trainer_is_chief(trainer) && result->leaves[0]);
    if (wanted && trainer->job->checkpoint.save_on_preemption && saving_finish(trainer, &cause) < 0)
        report_warn(trainer->report, "no checkpoint of step %lld, after which a worker leaves: %s",
                    (long long)result->step, cause.message);
}

/* Ranks that stay wait here for the save of a leaving chief, however long it takes, and not in the next step. Leaving ranks wait for no
 * one's disk. */
static int await_leaving_chief(struct trainer *trainer, const struct strategy_result *result, struct error *error)
{
    bool waits = result->leaves[0] && result->leaving == 1 && !strategy_is_loose(trainer->strategy);
    if (!waits)
        return 0;
    abandonment_wait_begins(trainer->abandonment, "the wait for the chief's last save");
    int met = strategy_meet(trainer->strategy, error);
    abandonment_wait_ends(trainer->abandonment);
    return met;
}

/* It may take as long as a step of the slowest, which can be given up as a step can. */
static void await_delivery(struct trainer *trainer, const struct strategy_result *result)
{
    if (result->leaving == 0 && !result->reform)
        return;
    abandonment_step_begins(trainer->abandonment); /* the state is the boundary's all the while */
    strategy_await_delivery(trainer->strategy);
    abandonment_step_ends(trainer->abandonment);
}

/* Ranks that leave do so here, at a boundary that all ranks know. The chief saves its state first; if no rank stays to hold the state,
 * all ranks save. */
static enum outcome leave_if_asked(struct loop *loop, const struct strategy_result *result, struct error *error)
{
    struct trainer *trainer = loop->trainer;
    /* After the last step the end is nearer than a successor. */
    if (result->leaving == 0 || result->step == trainer->plan.total_steps)
        return OUTCOME_ON;
    const struct world *world = strategy_world(trainer->strategy);
    bool own = result->leaves[world->rank], all = result->leaving == world->size;
    save_if_chief_leaves(trainer, result);
    int met = await_leaving_chief(trainer, result, error);
    if (!own && met < 0)
        return judge(loop, error, EXIT_CODE_INTERNAL);
    if (!own)
        return OUTCOME_ON; /* the next step fails as soon as the leaver is gone, and the crew forms anew */
    if (trainer->member && !trainer_is_chief(trainer)) /* a leaving chief stays connected for the members that stay */
        member_leave(trainer->member);
    loop->code = EXIT_CODE_LEFT;
    error_set(error, ERROR_CANCELLED, "left on request after step %lld of %lld; %s", (long long)result->step,
              (long long)trainer->plan.total_steps,
              all ? "a later start goes on from the checkpoint" : "the rest of the crew waits for a successor");
    return OUTCOME_FAILED;
}

static enum outcome take_step(struct loop *loop, struct error *error)
{
    struct trainer *trainer = loop->trainer;
    int64_t started = clock_monotonic_ns(), number = trainer->state.progress.step + 1;
    double rate = trainer_learning_rate(trainer, number);
    struct strategy_result result;
    int64_t sent_before = traffic_sent();
    if (trainer->member)
        member_set_step(trainer->member, number);
    abandonment_step_begins(trainer->abandonment);
    int status = strategy_step(trainer->strategy, rate, trainer_votes(trainer), &result, error);
    abandonment_step_ends(trainer->abandonment);
    if (status < 0) {
        loop->open_first = number;
        loop->open_last = number - 1 + steps_under_way(trainer);
        return judge(loop, error, EXIT_CODE_BAD_DATA);
    }
    trainer->applied_step = result.step;
    step_record_applied(number, result.step);
    await_delivery(trainer, &result);
    loop->sent += traffic_sent() - sent_before;
    loop->steps += result.step - number + 1;
    report_traffic(trainer->report, loop->sent, loop->steps);
    int64_t ns = clock_monotonic_ns() - started;
    report_applied(trainer, &result, rate, result.step - number + 1, ns);
    if (strategy_is_loose(trainer->strategy))
        tell_size(loop);
    tell_recovery(loop, result.step, loop->lost_step - number + 1);
    tell_stragglers(loop, &result);
    publish_straggler(loop);
    tell_pace(loop, &result, result.step - number + 1, ns);
    if (saving_consider(trainer, &result, error) < 0)
        return fail(loop, error, EXIT_CODE_SUPERSEDED);
    enum outcome outcome = leave_if_asked(loop, &result, error);
    if (outcome == OUTCOME_ON && result.reform && result.step < trainer->plan.total_steps)
        outcome = OUTCOME_REFORM;
    return outcome;
}

/* ---- the end */

/* The chief writes; where others hold parts of the model they hand them over first. */
static enum outcome export_model(struct loop *loop, struct exported *ret_exported, struct error *error)
{
    struct trainer *trainer = loop->trainer;
    bool chief = trainer_is_chief(trainer);
    struct gathered_model model;
    if (chief && averaging_begin(trainer, error) < 0)
        return fail(loop, error, EXIT_CODE_NOT_STORED);
    if (gathered_model_take(trainer, &model, error) < 0)
        return judge(loop, error, EXIT_CODE_INTERNAL);
    int result = chief ? best_export(trainer, &model, ret_exported, error) : 0;
    gathered_model_release(&model);
    if (chief)
        averaging_end(trainer);
    return result < 0 ? fail(loop, error, EXIT_CODE_NOT_STORED) : OUTCOME_ON;
}

/* Where each worker goes at its own pace. */
static void tell_finished(const struct trainer *trainer)
{
    if (!strategy_is_loose(trainer->strategy) || !trainer_is_chief(trainer))
        return;
    for (unsigned seat = 0; seat < CREW_SIZE_MAX; seat++) {
        const struct crew_seat name = crew_name_seat(&trainer->crew, seat);
        int64_t finished = strategy_finished(trainer->strategy, seat);
        if (seat < trainer->crew.size || finished > 0)
            report_say(trainer->report, "%s %u has finished %lld examples in all; training has ended", name.role,
                       name.index, (long long)finished);
    }
}

/* Line by line. */
static int tell_strategy(struct trainer *trainer, struct error *error)
{
    SCOPED_BUFFER text = BUFFER_INIT(STRATEGY_TEXT_MAX);
    if (strategy_describe(trainer->strategy, &text, error) < 0)
        return -1;
    char *rest = NULL;
    for (char *line = text.length > 0 ? strtok_r(text.data, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        if (trainer_is_chief(trainer))
            report_say(trainer->report, "%s", line);
    return 0;
}

/* Does what follows the last save, and waits until the chief has stored everything. */
static enum outcome conclude(struct loop *loop, struct error *error)
{
    struct trainer *trainer = loop->trainer;
    best_wait(trainer);
    bool apart = !strategy_has_gathered_model(trainer->strategy);
    if ((apart && strategy_meet(trainer->strategy, error) < 0) || tell_strategy(trainer, error) < 0)
        return judge(loop, error, EXIT_CODE_INTERNAL);
    struct exported exported;
    if (trainer->job->export_path) {
        enum outcome outcome = export_model(loop, &exported, error);
        if (outcome != OUTCOME_ON)
            return outcome;
    }
    if (trainer_is_chief(trainer))
        saving_complete(trainer, trainer->job->export_path ? &exported : NULL);
    if (strategy_meet(trainer->strategy, error) < 0)
        return judge(loop, error, EXIT_CODE_INTERNAL);
    return OUTCOME_ON;
}

/* For want of others' parts that is no failure of a chief that is asked to leave: a later start saves them. */
static enum outcome fail_to_store(struct loop *loop, const struct error *error)
{
    bool parts_missed = error->kind == ERROR_TIMEOUT || error->kind == ERROR_UNAVAILABLE;
    if (!stop_is_asked() || !parts_missed)
        return fail(loop, error, EXIT_CODE_NOT_STORED);
    loop->code = EXIT_CODE_LEFT;
    return OUTCOME_FAILED;
}

/* Saves the current step, or this rank's part of it. If a rank other than the chief cannot store its part, it only warns: the chief, which
 * waits for the part, fails. */
static enum outcome save_at_boundary(struct loop *loop, struct error *error)
{
    struct trainer *trainer = loop->trainer;
    struct error cause = ERROR_INIT;
    if (saving_finish(trainer, &cause) < 0 && trainer_is_chief(trainer)) {
        if (error)
            *error = cause;
        return fail_to_store(loop, &cause);
    }
    if (cause.kind != ERROR_NONE)
        report_warn(trainer->report, "%s", cause.message);
    return OUTCOME_ON;
}

/* Workers stay until the chief has stored everything, because the chief's successor would need them. This has no time limit, so they meet
 * here before they do anything else together. */
static enum outcome finish(struct loop *loop, struct error *error)
{
    struct trainer *trainer = loop->trainer;
    enum outcome outcome = save_at_boundary(loop, error);
    if (outcome != OUTCOME_ON)
        return outcome;
    abandonment_wait_begins(trainer->abandonment, "what follows the last step");
    outcome = conclude(loop, error);
    abandonment_wait_ends(trainer->abandonment);
    if (outcome != OUTCOME_ON)
        return outcome;
    tell_recovery(loop, trainer->state.progress.step, 0);
    tell_finished(trainer);
    return OUTCOME_ON;
}

/* ---- a pause */

/* Waits until this process is asked to leave. Fails if a member is lost meanwhile; then the crew forms anew. */
static int await_request(struct trainer *trainer, struct error *error)
{
    const struct timespec look = {.tv_nsec = PAUSE_LOOK_NS};
    int met = 0;
    abandonment_wait_begins(trainer->abandonment, "the pause");
    while (met == 0 && !stop_is_asked()) {
        nanosleep(&look, NULL);
        met = strategy_meet(trainer->strategy, error);
    }
    abandonment_wait_ends(trainer->abandonment);
    return met;
}

/* Saves, and waits until the operator suspends the job. If the sweep continues the job, new pods start from this checkpoint. */
static enum outcome pause_crew(struct loop *loop, struct error *error)
{
    struct trainer *trainer = loop->trainer;
    char text[PAUSE_TEXT_MAX];
    long long step = trainer->state.progress.step, total = trainer->plan.total_steps;
    enum outcome outcome = save_at_boundary(loop, error);
    if (outcome != OUTCOME_ON)
        return outcome;
    snprintf(text, sizeof text,
             PAUSE_MESSAGE "%lld of %lld, which is saved: the sweep decides whether the job continues", step, total);
    report_phase(trainer->report, STATUS_WAITING, text);
    if (await_request(trainer, error) < 0 && !stop_is_asked())
        return judge(loop, error, EXIT_CODE_INTERNAL);
    if (trainer->member && !trainer_is_chief(trainer)) /* as in leave_if_asked */
        member_leave(trainer->member);
    loop->code = EXIT_CODE_LEFT;
    error_set(error, ERROR_CANCELLED, "left on request after step %lld of %lld, at which the job had paused", step,
              total);
    return OUTCOME_FAILED;
}

/* ---- the loop */

static enum outcome advance(struct loop *loop, bool *ret_done, struct error *error)
{
    struct trainer *trainer = loop->trainer;
    enum outcome outcome = evaluate(loop, error);
    if (outcome != OUTCOME_ON)
        return outcome;
    if (pause_is_due(trainer))
        return pause_crew(loop, error);
    if (trainer->state.progress.step < trainer->plan.total_steps)
        return take_step(loop, error);
    outcome = finish(loop, error);
    *ret_done = outcome == OUTCOME_ON;
    return outcome;
}

static enum outcome run(struct loop *loop, struct error *error)
{
    struct trainer *trainer = loop->trainer;
    bool done = false;
    enum outcome outcome = OUTCOME_REFORM;
    while (!done && outcome != OUTCOME_FAILED) {
        if (outcome == OUTCOME_REFORM) {
            if (error->message[0])
                report_phase(trainer->report, STATUS_WAITING, error->message);
            error_clear(error);
            outcome = form_crew(loop, error);
        } else {
            outcome = advance(loop, &done, error);
        }
    }
    return outcome;
}

static void summarise(struct trainer *trainer)
{
    if (trainer_is_chief(trainer))
        report_summary(trainer->report, trainer->files.checkpoint_directory, trainer->files.export_path);
    report_traffic_summary(trainer->report);
    report_phase(trainer->report, STATUS_DONE, NULL);
}

int loop_run(struct trainer *trainer, enum exit_code *ret_code, struct error *error)
{
    struct loop loop = {.trainer = trainer, .code = EXIT_CODE_INTERNAL};
    struct status_document last;
    stop_hold();
    report_phase(trainer->report, STATUS_JOINING, NULL);
    if (trainer_is_chief(trainer) && saving_is_complete(trainer, &last)) {
        report_completed(trainer->report, &last);
        return 0;
    }
    if (leaving_open(trainer, error) < 0)
        return -1;
    enum outcome outcome = run(&loop, error);
    leaving_close(trainer);
    stragglers_free(loop.stragglers);
    if (outcome == OUTCOME_FAILED) {
        *ret_code = loop.code;
        return -1;
    }
    summarise(trainer);
    if (trainer->member)
        member_leave(trainer->member);
    return 0;
}
