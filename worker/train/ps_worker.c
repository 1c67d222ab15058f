/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/ps_worker.h"

#include <math.h>
#include <stdlib.h>

#include "common/memory.h"
#include "worker/optimizer/gradient_norm.h"
#include "worker/parameter_server/servers_link.h"
#include "worker/parameter_server/ticket_link.h"
#include "worker/train/abandonment.h"
#include "worker/train/leaving.h"
#include "worker/train/ps_share.h"
#include "worker/train/stop.h"

#define TICK_MS 200
/* At the end of the run, reads ahead are no longer needed: a hanging volume must not hold up the
 * worker. */
#define REST_MS 10000

struct ps_worker {
    struct trainer *trainer;
    enum parameter_server_mode mode;
    struct placement placement;
    struct crew_seat *seats; /* the chief, then the servers */
    struct rpc *rpc;
    struct address_book *book;
    struct ticket_link *tickets;
    struct servers_link *servers;
    struct ps_share *share;
    bool tells;                          /* the status is this worker's: no chief shares the process */
    bool waits;                          /* it says that it waits; the rpc's thread only */
    bool by_rows;                        /* some tables' rows are sent one by one */
    struct row_set rows[PS_SERVERS_MAX]; /* those of the ticket, by server */
};

/* ---------------------------------------------------------------- one ticket */

static struct ps_arrays arrays_of(struct ps_worker *worker)
{
    return (struct ps_arrays){servers_link_values(worker->servers), servers_link_gradients(worker->servers)};
}

static int compute(struct ps_worker *worker, const struct ticket_grant *grant, struct ticket_result *result,
                   struct error *error)
{
    const struct ps_arrays arrays = arrays_of(worker);
    return ps_share_compute(worker->share, grant, worker->mode == PARAMETER_SERVER_SYNCHRONOUS, &arrays, result, error);
}

/* In asynchronous modes, each update is clipped by its own norm. The reported norm of a step is that of its last share, which has
 * examples even in a small batch. A share without examples has no update. In synchronous mode, the norm is the crew's. */
static int measure(struct ps_worker *worker, const struct ticket_grant *grant, struct ticket_result *result,
                   double *ret_scale, struct error *error)
{
    double limit = worker->trainer->job->training.gradient_clip_norm;
    const float *gradients = arrays_of(worker).gradients;
    bool last = grant->ticket % grant->per_step == grant->per_step - 1;
    *ret_scale = result->examples > 0 ? 1 : 0;
    if (worker->mode == PARAMETER_SERVER_SYNCHRONOUS || result->examples == 0 || !(limit > 0 || last))
        return 0;
    if (ps_share_squares(worker->share, gradients, &result->squares, error) < 0)
        return -1;
    if (limit > 0)
        *ret_scale = gradient_clip_factor(sqrt(result->squares), limit);
    return 0;
}

static int check_finite(const struct ticket_grant *grant, const struct ticket_result *result, struct error *error)
{
    if (isfinite(result->loss) && isfinite(result->squares))
        return 0;
    return error_set(error, ERROR_NOT_FINITE,
                     "step %lld has a loss or a gradient that is not finite; lower training.optimizer.learningRate, "
                     "lengthen the warm-up or set training.gradientClipNorm",
                     (long long)(grant->ticket / grant->per_step + 1));
}

static int push(struct ps_worker *worker, const struct ticket_grant *grant, double scale, struct ticket_result *result,
                struct error *error)
{
    const struct servers_push push = {
        .ticket = grant->ticket,
        .clock = grant->clock,
        .lineage = grant->lineage,
        .rate = ps_share_rate(worker->trainer, grant),
        .scale = scale,
        .pull = worker->mode == PARAMETER_SERVER_ASYNC && !worker->by_rows, /* which rows, the next ticket says */
        .rows = worker->by_rows ? worker->rows : NULL,
    };
    bool outdated;
    if (servers_link_push(worker->servers, &push, &outdated, result->nonces, error) < 0)
        return -1;
    result->server_count = worker->placement.server_count;
    ticket_link_done(worker->tickets, outdated ? NULL : result);
    return 0;
}

static int pull(struct ps_worker *worker, const struct ticket_grant *grant, struct error *error)
{
    servers_link_follow(worker->servers, grant->lineage);
    if (servers_link_is_fresh(worker->servers, grant->lineage))
        return 0;
    if (!worker->by_rows)
        return servers_link_pull(worker->servers, NULL, error);
    if (ps_share_rows(worker->share, grant, &worker->placement, worker->rows, error) < 0)
        return -1;
    return servers_link_pull(worker->servers, worker->rows, error);
}

static int do_ticket(struct ps_worker *worker, const struct ticket_grant *grant, struct error *error)
{
    struct ticket_result result;
    double scale;
    if (pull(worker, grant, error) < 0)
        return -1;
    if (compute(worker, grant, &result, error) < 0 || measure(worker, grant, &result, &scale, error) < 0 ||
        check_finite(grant, &result, error) < 0)
        return -1;
    return push(worker, grant, scale, &result, error);
}

static int do_tickets(struct ps_worker *worker, struct error *error)
{
    for (;;) {
        struct ticket_grant grant;
        struct error cause = ERROR_INIT;
        if (ticket_link_next(worker->tickets, &grant, error) < 0)
            return -1;
        if (grant.over)
            break;
        if (do_ticket(worker, &grant, &cause) == 0)
            continue;
        if (cause.kind == ERROR_CANCELLED && ticket_link_is_over(worker->tickets))
            break; /* others had done it */
        if (cause.kind == ERROR_CANCELLED && ticket_link_is_lost(worker->tickets))
            return ticket_link_tell_lost(worker->tickets, error);
        if (error != NULL)
            *error = cause;
        return -1;
    }
    ticket_link_leave(worker->tickets);
    return 0;
}

int ps_worker_work(struct ps_worker *worker, struct error *error)
{
    int result = do_tickets(worker, error);
    if (!ps_share_rest(worker->share, REST_MS) && worker->trainer->report != NULL)
        report_warn(worker->trainer->report,
                    "a read of training data has not ended for %d s and is abandoned; check the volume of the data",
                    REST_MS / 1000);
    return result;
}

/* ---------------------------------------------------------------- life cycle */

void ps_worker_cancel(void *context)
{
    struct ps_worker *worker = context;
    ticket_link_cancel(worker->tickets);
    servers_link_cancel(worker->servers);
}

void ps_worker_describe(struct ps_worker *worker, char text[PS_TEXT_MAX])
{
    servers_link_describe(worker->servers, text);
    if (!text[0])
        ticket_link_describe(worker->tickets, text);
}

/* A worker's own status also names the member that it waits for. */
static void say_phase(struct ps_worker *worker)
{
    char text[PS_TEXT_MAX];
    ps_worker_describe(worker, text);
    if (text[0])
        report_phase(worker->trainer->report, STATUS_WAITING, text);
    else if (worker->waits)
        report_phase(worker->trainer->report, STATUS_TRAINING, NULL);
    worker->waits = text[0] != '\0';
}

/* Servers end with the run: one would wait for them for ever. So one would for a volume that hangs, while others have done the share. */
static void cancel_share(struct ps_worker *worker)
{
    servers_link_cancel(worker->servers);
    ps_share_cancel(worker->share);
}

static void tick(void *context)
{
    struct ps_worker *worker = context;
    ticket_link_tick(worker->tickets);
    servers_link_tick(worker->servers);
    if (worker->tells && worker->trainer->report != NULL)
        say_phase(worker);
    if (ticket_link_is_over(worker->tickets) || ticket_link_is_lost(worker->tickets))
        cancel_share(worker);
}

static void wake(void *context)
{
    rpc_wake(((struct ps_worker *)context)->rpc);
}

static void warn(void *context, const char *text)
{
    const struct ps_worker *worker = context;
    if (worker->trainer->report != NULL)
        report_warn(worker->trainer->report, "%s", text);
}

static void foresee(void *context, const struct ticket_grant *grant)
{
    ps_share_foresee(((struct ps_worker *)context)->share, grant);
}

static int open_links(struct ps_worker *worker, struct error *error)
{
    struct trainer *trainer = worker->trainer;
    const struct crew *crew = &trainer->crew;
    const struct generation generation = {.attempt = (uint32_t)trainer->identity->attempt,
                                          .incarnation = (uint32_t)trainer->identity->incarnation};
    if (rpc_new(tick, worker, TICK_MS, &worker->rpc, error) < 0 ||
        address_book_new(worker->seats, 1 + crew->server_count, wake, worker, &worker->book, error) < 0)
        return -1;
    const struct ticket_link_options tickets = {.rpc = worker->rpc,
                                                .book = worker->book,
                                                .chief_port = crew->seats[0].port,
                                                .job_uid = trainer->identity->job_uid,
                                                .generation = generation,
                                                .worker = crew_own_seat(crew)->index,
                                                .lost_ms = trainer->identity->lost_ms,
                                                .chief = &crew->seats[0],
                                                .foresee = foresee,
                                                .context = worker};
    const struct servers_link_options servers = {
        .rpc = worker->rpc,
        .book = worker->book,
        .first_seat = 1,
        .servers = crew->servers,
        .placement = &worker->placement,
        .elements = graph_layout(trainer->graph)->elements,
        .job_uid = trainer->identity->job_uid,
        .generation = generation,
        .index = crew_own_seat(crew)->index,
        .digest = parameter_layout_digest(graph_layout(trainer->graph)),
        .share_memory = true,
        .warn = warn,
        .context = worker,
    };
    return ticket_link_new(&tickets, &worker->tickets, error) < 0 ||
                   servers_link_new(&servers, &worker->servers, error) < 0
               ? -1
               : 0;
}

static int stage(struct ps_worker *worker, struct error *error)
{
    const struct ps_arrays arrays = arrays_of(worker);
    return ps_share_stage(worker->share, &arrays, error);
}

int ps_worker_new(struct trainer *trainer, struct ps_worker **ret_worker, struct error *error)
{
    struct ps_worker *worker = memory_allocate(1, sizeof *worker);
    const struct crew *crew = &trainer->crew;
    worker->trainer = trainer;
    worker->mode =
        trainer->job->strategy.mode == PARAMETER_SERVER_NOT_SAID ? PARAMETER_SERVER_ASYNC : trainer->job->strategy.mode;
    placement_init(&worker->placement, graph_layout(trainer->graph), crew->server_count);
    worker->tells = !trainer_is_chief(trainer);
    worker->by_rows = placement_has_tables(&worker->placement);
    worker->seats = memory_allocate(1 + crew->server_count, sizeof *worker->seats);
    worker->seats[0] = crew->seats[0];
    for (unsigned i = 0; i < crew->server_count; i++)
        worker->seats[1 + i] = crew->servers[i];
    if (ps_share_new(trainer, &worker->share, error) < 0 || open_links(worker, error) < 0 || stage(worker, error) < 0) {
        ps_worker_free(worker);
        return -1;
    }
    rpc_start_ticks(worker->rpc);
    rpc_wake(worker->rpc);
    *ret_worker = worker;
    return 0;
}

void ps_worker_free(struct ps_worker *worker)
{
    if (worker == NULL)
        return;
    if (worker->rpc)
        rpc_stop(worker->rpc);
    address_book_free(worker->book);
    if (worker->rpc)
        rpc_free(worker->rpc);
    if (!ps_share_free(worker->share))
        worker->trainer->training = NULL; /* its thread has it, until the process ends */
    servers_link_free(worker->servers);
    ticket_link_free(worker->tickets);
    placement_release(&worker->placement);
    for (unsigned i = 0; i < PS_SERVERS_MAX; i++)
        row_set_release(&worker->rows[i]);
    free(worker->seats);
    free(worker);
}

/* A worker holds nothing that the servers do not hold too. */
static void abandon(void *context)
{
    struct ps_worker *worker = context;
    ticket_link_leave(worker->tickets);
    leaving_end(worker->trainer, "a share", "half",
                "the crew goes on without this worker, and another takes its share");
}

static void ask(void *context)
{
    struct ps_worker *worker = context;
    abandonment_ask(worker->trainer->abandonment);
    ps_worker_cancel(worker);
}

static int work(struct ps_worker *worker, struct error *error)
{
    struct trainer *trainer = worker->trainer;
    const struct abandonment_options options = {
        .patience_ms = trainer->identity->grace_ms / 2, .abandon = abandon, .context = worker};
    if (abandonment_new(&options, &trainer->abandonment, error) < 0)
        return -1;
    abandonment_step_begins(trainer->abandonment);
    stop_notify(ask, worker);
    int result = ps_worker_work(worker, error);
    leaving_close(trainer);
    return result;
}

int ps_worker_run(struct trainer *trainer, struct error *error)
{
    struct ps_worker *worker;
    if (ps_worker_new(trainer, &worker, error) < 0)
        return -1;
    report_phase(trainer->report, STATUS_TRAINING, NULL);
    int result = work(worker, error);
    ticket_link_leave(worker->tickets);
    ps_worker_free(worker);
    return result;
}
