/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/trainer_stages.h"

#include "worker/optimizer/schedule.h"
#include "worker/train/abandonment.h"
#include "worker/train/restoring.h"
#include "worker/train/saving.h"
#include "worker/train/stop.h"

static void tell_warning(void *context, const char *text)
{
    struct trainer *trainer = context;
    report_warn(trainer->report, "%s", text);
}

static void tell_notice(void *context, const char *text)
{
    struct trainer *trainer = context;
    report_say(trainer->report, "%s", text);
}

static void before_change(void *context)
{
    struct trainer *trainer = context;
    if (trainer->files.store)
        checkpoint_fence(trainer->files.store);
}

static void leaves_boundary(void *context)
{
    abandonment_holds_off(((struct trainer *)context)->abandonment);
}

static void at_boundary(void *context)
{
    abandonment_step_begins(((struct trainer *)context)->abandonment);
}

double trainer_learning_rate(void *context, int64_t step)
{
    const struct trainer *trainer = context;
    return trainer->plan.learning_rate_factor * schedule_rate(&trainer->job->training.optimizer,
                                                              step_plan_place(&trainer->plan, step),
                                                              step_plan_schedule_steps(&trainer->plan));
}

/* An elastic crew forms anew at a boundary when a member leaves or a newcomer waits. */
unsigned trainer_votes(void *context)
{
    const struct trainer *trainer = context;
    unsigned votes = stop_is_asked() ? STRATEGY_VOTE_LEAVE : 0;
    if (crew_is_elastic(&trainer->crew) && (votes || member_has_newcomers(trainer->member)))
        votes |= STRATEGY_VOTE_REFORM;
    return votes | saving_votes(trainer);
}

int trainer_open_strategy(struct trainer *trainer, struct error *error)
{
    if (trainer_serves_parameters(trainer)) /* its parts have loops of their own: train/parameter_server.h */
        return 0;
    const struct job_document *job = trainer->job;
    const struct identity *identity = trainer->identity;
    double clip = job->training.gradient_clip_norm;
    const struct strategy_options options = {
        .type = job->strategy.type,
        .spec = &job->strategy,
        .device = trainer->device,
        .graph = trainer->graph,
        .devices = trainer->devices,
        .device_count = trainer->device_count,
        .dataset = trainer->training,
        .sampler = &trainer->sampler,
        .optimizer = &job->training.optimizer,
        .state = &trainer->state,
        .global_batch = trainer->plan.global_batch,
        .logical_shards = (unsigned)trainer->plan.logical_shards,
        .gradient_clip_norm = clip > 0 ? clip : 0,
        .total_steps = &trainer->plan.total_steps,
        .waits_for_device = identity->waits_for_device,
        .launches_singly = identity->launches_singly,
        .calls = {.restore = restoring_state,
                  .restore_part = restoring_part,
                  .check_stages = trainer_check_stages,
                  .learning_rate = trainer_learning_rate,
                  .votes = trainer_votes,
                  .before_change = before_change,
                  .leaves_boundary = leaves_boundary,
                  .at_boundary = at_boundary,
                  .on_stall = tell_warning,
                  .on_notice = tell_notice,
                  .on_warning = tell_warning,
                  .context = trainer},
        .sums = {.may_use_devices = trainer_may_sum_on_devices(trainer),
                 .communicator = trainer->communicators[0].version > 0 ? trainer->communicators : NULL,
                 .in_any_order = job->training.determinism == DETERMINISM_RUN,
                 .wait_for_pass = identity->sums_wait_for_pass},
        .crew = {.member = trainer->member,
                 .endpoint = trainer->endpoint,
                 .job_uid = identity->job_uid,
                 .collective = job->strategy.collective,
                 .size = trainer->crew.size,
                 .rank = trainer->crew.rank},
        .pipeline = {.model = &job->model,
                     .stages = job->strategy.stages == FIELD_UNSET ? 0 : (unsigned)job->strategy.stages,
                     .recompute = job->strategy.recompute,
                     .recorded_stages = trainer->stages,
                     .recorded_layers = trainer->stage_layers},
        .peers = {.hub = trainer->hub,
                  .seat = trainer->crew.rank,
                  .grace_ms = identity->grace_ms,
                  .restored_finished = trainer->resumed.finished},
    };
    return strategy_open(&options, &trainer->strategy, error);
}
