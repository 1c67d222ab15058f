/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/ps_chief.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/comm/traffic.h"
#include "worker/data/step_record.h"
#include "worker/parameter_server/dispatcher.h"
#include "worker/parameter_server/recovery.h"
#include "worker/parameter_server/servers_link.h"
#include "worker/parameter_server/ticket_link.h"
#include "worker/train/abandonment.h"
#include "worker/train/best.h"
#include "worker/train/error_exit_code.h"
#include "worker/train/evaluation.h"
#include "worker/train/export.h"
#include "worker/train/gathered_model.h"
#include "worker/train/leaving.h"
#include "worker/train/ps_restoring.h"
#include "worker/train/ps_saving.h"
#include "worker/train/ps_share.h"
#include "worker/train/ps_worker.h"
#include "worker/train/restoring.h"
#include "worker/train/saving.h"
#include "worker/train/stop.h"

#define TICK_MS 200
#define LOOK_EVERY_MS 500
#define ABANDON_SHARE 4 /* of the grace period; servers that are asked too wait for half of it for their save */

struct ps_chief {
    struct trainer *trainer;
    enum parameter_server_mode mode;
    int64_t per_step;
    struct placement placement;
    struct dispatcher *dispatcher;

    /* for reading the values: evaluations and the export */
    struct rpc *rpc;
    struct address_book *book;
    struct servers_link *values;
    struct graph *graph; /* the chief's own if a worker computes in the same process */

    struct ps_worker *worker; /* NULL: this process is only the chief */
    pthread_t thread;
    bool thread_runs;
    struct error worker_error;

    struct ticket_grant base;  /* where ticket base_step * per_step begins; base.lineage is the crew's */
    bool begun;                /* this chief has given tickets to workers */
    int64_t step, reported_ns; /* reported_ns: the time of the last step that was reported */
    int64_t reported_lost;     /* lost updates, as last reported */
    bool waits;                /* the status says for whom the crew waits; used on the rpc's thread only */
    int64_t lost_ns;           /* when a server was lost; 0: none is missing */
    int64_t saved_step, saved_ns;
    /* Servers have left after a save and are not back, so that no newer save is possible. */
    bool saved_for_leaving;
    int64_t evaluated_step;
    enum exit_code code; /* of the process if what the chief is doing now fails with ERROR_INVALID */
};

/* ---------------------------------------------------------------- evaluation */

/* The values as they are now, in the state's own memory. */
static int fetch_values(struct ps_chief *chief, struct error *error)
{
    struct training_state *state = &chief->trainer->state;
    if (servers_link_pull(chief->values, NULL, error) < 0)
        return -1;
    memcpy(state->host.parameters, servers_link_values(chief->values), (size_t)state->layout.elements * sizeof(float));
    return training_state_to_device(state, error);
}

static int evaluate(struct ps_chief *chief, struct error *error)
{
    struct trainer *trainer = chief->trainer;
    const struct evaluation_examples all = {.dataset = trainer->validation,
                                            .count = dataset_count(trainer->validation)};
    struct loss_sums sums;
    chief->code = EXIT_CODE_BAD_DATA;
    report_phase(trainer->report, STATUS_EVALUATING, NULL);
    chief->trainer->evaluates = true;
    abandonment_step_begins(trainer->abandonment);
    int result = fetch_values(chief, error);
    if (result == 0)
        result = evaluation_run(chief->graph ? chief->graph : trainer->graph, trainer->device, trainer->stream,
                                trainer->state.parameters, &all, &sums, error);
    abandonment_step_ends(trainer->abandonment);
    chief->trainer->evaluates = false;
    if (result < 0)
        return -1;
    struct evaluation_metrics metrics = evaluation_metrics_of(trainer->graph, trainer->validation, &sums);
    chief->evaluated_step = chief->step;
    report_phase(trainer->report, STATUS_TRAINING, NULL);
    if (!isfinite(metrics.loss))
        return error_set(error, ERROR_NOT_FINITE, "the validation loss after step %lld is %f; lower the learning rate",
                         (long long)chief->step, fabs(metrics.loss)); /* nan, not -nan */
    report_evaluation(trainer->report, chief->step, metrics.loss, metrics.accuracy, metrics.perplexity, metrics.rmse);
    trainer->state.progress.step = chief->step;
    return best_consider(trainer, &metrics, error);
}

static bool evaluation_is_due(const struct ps_chief *chief)
{
    const struct trainer *trainer = chief->trainer;
    if (dataset_count(trainer->validation) == 0 || chief->step == chief->evaluated_step || chief->step == 0)
        return false;
    if (chief->step >= trainer->plan.total_steps)
        return true;
    return (trainer->crew.evaluator_count == 0 || trainer->job->checkpoint.keep_best) &&
           step_plan_evaluates(&trainer->plan, chief->evaluated_step, chief->step);
}

/* ---------------------------------------------------------------- start */

static void tell_source(const struct ps_chief *chief, const struct recovery_source *source)
{
    const char *init = chief->trainer->files.init_path;
    if (source->path[0] && init && strcmp(source->path, init) == 0)
        report_say(chief->trainer->report, RESTORING_FORKS, (long long)source->step, init);
    else if (source->path[0])
        report_say(chief->trainer->report, "resumes from the checkpoint of step %lld", (long long)source->step);
    else if (init)
        report_say(chief->trainer->report, "starts from the weights in %s", init);
    else if (restoring_initialises(chief->trainer))
        report_say(chief->trainer->report, RESTORING_INITIALISES, (long long)chief->trainer->job->training.seed);
}

static void warn_of_losses(const struct ps_chief *chief, const struct recovery_source *source,
                           const struct server_start *starts, int64_t lost)
{
    for (unsigned i = 0; i < chief->placement.server_count; i++)
        if (starts[i].needed)
            report_warn(chief->trainer->report,
                        "ps %u goes on from %s%lld: %lld updates that it had acknowledged since are lost", i,
                        source->path[0] ? "the checkpoint of step " : "the start, step ", (long long)source->step,
                        (long long)lost);
}

static struct recovery_options options_of(const struct ps_chief *chief)
{
    return (struct recovery_options){.mode = chief->mode,
                                     .server_count = chief->placement.server_count,
                                     .per_step = chief->per_step,
                                     .chief_incarnation = (uint32_t)chief->trainer->identity->incarnation,
                                     .begun = chief->begun,
                                     .lineage = chief->base.lineage};
}

static int start_servers(struct ps_chief *chief, enum recovery_kind kind, const struct recovery_source *source,
                         const struct dispatcher_plan *plan, struct error *error)
{
    int64_t lost = 0;
    if (kind == RECOVERY_ALL) {
        chief->trainer->resumed.by_us = true;
        tell_source(chief, source);
    }
    if (dispatcher_begin(chief->dispatcher, plan, &lost, error) < 0)
        return -1;
    if (kind == RECOVERY_SOME)
        warn_of_losses(chief, source, plan->starts, lost);
    servers_link_follow(chief->values, plan->lineage);
    chief->base = (struct ticket_grant){.lineage = plan->lineage,
                                        .per_step = chief->per_step,
                                        .base_step = plan->base_step,
                                        .base_epoch = plan->base_epoch,
                                        .base_consumed = plan->base_consumed};
    if (!plan->keeps_tickets)
        chief->step = plan->finished.low / chief->per_step;
    chief->begun = true;
    return 0;
}

/* Sets the run's end, which depends on where it begins. */
static void set_end(struct ps_chief *chief, struct dispatcher_plan *plan)
{
    struct step_plan *steps = &chief->trainer->plan;
    step_plan_go_on(steps, plan->base_step, plan->base_epoch, plan->base_consumed);
    plan->end = steps->total_steps * chief->per_step;
}

static int choose_and_begin(struct ps_chief *chief, struct server_standing standings[PS_SERVERS_MAX],
                            struct error *error)
{
    const struct recovery_options options = options_of(chief);
    struct recovery_source source = {0};
    struct dispatcher_plan plan = {0};
    enum recovery_kind kind = recovery_choose(&options, standings);
    int result = 0;
    if (kind == RECOVERY_SOME || kind == RECOVERY_ALL)
        result = ps_restoring_find_source(chief->trainer, &source, error);
    struct server_start *starts = memory_allocate(PS_SERVERS_MAX, sizeof *starts);
    if (result == 0) {
        recovery_plan(&options, kind, standings, &source, starts, &plan);
        set_end(chief, &plan);
        result = start_servers(chief, kind, &source, &plan, error);
    }
    recovery_plan_release(&plan, starts);
    recovery_source_release(&source);
    free(starts);
    return result;
}

/* Waits for all servers and starts each from the right state. ERROR_UNAVAILABLE: a server was lost meanwhile. */
static int await_and_start_servers(struct ps_chief *chief, struct error *error)
{
    struct server_standing standings[PS_SERVERS_MAX];
    if (dispatcher_await_servers(chief->dispatcher, standings, error) < 0)
        return -1;
    int result = choose_and_begin(chief, standings, error);
    for (unsigned i = 0; i < chief->placement.server_count; i++)
        server_standing_release(&standings[i]);
    return result;
}

/* ---------------------------------------------------------------- saves */

/* Saves as ps_saving_save does. */
static int save(struct ps_chief *chief, bool last, struct error *error)
{
    if (ps_saving_save(chief->trainer, chief->dispatcher, &chief->base, last, error) < 0)
        return -1;
    chief->saved_step = chief->step;
    chief->saved_ns = clock_monotonic_ns();
    return 0;
}

static bool save_is_due(const struct ps_chief *chief)
{
    const struct checkpoint_spec *spec = &chief->trainer->job->checkpoint;
    if (chief->step == chief->saved_step)
        return false;
    if (spec->every_steps != FIELD_UNSET && chief->step / spec->every_steps != chief->saved_step / spec->every_steps)
        return true;
    return spec->every_seconds != FIELD_UNSET &&
           clock_monotonic_ns() - chief->saved_ns >= spec->every_seconds * 1000000000;
}

/* A failed save is a warning, except for ERROR_STALE and ERROR_CONFLICT (another chief owns the directory) and
 * ERROR_CANCELLED. */
static int save_if_due(struct ps_chief *chief, struct error *error)
{
    struct error cause = ERROR_INIT;
    if (chief->trainer->files.store == NULL || !save_is_due(chief))
        return 0;
    int64_t step = chief->step;
    if (save(chief, false, &cause) == 0)
        return 0;
    if (cause.kind == ERROR_STALE || cause.kind == ERROR_CONFLICT || cause.kind == ERROR_CANCELLED)
        return error_set(error, cause.kind, "%s", cause.message);
    chief->saved_step = step; /* not again before the next is due */
    report_save(chief->trainer->report, &cause);
    return 0;
}

/* ---------------------------------------------------------------- events */

static void tell_losses(struct ps_chief *chief)
{
    if (chief->mode == PARAMETER_SERVER_SYNCHRONOUS)
        return;
    int64_t lost = dispatcher_lost(chief->dispatcher);
    if (lost != chief->reported_lost)
        step_record_lost(lost);
    chief->reported_lost = lost;
    report_updates_lost(chief->trainer->report, lost);
}

static void on_step(struct ps_chief *chief, const struct dispatcher_event *event)
{
    struct trainer *trainer = chief->trainer;
    struct step_report step = {
        .step = event->step,
        .total_steps = trainer->plan.total_steps,
        .loss = event->loss,
        .gradient_norm = event->gradient_norm,
        .learning_rate = trainer_learning_rate(trainer, event->step),
    };
    int64_t position;
    ps_share_position(trainer, &chief->base, event->step, &step.data_epoch, &position);
    if (chief->reported_ns == 0 || chief->reported_ns > event->at_ns) /* the first since tickets flow (again) */
        chief->reported_ns = event->at_ns - 1000000;
    step_record_applied(event->step, event->step);
    report_step(trainer->report, step, event->examples, event->at_ns - chief->reported_ns);
    report_traffic(trainer->report, traffic_sent(), event->step);
    tell_losses(chief);
    chief->step = event->step;
    chief->reported_ns = event->at_ns;
    if (chief->lost_ns != 0)
        report_say(trainer->report, "the crew is whole again: step %lld done %.2f s after the loss",
                   (long long)event->step, (double)(event->at_ns - chief->lost_ns) / 1e9);
    chief->lost_ns = 0;
}

/* Whom the crew waits for, or what computes and looks at values here. */
static void describe(struct ps_chief *chief, char text[PS_TEXT_MAX])
{
    dispatcher_describe(chief->dispatcher, text);
    if (!text[0])
        servers_link_describe(chief->values, text);
    if (!text[0] && chief->worker)
        ps_worker_describe(chief->worker, text);
}

static void say_phase(struct ps_chief *chief)
{
    char text[PS_TEXT_MAX];
    describe(chief, text);
    report_phase(chief->trainer->report, text[0] ? STATUS_WAITING : STATUS_TRAINING, text[0] ? text : NULL);
}

/* Evaluates and saves after a step if these are due. A lost server is not an error, since its successor will come. */
static int do_what_is_due(struct ps_chief *chief, struct error *error)
{
    struct error cause = ERROR_INIT;
    if (evaluation_is_due(chief) && evaluate(chief, &cause) < 0 && cause.kind != ERROR_UNAVAILABLE)
        return error_set(error, cause.kind, "%s", cause.message);
    chief->code = EXIT_CODE_INTERNAL;
    return save_if_due(chief, error);
}

/* Saves all servers, so that nothing is lost with those that were asked to leave, and lets these go. */
static int save_and_release(struct ps_chief *chief, uint64_t *ret_gone, struct error *error)
{
    do
        if (save(chief, true, error) < 0)
            return -1;
    while (!dispatcher_save_and_release(chief->dispatcher, ret_gone));
    return 0;
}

static void name_leaving(uint64_t leaving, char text[PS_TEXT_MAX])
{
    size_t length = 0;
    for (unsigned i = 0; leaving >> i != 0 && length < PS_TEXT_MAX; i++)
        if (leaving >> i & 1)
            length += (size_t)snprintf(text + length, PS_TEXT_MAX - length, "%sps %u", length ? ", " : "", i);
    if (length < PS_TEXT_MAX)
        snprintf(text + length, PS_TEXT_MAX - length, " %s being terminated", leaving & (leaving - 1) ? "are" : "is");
}

/* Saves all servers where some were asked to leave, and lets those go. */
static void release_leaving(struct ps_chief *chief)
{
    struct trainer *trainer = chief->trainer;
    struct error cause = ERROR_INIT;
    char who[PS_TEXT_MAX];
    uint64_t leaving = dispatcher_leaving(chief->dispatcher);
    if (leaving == 0)
        return;
    int result = trainer->files.store ? save_and_release(chief, &leaving, &cause) : -1;
    name_leaving(leaving, who);
    if (trainer->files.store == NULL) {
        report_warn(trainer->report,
                    "%s, and the parameters there are lost, because the job saves no checkpoints; set checkpoint", who);
    } else if (result == 0) {
        report_say(trainer->report, "%s; all servers were saved first", who);
        chief->saved_for_leaving = true;
        return;
    } else if (cause.kind == ERROR_UNAVAILABLE) { /* follow does it again once the crew is whole, while they wait */
        report_warn(trainer->report, "%s, and cannot be saved yet: %s", who, cause.message);
        return;
    } else {
        report_warn(trainer->report, "%s, and the servers could not be saved first: %s", who, cause.message);
    }
    dispatcher_dismiss(chief->dispatcher);
}

/* Until the tickets are over (0), or a server is lost (ERROR_UNAVAILABLE). */
static int follow(struct ps_chief *chief, struct error *error)
{
    release_leaving(chief);
    for (;;) {
        struct dispatcher_event event;
        if (dispatcher_next_event(chief->dispatcher, LOOK_EVERY_MS, &event, error) < 0)
            return -1;
        switch (event.kind) {
        case EVENT_NONE:
            say_phase(chief);
            break;
        case EVENT_TEXT:
            report_say(chief->trainer->report, "%s", event.text);
            break;
        case EVENT_STEP:
            report_straggler(chief->trainer->report, event.has_straggler ? "worker" : NULL, event.straggler.member,
                             event.straggler.own_ns, event.straggler.due_ns);
            on_step(chief, &event);
            if (do_what_is_due(chief, error) < 0)
                return -1;
            break;
        case EVENT_SERVER_LEAVING:
            release_leaving(chief);
            break;
        case EVENT_SERVER_LOST:
            chief->lost_ns = event.at_ns;
            return error_set(error, ERROR_UNAVAILABLE, "%s", event.text);
        case EVENT_OVER:
            return 0;
        }
    }
}

/* ---------------------------------------------------------------- the run */

static int begin(struct ps_chief *chief, struct error *error)
{
    struct trainer *trainer = chief->trainer;
    chief->code = EXIT_CODE_NO_CHECKPOINT;
    if (await_and_start_servers(chief, error) < 0)
        return -1;
    trainer->state.progress.step = chief->step;
    if (saving_begin(trainer, error) < 0)
        return error_wrap(error, "checkpoints");
    chief->saved_for_leaving = false;
    chief->code = EXIT_CODE_INTERNAL;
    chief->reported_ns = clock_monotonic_ns();
    tell_losses(chief);
    report_phase(trainer->report, STATUS_TRAINING, NULL);
    return 0;
}

static int lead(struct ps_chief *chief, struct error *error)
{
    for (;;) {
        struct error cause = ERROR_INIT;
        if (begin(chief, &cause) == 0 && follow(chief, &cause) == 0)
            return 0;
        if (cause.kind != ERROR_UNAVAILABLE)
            return error_set(error, cause.kind, "%s", cause.message);
        report_phase(chief->trainer->report, STATUS_WAITING, cause.message);
    }
}

static int finish(struct ps_chief *chief, struct error *error)
{
    struct trainer *trainer = chief->trainer;
    chief->step = trainer->plan.total_steps;
    if (evaluation_is_due(chief) && evaluate(chief, error) < 0)
        return -1;
    chief->code = EXIT_CODE_NOT_STORED;
    best_wait(trainer);
    if (trainer->files.store && checkpoint_store_counts(trainer->files.store).committed_step != chief->step &&
        save(chief, false, error) < 0)
        return error_wrap(error, "final checkpoint");
    struct gathered_model model;
    struct exported exported;
    if (trainer->files.export_path == NULL) {
        saving_complete(trainer, NULL);
        return 0;
    }
    if (fetch_values(chief, error) < 0 || gathered_model_take(trainer, &model, error) < 0)
        return -1;
    int result = best_export(trainer, &model, &exported, error);
    gathered_model_release(&model);
    if (result == 0)
        saving_complete(trainer, &exported);
    return result;
}

/* Asked to leave: what the servers hold is saved first, for they may be asked too. */
static void save_before_leaving(struct ps_chief *chief)
{
    struct trainer *trainer = chief->trainer;
    struct error cause = ERROR_INIT;
    uint64_t gone;
    if (trainer->files.store && chief->begun && trainer->job->checkpoint.save_on_preemption &&
        !chief->saved_for_leaving && save_and_release(chief, &gone, &cause) < 0)
        report_warn(trainer->report, "left without a checkpoint: %s", cause.message);
    dispatcher_dismiss(chief->dispatcher);
}

static int run(struct ps_chief *chief, struct error *error)
{
    struct trainer *trainer = chief->trainer;
    int result = lead(chief, error);
    if (result < 0 && error->kind == ERROR_CANCELLED && chief->worker_error.kind == ERROR_NONE)
        save_before_leaving(chief);
    /* A server that is lost now comes back with what the last checkpoint has, and the rest is done again. */
    while (result == 0 && finish(chief, error) < 0) {
        if (error->kind != ERROR_UNAVAILABLE)
            return -1;
        error_clear(error);
        result = lead(chief, error);
    }
    if (result == 0) {
        int64_t lost = dispatcher_lost(chief->dispatcher);
        tell_losses(chief);
        if (lost > 0)
            report_warn(trainer->report, "%lld acknowledged updates were lost with their ps", (long long)lost);
        int64_t late = dispatcher_late(chief->dispatcher);
        if (late > 0)
            report_say(trainer->report, "late       %lld shares came after a backup worker's and were dropped",
                       (long long)late);
        report_summary(trainer->report, trainer->files.checkpoint_directory, trainer->files.export_path);
        dispatcher_finish(chief->dispatcher);
    }
    return result;
}

/* ---------------------------------------------------------------- worker 0 beside it */

static void *work(void *context)
{
    struct ps_chief *chief = context;
    if (ps_worker_work(chief->worker, &chief->worker_error) < 0)
        dispatcher_cancel(chief->dispatcher);
    return NULL;
}

static int start_worker(struct ps_chief *chief, struct error *error)
{
    struct trainer *trainer = chief->trainer;
    if (crew_has_own_chief(&trainer->crew))
        return 0;
    const struct graph_options options = {.device = trainer->device,
                                          .model = &trainer->job->model,
                                          .program = trainer->xla.program,
                                          .precision = trainer->job->training.precision,
                                          .max_examples = graph_max_examples(trainer->graph),
                                          .evaluation_only = true};
    if (graph_new(&options, &chief->graph, error) < 0 || ps_worker_new(trainer, &chief->worker, error) < 0)
        return -1;
    errno = pthread_create(&chief->thread, NULL, work, chief);
    if (errno != 0)
        return error_set_errno(error, "start worker 0");
    chief->thread_runs = true;
    return 0;
}

static void stop_worker(struct ps_chief *chief)
{
    if (chief->thread_runs) {
        ps_worker_cancel(chief->worker);
        pthread_join(chief->thread, NULL);
    }
    chief->thread_runs = false;
}

/* ---------------------------------------------------------------- life cycle */

/* Also while the other thread waits for servers: for what they hold, a save, the values of an evaluation. */
static void tick(void *context)
{
    struct ps_chief *chief = context;
    char text[PS_TEXT_MAX];
    servers_link_tick(chief->values);
    describe(chief, text);
    if (text[0])
        report_phase(chief->trainer->report, STATUS_WAITING, text);
    else if (chief->waits)
        report_phase(chief->trainer->report, STATUS_TRAINING, NULL);
    chief->waits = text[0] != '\0';
}

static void wake(void *context)
{
    rpc_wake(((struct ps_chief *)context)->rpc);
}

static bool misses_a_server(void *context)
{
    return dispatcher_misses_a_server(((struct ps_chief *)context)->dispatcher);
}

static int open_values(struct ps_chief *chief, struct error *error)
{
    struct trainer *trainer = chief->trainer;
    const struct crew *crew = &trainer->crew;
    if (rpc_new(tick, chief, TICK_MS, &chief->rpc, error) < 0 ||
        address_book_new(crew->servers, crew->server_count, wake, chief, &chief->book, error) < 0)
        return -1;
    const struct servers_link_options options = {
        .rpc = chief->rpc,
        .book = chief->book,
        .servers = crew->servers,
        .placement = &chief->placement,
        .elements = graph_layout(trainer->graph)->elements,
        .job_uid = trainer->identity->job_uid,
        .generation = {.attempt = (uint32_t)trainer->identity->attempt,
                       .incarnation = (uint32_t)trainer->identity->incarnation},
        .index = PS_CHIEF_INDEX,
        .digest = parameter_layout_digest(graph_layout(trainer->graph)),
        .pulls_only = true,
        .fail_if_lost = true,
        .server_has_no_state = misses_a_server,
        .context = chief,
    };
    if (servers_link_new(&options, &chief->values, error) < 0)
        return -1;
    rpc_start_ticks(chief->rpc);
    return 0;
}

static void record_ticket(void *context, enum ticket_fate fate, unsigned worker, int64_t ticket)
{
    static const char *const names[] = {
#define X(name, text) [TICKET_##name] = text,
        TICKET_FATES(X)
#undef X
    };
    (void)context;
    step_record_ticket(names[fate], worker, ticket);
}

static bool is_empty(void *context, const struct dispatcher_plan *plan, int64_t ticket)
{
    struct trainer *trainer = context;
    const struct ticket_grant grant = {.ticket = ticket,
                                       .per_step = trainer->plan.shares,
                                       .base_step = plan->base_step,
                                       .base_epoch = plan->base_epoch,
                                       .base_consumed = plan->base_consumed};
    return ps_share_is_empty(trainer, &grant);
}

/* So that the tables of all servers, each ticket with up to 11 digits, take half of a manifest at most. */
static int64_t most_ahead(const struct trainer *trainer)
{
    int64_t most = (int64_t)(MANIFEST_BYTES_MAX / 2 / 12 / trainer->crew.server_count);
    return most < TICKET_SET_ABOVE_MAX / 2 ? most : TICKET_SET_ABOVE_MAX / 2;
}

/* Two minutes, and what the largest shard takes on a slow disk. */
static int64_t save_ms(const struct ps_chief *chief)
{
    const int64_t slots = optimizer_slot_count(&chief->trainer->job->training.optimizer), bytes_of_ms = 10000;
    int64_t most = 0;
    for (unsigned i = 0; i < chief->placement.server_count; i++)
        if (chief->placement.elements[i] > most)
            most = chief->placement.elements[i];
    return 120000 + most * (1 + slots) * (int64_t)sizeof(float) / bytes_of_ms;
}

static int open_dispatcher(struct ps_chief *chief, struct error *error)
{
    struct trainer *trainer = chief->trainer;
    const struct strategy_spec *strategy = &trainer->job->strategy;
    double clip = trainer->job->training.gradient_clip_norm;
    const struct dispatcher_options options = {
        .job_uid = trainer->identity->job_uid,
        .generation = {.attempt = (uint32_t)trainer->identity->attempt,
                       .incarnation = (uint32_t)trainer->identity->incarnation},
        .listen_address = trainer_listen_address(trainer),
        .port = trainer->crew.seats[0].port,
        .servers = trainer->crew.servers,
        .server_count = trainer->crew.server_count,
        .workers = trainer->crew.seats,
        .worker_count = trainer->crew.size,
        .digest = parameter_layout_digest(graph_layout(trainer->graph)),
        .scheduler = {.mode = chief->mode,
                      .tickets_per_step = chief->per_step,
                      .staleness = strategy->staleness == FIELD_UNSET ? STALENESS_DEFAULT : strategy->staleness,
                      .backup_workers =
                          strategy->backup_workers == FIELD_UNSET ? 0 : (unsigned)strategy->backup_workers,
                      .end = trainer->plan.total_steps * chief->per_step,
                      .most_ahead = most_ahead(trainer)},
        .gradient_clip_norm = clip > 0 ? clip : 0,
        .rate = trainer_learning_rate,
        .is_empty = is_empty,
        .save_ms = save_ms(chief),
        .last_save_ms = trainer->identity->grace_ms / 2,
        .written = ps_saving_progress,
        .witness = record_ticket,
        .context = trainer,
    };
    return dispatcher_start(&options, &chief->dispatcher, error);
}

static void release(struct ps_chief *chief)
{
    if (chief->rpc)
        rpc_stop(chief->rpc); /* its ticks look at the worker, too */
    ps_worker_free(chief->worker);
    dispatcher_free(chief->dispatcher);
    address_book_free(chief->book);
    if (chief->rpc)
        rpc_free(chief->rpc);
    servers_link_free(chief->values);
    graph_free(chief->graph);
    placement_release(&chief->placement);
}

/* In an evaluation nothing is saved yet; what worker 0 computes beside holds nothing. */
static void abandon(void *context)
{
    struct ps_chief *chief = context;
    struct trainer *trainer = chief->trainer;
    char unfinished[96] = "a share";
    if (trainer->evaluates) {
        snprintf(unfinished, sizeof unfinished, "the evaluation after step %lld of %lld", (long long)chief->step,
                 (long long)trainer->plan.total_steps);
        save_before_leaving(chief);
    }
    leaving_end(trainer, unfinished, "a quarter", "the crew waits for another chief");
}

static void ask(void *context)
{
    struct ps_chief *chief = context;
    abandonment_ask(chief->trainer->abandonment);
    dispatcher_cancel(chief->dispatcher);
}

static int open_all(struct ps_chief *chief, struct error *error)
{
    struct trainer *trainer = chief->trainer;
    const struct abandonment_options options = {
        .patience_ms = trainer->identity->grace_ms / ABANDON_SHARE, .abandon = abandon, .context = chief};
    if (abandonment_new(&options, &trainer->abandonment, error) < 0 || open_dispatcher(chief, error) < 0 ||
        open_values(chief, error) < 0)
        return -1;
    stop_notify(ask, chief);
    return start_worker(chief, error);
}

/* Only worker 0's share is still running here; it may not end in time, so the wait can be abandoned. */
static void end(struct ps_chief *chief)
{
    struct trainer *trainer = chief->trainer;
    abandonment_step_begins(trainer->abandonment);
    stop_worker(chief);
    abandonment_step_ends(trainer->abandonment);
    leaving_close(trainer);
    release(chief);
}

int ps_chief_run(struct trainer *trainer, enum exit_code *ret_code, struct error *error)
{
    struct ps_chief chief = {
        .trainer = trainer, .saved_ns = saving_begun_ns(&trainer->job->checkpoint), .code = EXIT_CODE_INTERNAL};
    chief.mode =
        trainer->job->strategy.mode == PARAMETER_SERVER_NOT_SAID ? PARAMETER_SERVER_ASYNC : trainer->job->strategy.mode;
    chief.per_step = trainer->plan.shares;
    struct status_document last;
    if (saving_is_complete(trainer, &last)) {
        report_completed(trainer->report, &last);
        return 0;
    }
    placement_init(&chief.placement, graph_layout(trainer->graph), trainer->crew.server_count);
    report_phase(trainer->report, STATUS_JOINING, NULL);
    int result = open_all(&chief, error);
    if (result == 0)
        result = run(&chief, error);
    if (result < 0 && chief.worker_error.kind != ERROR_NONE) {
        error_set(error, chief.worker_error.kind, "%s", chief.worker_error.message);
        chief.code = EXIT_CODE_BAD_DATA;
    }
    if (result < 0)
        *ret_code = error_exit_code(error, chief.code);
    end(&chief);
    return result;
}
