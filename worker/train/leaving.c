/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/leaving.h"

#include <stdio.h>
#include <unistd.h>

#include "worker/report/termination.h"
#include "worker/train/abandonment.h"
#include "worker/train/saving.h"
#include "worker/train/stop.h"

static bool saves(const struct trainer *trainer)
{
    return trainer->store != NULL && trainer->job->checkpoint.save_on_preemption;
}

/* Of a crew's strategies MultiWorkerMirrored alone changes nothing until everybody's gradients are there, and then all of it. */
bool leaving_can_abandon(const struct trainer *trainer)
{
    const struct strategy_spec *strategy = &trainer->job->strategy;
    if (trainer_serves_parameters(trainer) || strategy->type == STRATEGY_PIPELINE)
        return false;
    if (trainer->crew.size == 1)
        return saves(trainer);
    bool whole =
        strategy->type == STRATEGY_MULTI_WORKER_MIRRORED && strategy->local_steps <= 0 && !strategy->sharded_optimizer;
    return whole && (!trainer_is_chief(trainer) || saves(trainer));
}

static void name_unfinished(const struct trainer *trainer, char text[96])
{
    long long step = trainer->state.progress.step, total = trainer->plan.total_steps;
    if (trainer->evaluates)
        snprintf(text, 96, "the evaluation after step %lld of %lld", step, total);
    else
        snprintf(text, 96, "step %lld of %lld", step + 1, total);
}

/* A chief's crew waits for a successor; so do the others, and the chief's save is not theirs to wait for. */
static void abandon(void *context)
{
    struct trainer *trainer = context;
    struct error error = ERROR_INIT, cause = ERROR_INIT;
    int64_t step = trainer->state.progress.step;
    bool wanted = trainer_is_chief(trainer), saved = wanted && saving_finish(trainer, &cause) == 0;
    if (wanted && !saved)
        report_warn(trainer->report, "no checkpoint of step %lld: %s", (long long)step, cause.message);
    if (trainer->member && !wanted)
        member_leave(trainer->member);
    char unfinished[96];
    name_unfinished(trainer, unfinished);
    error_set(&error, ERROR_CANCELLED,
              "left on request: %s did not end within half of the grace period (%lld s) and was abandoned; %s",
              unfinished, (long long)trainer->identity->grace_ms / 1000,
              saved    ? "a later start goes on from the checkpoint of the last boundary"
              : wanted ? "what was not saved is lost"
                       : "the rest of the crew waits for a successor");
    termination_report(EXIT_CODE_LEFT, &error);
    report_flush(trainer->report);
    (void)fflush(NULL);
    _exit(EXIT_CODE_LEFT);
}

static void asked(void *context)
{
    struct trainer *trainer = context;
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
