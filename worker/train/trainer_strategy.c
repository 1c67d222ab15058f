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
    if (trainer->store)
        checkpoint_fence(trainer->store);
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
    double clip = trainer->job->training.gradient_clip_norm;
    const struct strategy_options options = {
        .type = trainer->job->strategy.type,
        .collective = trainer->job->strategy.collective,
        .device = trainer->device,
        .graph = trainer->graph,
        .devices = trainer->devices,
        .device_count = trainer->device_count,
        .dataset = trainer->training,
        .sampler = &trainer->sampler,
        .optimizer = &trainer->job->training.optimizer,
        .state = &trainer->state,
        .global_batch = trainer->plan.global_batch,
        .logical_shards = (unsigned)trainer->plan.logical_shards,
        .gradient_clip_norm = clip > 0 ? clip : 0,
        .model = &trainer->job->model,
        .stages = trainer->job->strategy.stages == FIELD_UNSET ? 0 : (unsigned)trainer->job->strategy.stages,
        .recompute = trainer->job->strategy.recompute,
        .spec = &trainer->job->strategy,
        .total_steps = &trainer->plan.total_steps,
        .learning_rate = trainer_learning_rate,
        .votes = trainer_votes,
        .crew_size = trainer->crew.size,
        .crew_rank = trainer->crew.rank,
        .recorded_stages = trainer->stages,
        .recorded_layers = trainer->stage_layers,
        .restore_part = restoring_part,
        .check_stages = trainer_check_stages,
        .member = trainer->member,
        .endpoint = trainer->endpoint,
        .hub = trainer->hub,
        .seat = trainer->crew.rank,
        .grace_ms = trainer->identity->grace_ms,
        .restored_finished = trainer->restored_finished,
        .job_uid = trainer->identity->job_uid,
        .waits_for_device = trainer->identity->waits_for_device,
        .launches_singly = trainer->identity->launches_singly,
        .sums_wait_for_pass = trainer->identity->sums_wait_for_pass,
        .on_stall = tell_warning,
        .on_notice = tell_notice,
        .on_warning = tell_warning,
        .may_sum_on_devices = trainer_may_sum_on_devices(trainer),
        .communicator = trainer->communicators[0].version > 0 ? trainer->communicators : NULL,
        .in_any_order = trainer->job->training.determinism == DETERMINISM_RUN,
        .restore = restoring_state,
        .before_change = before_change,
        .leaves_boundary = leaves_boundary,
        .at_boundary = at_boundary,
        .context = trainer,
    };
    return strategy_open(&options, &trainer->strategy, error);
}
