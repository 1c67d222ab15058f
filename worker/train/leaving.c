/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/leaving.h"

#include <stdio.h>
#include <unistd.h>

#include "worker/report/termination.h"
#include "worker/train/abandonment.h"
#include "worker/train/best.h"
#include "worker/train/saving.h"
#include "worker/train/stop.h"

/* Within this time, a rank that was called for its part begins to write it, if it can. */
#define PART_MS 10000

/* Returns whether this rank saves: it is the chief, or one of several that hold the state between
 * them. */
static bool saves(const struct trainer *trainer)
{
    return (trainer->files.store != NULL || trainer->files.parts != NULL) &&
           trainer->job->checkpoint.save_on_preemption;
}

/* A rank without a store that holds only what other ranks hold too has nothing to save. */
static bool needs_save(const struct trainer *trainer)
{
    const struct strategy_spec *strategy = &trainer->job->strategy;
    return trainer_is_chief(trainer) || strategy->type == STRATEGY_PIPELINE || strategy->sharded_optimizer;
}

bool leaving_can_abandon(const struct trainer *trainer)
{
    return !trainer_serves_parameters(trainer) && (!needs_save(trainer) || saves(trainer));
}

bool leaving_can_leave_forming(const struct trainer *trainer, bool formed)
{
    return !needs_save(trainer) || !formed;
}

static void name_unfinished(const struct trainer *trainer, char text[96])
{
    long long step = trainer->state.progress.step, total = trainer->plan.total_steps;
    const char *wait = abandonment_wait(trainer->abandonment);
    if (wait)
        snprintf(text, 96, "%s", wait);
    else if (trainer->evaluates)
        snprintf(text, 96, "the evaluation after step %lld of %lld", step, total);
    else
        snprintf(text, 96, "step %lld of %lld", step + 1, total);
}

static _Noreturn void end_process(const struct trainer *trainer, const struct error *error)
{
    termination_report(EXIT_CODE_LEFT, error);
    report_flush(trainer->report);
    (void)fflush(NULL);
    _exit(EXIT_CODE_LEFT);
}

void leaving_end(const struct trainer *trainer, const char *unfinished, const char *share, const char *follows)
{
    struct error error = ERROR_INIT;
    error_set(&error, ERROR_CANCELLED,
              "left on request: %s did not end within %s of the grace period (%lld s) and was abandoned; %s",
              unfinished, share, (long long)trainer->identity->grace_ms / 1000, follows);
    end_process(trainer, &error);
}

/* Everything else that a later start needs is saved by then. */
static bool await_best(struct trainer *trainer)
{
    int64_t patience_ms = trainer->identity->grace_ms / 8;
    bool kept = best_wait_for(trainer, patience_ms);
    if (!kept)
        report_warn(trainer->report,
                    "the best weights so far are lost: they were not on the disk within an eighth of the grace period "
                    "(%.1f s); those kept before them stay",
                    (double)patience_ms / 1000);
    return kept;
}

void leaving_settle(struct trainer *trainer, const struct error *error)
{
    if (!await_best(trainer))
        end_process(trainer, error);
}

static const char *name_what_follows(const struct trainer *trainer, bool wanted, bool saved)
{
    if (saved && trainer_is_chief(trainer))
        return "a later start goes on from the checkpoint of the last boundary";
    if (saved)
        return "its part of the last boundary's checkpoint is saved";
    if (wanted)
        return "what was not saved is lost";
    return strategy_is_loose(trainer->strategy) ? "the rest of the crew goes on"
                                                : "the rest of the crew waits for a successor";
}

/* Shortens the wait for other ranks' parts whose disks make no progress. */
static void hurry(struct trainer *trainer)
{
    int64_t quarter_ms = trainer->identity->grace_ms / 4;
    if (trainer->files.store)
        checkpoint_hurry_parts(trainer->files.store, quarter_ms > PART_MS ? quarter_ms : PART_MS);
}

/* The main thread may be anywhere in the wait; it ends with the process. */
static _Noreturn void abandon_wait(struct trainer *trainer)
{
    char unfinished[96];
    bool chief = trainer_is_chief(trainer);
    name_unfinished(trainer, unfinished);
    if (trainer->member && !chief)
        member_leave(trainer->member);
    (void)await_best(trainer);
    leaving_end(trainer, unfinished, "half",
                chief ? "a later start does it again" : name_what_follows(trainer, false, false));
}

/* The crew waits for a successor of the rank that leaves. A rank other than the chief does not wait
 * for the chief's save; it saves only its own part, if it has one. */
static void abandon(void *context)
{
    struct trainer *trainer = context;
    struct error cause = ERROR_INIT;
    char unfinished[96];
    bool wanted = needs_save(trainer);
    int64_t step = trainer->state.progress.step;
    if (abandonment_wait(trainer->abandonment))
        abandon_wait(trainer);
    name_unfinished(trainer, unfinished);
    strategy_stand_at_boundary(trainer->strategy);
    if (strategy_writers(trainer->strategy) > 1) {
        saving_call(trainer);
        strategy_break_off(trainer->strategy);
    }
    bool saved = wanted && saving_finish(trainer, &cause) == 0;
    if (wanted && !saved)
        report_warn(trainer->report, "no checkpoint of step %lld: %s", (long long)step, cause.message);
    if (trainer->member && !trainer_is_chief(trainer))
        member_leave(trainer->member);
    (void)await_best(trainer);
    leaving_end(trainer, unfinished, "half", name_what_follows(trainer, wanted, saved));
}

static void asked(void *context)
{
    struct trainer *trainer = context;
    hurry(trainer);
    abandonment_ask(trainer->abandonment);
    if (trainer->member)
        member_cancel(trainer->member);
}

int leaving_open(struct trainer *trainer, struct error *error)
{
    const struct abandonment_options options = {
        .patience_ms = trainer->identity->grace_ms / 2, .abandon = abandon, .context = trainer};
    if (leaving_can_abandon(trainer) && abandonment_new(&options, &trainer->abandonment, error) < 0)
        return -1;
    stop_notify(asked, trainer);
    return 0;
}

void leaving_close(struct trainer *trainer)
{
    stop_notify(NULL, NULL);
    abandonment_free(trainer->abandonment);
    trainer->abandonment = NULL;
}
