/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/trainer_stages.h"

#include <string.h>

#include "common/memory.h"
#include "worker/strategy/crew_communicator.h"
#include "worker/train/announce.h"
#include "worker/train/compute_threads.h"
#include "worker/train/memory_budget.h"
#include "worker/train/support.h"

int trainer_threads(const struct trainer *trainer)
{
    return compute_threads(trainer->arguments, trainer->identity, trainer->crew.expected > 0 ? &trainer->crew : NULL);
}

/* Logical devices of a CPU share what the process has. */
static int share_threads(int threads, unsigned devices)
{
    int share = threads / (int)devices;
    return share > 0 ? share : 1;
}

/* Returns whether devices only exchange data within a process, so that no network is involved. */
static bool keeps_to_own_devices(const struct job_document *job)
{
    return job->strategy.type == STRATEGY_MIRRORED || job->strategy.type == STRATEGY_PEER_TO_PEER;
}

bool trainer_may_sum_on_devices(const struct trainer *trainer)
{
    const struct job_document *job = trainer->job;
    const struct strategy_spec *strategy = &job->strategy;
    bool several = strategy->type == STRATEGY_MULTI_WORKER_MIRRORED ||
                   (keeps_to_own_devices(job) && job->devices.count > 1) ||
                   (strategy->type == STRATEGY_PIPELINE && trainer->crew.size > 1);
    return several && job->devices.type != DEVICE_TYPE_CPU && !job_document_uses_plugin(job) &&
           (strategy->collective == COLLECTIVE_AUTO || strategy->collective == COLLECTIVE_NCCL);
}

static int prepare_communicators(struct trainer *trainer, struct error *error)
{
    struct communicator_capabilities standings[STRATEGY_DEVICES_MAX] = {0};
    for (unsigned i = 0; i < trainer->device_count; i++)
        if (communicator_prepare(trainer->devices[i].device, &standings[i], error) < 0)
            return -1;
    memcpy(trainer->communicators, standings, trainer->device_count * sizeof *standings);
    return 0;
}

/* Finds NCCL. If it is missing and not required, a message says why gradients go through the host. */
static int find_communicator(struct trainer *trainer, struct error *error)
{
    struct error cause = ERROR_INIT;
    const struct strategy_spec *strategy = &trainer->job->strategy;
    const unsigned stages = strategy->stages == FIELD_UNSET ? 0 : (unsigned)strategy->stages;
    const char *cargo = crew_communicator_cargo(strategy->type, stages, trainer->device_count);
    bool must = strategy->collective == COLLECTIVE_NCCL, alone = keeps_to_own_devices(trainer->job);
    if (!trainer_may_sum_on_devices(trainer) || (!must && device_memory_is_shared(trainer->device)))
        return 0;
    if (!must && !alone && trainer->identity->crew_tls_directory) {
        bool may = strategy->type != STRATEGY_PIPELINE; /* which has no such option */
        report_say(trainer->report, "%s through the host, because NCCL does not support TLS, which the job uses%s",
                   cargo, may ? "; set strategy.collective: NCCL to send them unencrypted" : "");
        return 0;
    }
    if (prepare_communicators(trainer, must ? error : &cause) == 0)
        return 0;
    if (must)
        return -1;
    report_say(trainer->report, "%s; %s through the host", cause.message, cargo);
    return 0;
}

bool trainer_keeps_to_the_host(const struct trainer *trainer)
{
    return trainer->crew.part == CREW_SERVES ||
           (trainer_serves_parameters(trainer) && trainer_is_chief(trainer) && crew_has_own_chief(&trainer->crew));
}

/* An evaluator has nothing to share out. */
static unsigned count_devices(const struct trainer *trainer)
{
    return trainer->crew.part == CREW_TRAINS && !trainer_keeps_to_the_host(trainer)
               ? (unsigned)trainer->job->devices.count
               : 1;
}

static int open_devices(struct trainer *trainer, struct error *error)
{
    unsigned count = count_devices(trainer);
    struct device_options options = {.type = trainer->job->devices.type,
                                     .threads = share_threads(trainer_threads(trainer), count),
                                     .arithmetic = trainer->identity->arithmetic};
    struct device *devices[STRATEGY_DEVICES_MAX];
    struct error against = ERROR_INIT;
    /* XLA runs the program on its devices; all else is computed on the host, by as many logical devices. */
    if (trainer_keeps_to_the_host(trainer) || job_document_uses_plugin(trainer->job) ||
        (options.type == DEVICE_TYPE_AUTO &&
         support_check_statistics(trainer->job, trainer->plan.logical_shards, &against) < 0))
        options.type = DEVICE_TYPE_CPU;
    if (devices_open(&options, count, devices, &against, error) < 0)
        return -1;
    for (unsigned i = 0; i < count; i++)
        trainer->devices[i].device = devices[i];
    trainer->device_count = count;
    trainer->device = devices[0];
    if (against.kind != ERROR_NONE)
        report_say(trainer->report, "devices.type Auto takes the CPU: %s", against.message);
    return 0;
}

int trainer_open_devices(struct trainer *trainer, struct error *error)
{
    if (open_devices(trainer, error) < 0)
        return -1;
    if (find_communicator(trainer, error) < 0)
        return -1;
    return device_stream_new(trainer->device, &trainer->stream, error);
}

/* Before anything large is allocated: a process that takes more than it may is killed without a word. A GPU would say so, but only
 * when it is full: which part of the model that meets is no help. */
static int plan_memory(struct trainer *trainer, struct host_memory_limit limit, struct error *error)
{
    struct memory_plans plans;
    if (memory_budget_plan(trainer, trainer->job, &plans, error) < 0)
        return -1;
    trainer->memory = plans;
    return memory_budget_check(trainer, &trainer->memory, limit, error);
}

int trainer_open_memory(struct trainer *trainer, struct error *error)
{
    struct host_memory_limit limit = host_memory_limit_read("");
    if (device_memory_is_shared(trainer->device))
        host_memory_allow(limit.bytes);
    return plan_memory(trainer, limit, error);
}

int trainer_check_stages(void *context, const unsigned *stages, unsigned layers, struct error *error)
{
    struct trainer *trainer = context;
    bool is_news = trainer->stages == NULL && trainer->strategy != NULL;
    trainer->stages = memory_resize(trainer->stages, layers, sizeof *trainer->stages);
    trainer->stage_layers = layers;
    memcpy(trainer->stages, stages, layers * sizeof *stages);
    if (plan_memory(trainer, host_memory_limit_read(""), error) < 0)
        return -1;
    if (is_news)
        announce_cut(trainer);
    return 0;
}
