/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/parameter_server.h"

#include "common/contract/environment.h"
#include "worker/comm/traffic.h"
#include "worker/data/step_record.h"
#include "worker/parameter_server/server.h"
#include "worker/train/abandonment.h"
#include "worker/train/error_exit_code.h"
#include "worker/train/evaluator.h"
#include "worker/train/leaving.h"
#include "worker/train/ps_chief.h"
#include "worker/train/ps_state.h"
#include "worker/train/ps_worker.h"
#include "worker/train/stop.h"

/* ---------------------------------------------------------------- a server */

static void tell_waiting(void *context, const char *text)
{
    struct trainer *trainer = context;
    report_phase(trainer->report, text[0] ? STATUS_WAITING : STATUS_TRAINING, text[0] ? text : NULL);
}

static void record_fate(void *context, enum server_fate fate, uint32_t lineage, int64_t number, const char *whose)
{
    static const char *const names[] = {
#define X(name, text) [SERVER_##name] = text,
        SERVER_FATES(X)
#undef X
    };
    (void)context;
    step_record_server(names[fate], lineage, number, whose);
}

struct serving {
    struct trainer *trainer;
    struct ps_server *server;
};

static void ask_server(void *context)
{
    struct serving *serving = context;
    abandonment_ask(serving->trainer->abandonment);
    ps_server_leave(serving->server);
}

/* It serves no more, and stores what it was told to. */
static void ask_storing(void *context)
{
    struct serving *serving = context;
    abandonment_ask(serving->trainer->abandonment);
}

/* Nobody waits for it any more. */
static void abandon_shard(void *context)
{
    leaving_end(context, "the writing of a checkpoint's shard", "three quarters", "it is in no checkpoint");
}

/* A server that has nothing more to do waits for its disk alone, which may stand. */
static void end_server(struct serving *serving)
{
    struct trainer *trainer = serving->trainer;
    abandonment_step_begins(trainer->abandonment);
    ps_server_free(serving->server);
    leaving_close(trainer);
}

static int serve(struct trainer *trainer, const struct placement *placement, enum exit_code *ret_code,
                 struct error *error)
{
    const struct strategy_spec *strategy = &trainer->job->strategy;
    bool synchronous = strategy->mode == PARAMETER_SERVER_SYNCHRONOUS;
    const struct ps_server_options options = {
        .job_uid = trainer->identity->job_uid,
        .generation = {.attempt = (uint32_t)trainer->identity->attempt,
                       .incarnation = (uint32_t)trainer->identity->incarnation},
        .listen_address = trainer_listen_address(trainer),
        .port = crew_own_seat(&trainer->crew)->port,
        .data_port = PORT_COLLECTIVE,
        .variables = {.device = trainer->device,
                      .optimizer = &trainer->job->training.optimizer,
                      .placement = placement,
                      .server = trainer->crew.rank,
                      .shares = synchronous ? (unsigned)trainer->plan.shares : 0,
                      .refuses_late =
                          strategy->mode == PARAMETER_SERVER_BOUNDED_STALENESS && strategy->backup_workers > 0,
                      .staleness = strategy->staleness == FIELD_UNSET ? STALENESS_DEFAULT : strategy->staleness},
        .digest = parameter_layout_digest(graph_layout(trainer->graph)),
        .never_saved = trainer->files.checkpoint_directory == NULL,
        .lost_ms = trainer->identity->lost_ms,
        .leave_ms = trainer->identity->grace_ms / 2,
        .load = ps_state_load,
        .store = ps_state_store,
        .waits = tell_waiting,
        .witness = record_fate,
        .context = trainer,
    };
    const struct abandonment_options abandonment = {
        .patience_ms = trainer->identity->grace_ms / 4 * 3, .abandon = abandon_shard, .context = trainer};
    struct serving serving = {.trainer = trainer};
    if (ps_server_start(&options, &serving.server, error) < 0) {
        *ret_code = error_exit_code(error, EXIT_CODE_INTERNAL);
        return -1;
    }
    if (abandonment_new(&abandonment, &trainer->abandonment, error) < 0) {
        *ret_code = error_exit_code(error, EXIT_CODE_INTERNAL);
        ps_server_free(serving.server);
        return -1;
    }
    report_phase(trainer->report, STATUS_TRAINING, NULL);
    stop_notify(ask_server, &serving);
    int result = ps_server_wait(serving.server, error);
    if (result < 0) /* what it reads is what it starts from */
        *ret_code = error_exit_code(error, EXIT_CODE_NO_CHECKPOINT);
    stop_notify(ask_storing, &serving);
    struct ps_server_counts counts = ps_server_counts(serving.server);
    report_say(trainer->report, "served     %lld updates, %lld pulls; %lld updates came twice",
               (long long)counts.applied, (long long)counts.pulls, (long long)counts.duplicates);
    if (counts.late > 0)
        report_say(trainer->report, "late       %lld updates were staler than the bound and were dropped",
                   (long long)counts.late);
    report_traffic(trainer->report, traffic_sent(), counts.applied / trainer->plan.shares);
    end_server(&serving);
    return result;
}

static int run_server(struct trainer *trainer, enum exit_code *ret_code, struct error *error)
{
    struct placement placement;
    placement_init(&placement, graph_layout(trainer->graph), trainer->crew.server_count);
    int result = serve(trainer, &placement, ret_code, error);
    placement_release(&placement);
    return result;
}

/* ---------------------------------------------------------------- roles */

static int judge(int result, enum exit_code code, enum exit_code *ret_code, const struct error *error)
{
    if (result < 0)
        *ret_code = error_exit_code(error, code);
    return result;
}

static int run_part(struct trainer *trainer, enum exit_code *ret_code, struct error *error)
{
    switch (trainer->crew.part) {
    case CREW_SERVES:
        return run_server(trainer, ret_code, error);
    case CREW_EVALUATES:
        return judge(evaluator_run(trainer, error), EXIT_CODE_BAD_JOB, ret_code, error);
    case CREW_TRAINS:
        break;
    }
    if (trainer_is_chief(trainer))
        return ps_chief_run(trainer, ret_code, error);
    return judge(ps_worker_run(trainer, error), EXIT_CODE_BAD_DATA, ret_code, error);
}

int parameter_server_run(struct trainer *trainer, enum exit_code *ret_code, struct error *error)
{
    stop_hold();
    if (run_part(trainer, ret_code, error) < 0)
        return -1;
    if (trainer->crew.part == CREW_TRAINS)
        report_traffic(trainer->report, traffic_sent(), trainer->plan.total_steps);
    report_traffic_summary(trainer->report);
    report_phase(trainer->report, STATUS_DONE, NULL);
    return 0;
}
