/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/trainer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/checkpoint_layout.h"
#include "common/contract/environment.h"
#include "common/memory.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/image.h"
#include "worker/comm/crew_certificates.h"
#include "worker/comm/crew_key.h"
#include "worker/optimizer/schedule.h"
#include "worker/strategy/local_rounds.h"
#include "worker/strategy/peer_hub.h"
#include "worker/train/export.h"
#include "worker/train/initial_weights.h"
#include "worker/train/memory_budget.h"
#include "worker/train/saving.h"
#include "worker/train/state_tensors.h"
#include "worker/train/stop.h"
#include "worker/train/support.h"

bool trainer_is_chief(const struct trainer *trainer)
{
    return trainer->crew.part == CREW_TRAINS && trainer->crew.rank == 0;
}

/* ---- the stages of opening, in order */

static int open_crew(struct trainer *trainer, struct error *error)
{
    if (crew_read(trainer->job, trainer->identity, &trainer->crew, error) < 0)
        return -1;
    return support_check(trainer->job, &trainer->crew, error);
}

static int map_storages(struct trainer *trainer, struct error *error)
{
    SCOPED_BUFFER text;
    buffer_init(&text, JOB_DOCUMENT_MAX);
    /* Options come last, and the last mount of a name counts. */
    if (trainer->identity->storage && buffer_append_string(&text, trainer->identity->storage, error) < 0)
        return -1;
    for (unsigned i = 0; i < trainer->arguments->storage_count; i++) {
        if (buffer_append_string(&text, text.length > 0 ? ":" : "", error) < 0 ||
            buffer_append_string(&text, trainer->arguments->storages[i], error) < 0)
            return -1;
    }
    return storage_map_parse(buffer_text(&text), &trainer->storage, error);
}

/* "storage:path", or an absolute path. */
static int resolve_init(struct trainer *trainer, struct error *error)
{
    const char *from = trainer->job->init_from;
    const char *colon = from && from[0] != '/' ? strchr(from, ':') : NULL;
    if (from == NULL)
        return 0;
    if (colon == NULL)
        return storage_map_resolve(trainer->storage, NULL, from, &trainer->init_path, error);
    SCOPED_FREE char *storage = memory_copy_bytes(from, (size_t)(colon - from));
    return storage_map_resolve(trainer->storage, storage, colon + 1, &trainer->init_path, error);
}

static int resolve_checkpoint(struct trainer *trainer, struct error *error)
{
    const struct checkpoint_spec *spec = &trainer->job->checkpoint;
    const char *told = trainer->arguments->checkpoint_directory ? trainer->arguments->checkpoint_directory
                                                                : trainer->identity->checkpoint_directory;
    if (told)
        trainer->checkpoint_directory = memory_copy_string(told);
    else if (spec->enabled && spec->path == NULL)
        return error_set(error, ERROR_INVALID,
                         "checkpoint.path: is missing, and by hand there is no job's name to take instead; give one");
    else if (spec->enabled)
        return storage_map_resolve(trainer->storage, spec->storage, spec->path, &trainer->checkpoint_directory, error);
    return 0;
}

static int open_paths(struct trainer *trainer, struct error *error)
{
    if (map_storages(trainer, error) < 0 || resolve_init(trainer, error) < 0 || resolve_checkpoint(trainer, error) < 0)
        return -1;
    if (trainer->job->export_to == NULL)
        return 0;
    return storage_map_resolve(trainer->storage, trainer->job->export_storage, trainer->job->export_to,
                               &trainer->export_path, error);
}

static int choose_http_port(const struct trainer *trainer)
{
    if (trainer->arguments->http_port != HTTP_PORT_UNSAID)
        return trainer->arguments->http_port;
    return trainer->identity->in_pod ? PORT_HTTP : -1;
}

static int open_report(struct trainer *trainer, struct error *error)
{
    bool evaluates = trainer->crew.part == CREW_EVALUATES; /* it tells its results itself */
    SCOPED_FREE char *board =
        trainer->checkpoint_directory
            ? file_path_join(trainer->checkpoint_directory,
                             evaluates ? CHECKPOINT_TENSORBOARD_EVALUATOR : CHECKPOINT_TENSORBOARD)
            : NULL;
    const struct report_options options = {
        .format = trainer->arguments->format,
        .job_uid = trainer->identity->job_uid,
        .role = crew_own_seat(&trainer->crew)->role,
        .index = crew_own_seat(&trainer->crew)->index,
        .epoch = trainer->identity->epoch,
        .chief = trainer_is_chief(trainer) || evaluates,
        .http_address = trainer->identity->pod_ip,
        .http_port = choose_http_port(trainer),
        .tensorboard_directory = board,
        .unit = "examples",
    };
    if (report_open(&options, &trainer->report, error) < 0)
        return -1;
    report_phase(trainer->report, STATUS_STARTING, NULL);
    return 0;
}

static int open_store(struct trainer *trainer, struct error *error)
{
    if (trainer->checkpoint_directory == NULL)
        return 0;
    if (!trainer_is_chief(trainer)) {
        trainer->parts = part_writer_new(trainer->checkpoint_directory);
        return 0;
    }
    const struct checkpoint_options options = {
        .directory = trainer->checkpoint_directory,
        .job_uid = trainer->identity->job_uid,
        .attempt = trainer->identity->attempt,
        .epoch = trainer->identity->epoch,
        .keep = trainer->job->checkpoint.keep,
        .ask_rank = saving_ask_rank,
        .context = trainer,
    };
    return checkpoint_store_open(&options, &trainer->store, error);
}

/* "0 0 1 1": a number a layer. */
static void read_stages(struct trainer *trainer, const char *text)
{
    char *end = NULL;
    for (unsigned long stage = strtoul(text, &end, 10); end != text; stage = strtoul(text, &end, 10)) {
        trainer->stages = memory_resize(trainer->stages, trainer->stage_layers + 1, sizeof *trainer->stages);
        trainer->stages[trainer->stage_layers++] = stage < STAGES_MAX ? (unsigned)stage : STAGES_MAX;
        text = end;
    }
}

/* The shards of the checkpoint that this run may go on from: every rank reads them from the shared directory, because the
 * plan must be the same for all. 0: there is none. */
static int64_t recorded_shards(struct trainer *trainer)
{
    struct manifest manifest;
    if (trainer->checkpoint_directory == NULL ||
        checkpoint_newest_manifest(trainer->checkpoint_directory, &manifest, NULL) < 0)
        return 0;
    int64_t shards = manifest.logical_shards;
    read_stages(trainer, json_string_at(manifest.model, "stages", ""));
    manifest_release(&manifest);
    return shards;
}

static bool is_parameter_server(const struct trainer *trainer)
{
    return trainer->job->strategy.type == STRATEGY_PARAMETER_SERVER;
}

/* Those that a batch is cut for: neither a chief of its own nor spare ones. An elastic crew's batch is cut for as many as it may
 * have, so that all processes, whenever they were made, mean the same by a ticket. */
static unsigned ps_workers(const struct trainer *trainer)
{
    int64_t spare = trainer->job->strategy.backup_workers == FIELD_UNSET ? 0 : trainer->job->strategy.backup_workers;
    unsigned seats = crew_is_elastic(&trainer->crew) ? trainer->crew.size : trainer->crew.expected;
    int64_t workers = (int64_t)seats - crew_has_own_chief(&trainer->crew) - spare;
    return workers > 0 ? (unsigned)workers : 1;
}

unsigned trainer_batch_workers(const struct trainer *trainer)
{
    return is_parameter_server(trainer) ? ps_workers(trainer) : trainer->crew.size;
}

static int open_plan(struct trainer *trainer, struct error *error)
{
    trainer->recorded_shards = recorded_shards(trainer);
    if (step_plan_batches(trainer->job, trainer_batch_workers(trainer), trainer->recorded_shards, &trainer->plan,
                          error) < 0)
        return -1;
    return support_check_shards(trainer->job, trainer->plan.logical_shards, error);
}

static int choose_threads(const struct trainer *trainer)
{
    if (trainer->arguments->threads > 0)
        return trainer->arguments->threads;
    if (trainer->identity->threads > 0)
        return trainer->identity->threads;
    return device_available_cpus() / (int)crew_members_here(&trainer->crew, trainer->identity);
}

/* Logical devices of a CPU share what the process has. */
static int share_threads(int threads, unsigned devices)
{
    int share = threads / (int)devices;
    return share > 0 ? share : 1;
}

static int open_devices(struct trainer *trainer, struct error *error)
{
    unsigned count = (unsigned)trainer->job->devices.count;
    struct device_options options = {.type = trainer->job->devices.type,
                                     .threads = share_threads(choose_threads(trainer), count)};
    for (unsigned i = 0; i < count; i++) {
        options.index = (int)i;
        if (device_open(&options, &trainer->devices[i].device, error) < 0)
            return -1;
        trainer->device_count++;
        if (count > 1 && !device_memory_is_shared(trainer->devices[i].device))
            return error_set(error, ERROR_UNSUPPORTED,
                             "devices.count: several GPUs in one worker are not there yet; set it to 1 and take more "
                             "workers");
    }
    trainer->device = trainer->devices[0].device;
    return device_stream_new(trainer->device, &trainer->stream, error);
}

/* Before anything large is allocated: a process that takes more than it may is killed without a word. A GPU has memory of its
 * own, and says itself when that is full. */
static int open_memory(struct trainer *trainer, struct error *error)
{
    struct host_memory_limit limit = host_memory_limit_read("");
    if (memory_budget_plan(trainer, trainer->job, &trainer->memory, error) < 0)
        return -1;
    if (!device_memory_is_shared(trainer->device))
        return 0;
    host_memory_allow(limit.bytes);
    return memory_budget_check(trainer, &trainer->memory, limit, error);
}

static int open_graphs(struct trainer *trainer, struct error *error)
{
    bool staged = trainer->job->strategy.type == STRATEGY_PIPELINE; /* its stages have graphs of their own */
    for (unsigned i = 0; i < (staged ? 1 : trainer->device_count); i++) {
        const struct graph_options options = {
            .device = trainer->devices[i].device,
            .model = &trainer->job->model,
            .max_examples = trainer->plan.max_shard_examples,
            .layout_only = staged || trainer->crew.part == CREW_SERVES,
            .evaluation_only = trainer->crew.part == CREW_EVALUATES,
        };
        if (graph_new(&options, &trainer->devices[i].graph, error) < 0)
            return -1;
    }
    trainer->graph = trainer->devices[0].graph;
    return 0;
}

static int open_data(struct trainer *trainer, struct error *error)
{
    const struct example_format *format = graph_example_format(trainer->graph);
    const struct data_spec *spec = &trainer->job->data;
    if (trainer->crew.part == CREW_SERVES) /* sees no examples */
        return 0;
    if (dataset_open(spec, trainer->storage, SPLIT_TRAIN, format, &trainer->training, error) < 0)
        return error_wrap(error, "training data");
    if (dataset_open(spec, trainer->storage, SPLIT_VALIDATION, format, &trainer->validation, error) < 0)
        return error_wrap(error, "validation data");
    int64_t count = dataset_count(trainer->training);
    trainer->sampler = (struct sampler){.seed = (uint64_t)trainer->job->training.seed, .count = count};
    return step_plan_steps(trainer->job, count, &trainer->plan, error);
}

static int open_state(struct trainer *trainer, struct error *error)
{
    if (trainer->export_path && export_check(graph_layout(trainer->graph), trainer->job->export_names, error) < 0)
        return -1;
    if (trainer->validation && support_check_validation(trainer->job, dataset_count(trainer->validation), error) < 0)
        return -1;
    if (trainer->job->strategy.type == STRATEGY_PIPELINE && trainer->crew.size > 1)
        return 0; /* its stages' alone, once they are known */
    /* Slots are the servers'; a copy of the parameters is for whoever evaluates and exports. */
    static const struct optimizer_spec without_slots = {.type = OPTIMIZER_SGD};
    bool needed = trainer->crew.part == CREW_EVALUATES || trainer_is_chief(trainer);
    if (is_parameter_server(trainer))
        return needed ? training_state_init(&trainer->state, trainer->device, graph_layout(trainer->graph),
                                            &without_slots, trainer->job->training.seed, error)
                      : 0;
    if (trainer->job->strategy.sharded_optimizer)
        return training_state_init_shard(&trainer->state, trainer->device, graph_layout(trainer->graph),
                                         &trainer->job->training.optimizer, trainer->job->training.seed,
                                         trainer->crew.rank, trainer->crew.size, error);
    if (training_state_init(&trainer->state, trainer->device, graph_layout(trainer->graph),
                            &trainer->job->training.optimizer, trainer->job->training.seed, error) < 0)
        return -1;
    if (trainer->job->strategy.local_steps > 0)
        return training_state_add_slot(&trainer->state, LOCAL_ROUNDS_SLOT, error);
    return 0;
}

static bool is_address(const char *host)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* Where this member listens: its pod's address; by hand its seat's, when that is numeric; else everywhere. */
const char *trainer_listen_address(const struct trainer *trainer)
{
    const char *host = crew_own_seat(&trainer->crew)->host;
    if (trainer->identity->pod_ip)
        return trainer->identity->pod_ip;
    return is_address(host) ? host : NULL;
}

/* By what the crew's pods know each other, and under what they talk. */
static int open_secrets(struct trainer *trainer, struct error *error)
{
    const struct identity *identity = trainer->identity;
    if (identity->crew_key_file && crew_key_load(identity->crew_key_file, error) < 0)
        return -1;
    return identity->crew_tls_directory ? crew_certificates_open(identity->crew_tls_directory, error) : 0;
}

/* What other members' bulk data comes to. */
static int open_data_plane(struct trainer *trainer, const char *address, uint16_t *ret_port, struct error *error)
{
    if (trainer->job->strategy.type != STRATEGY_PEER_TO_PEER) {
        if (endpoint_open(address, PORT_COLLECTIVE, &trainer->endpoint, error) < 0)
            return -1;
        *ret_port = endpoint_port(trainer->endpoint);
        return 0;
    }
    const struct peer_hub_options options = {
        .job_uid = trainer->identity->job_uid,
        .attempt = (uint32_t)trainer->identity->attempt,
        .epoch = (uint32_t)trainer->identity->epoch,
        .seat = trainer->crew.rank,
        .listen_address = address,
        .port = PORT_COLLECTIVE,
    };
    if (peer_hub_open(&options, &trainer->hub, error) < 0)
        return -1;
    *ret_port = peer_hub_port(trainer->hub);
    return 0;
}

static int open_member(struct trainer *trainer, struct error *error)
{
    if (trainer->crew.size == 1 || is_parameter_server(trainer))
        return 0;
    const char *address = trainer_listen_address(trainer);
    uint16_t data_port;
    if (open_data_plane(trainer, address, &data_port, error) < 0)
        return -1;
    const struct member_options options = {
        .job_uid = trainer->identity->job_uid,
        .attempt = (uint32_t)trainer->identity->attempt,
        .epoch = (uint32_t)trainer->identity->epoch,
        .rank = trainer->crew.rank,
        .size = trainer->crew.size,
        .least = trainer->crew.least,
        .expected = trainer->crew.expected,
        .seats = trainer->crew.seats,
        .listen_address = address,
        .data_port = data_port,
        .loose = trainer->hub != NULL,
        .logical_shards = (unsigned)trainer->plan.logical_shards,
    };
    return member_start(&options, &trainer->member, error);
}

static void tell_stall(void *context, const char *text)
{
    struct trainer *trainer = context;
    report_warn(trainer->report, "%s", text);
}

static void await_copy(void *context)
{
    struct trainer *trainer = context;
    if (trainer->store)
        checkpoint_fence(trainer->store);
}

double trainer_learning_rate(void *context, int64_t step)
{
    const struct trainer *trainer = context;
    return trainer->plan.learning_rate_factor *
           schedule_rate(&trainer->job->training.optimizer, step, trainer->plan.total_steps);
}

/* An elastic crew closes ranks at the boundary at which somebody leaves, and opens them at one for who has come. */
unsigned trainer_votes(void *context)
{
    const struct trainer *trainer = context;
    unsigned votes = (stop_is_asked() ? STRATEGY_VOTE_LEAVE : 0) | saving_votes(trainer);
    if (crew_is_elastic(&trainer->crew) && (votes || member_has_newcomers(trainer->member)))
        votes |= STRATEGY_VOTE_REFORM;
    return votes;
}

static int open_strategy(struct trainer *trainer, struct error *error)
{
    if (is_parameter_server(trainer)) /* its parts have loops of their own: train/parameter_server.h */
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
        .total_steps = trainer->plan.total_steps,
        .learning_rate = trainer_learning_rate,
        .votes = trainer_votes,
        .crew_size = trainer->crew.size,
        .crew_rank = trainer->crew.rank,
        .recorded_stages = trainer->stages,
        .recorded_layers = trainer->stage_layers,
        .restore_part = trainer_restore_part,
        .member = trainer->member,
        .endpoint = trainer->endpoint,
        .hub = trainer->hub,
        .seat = trainer->crew.rank,
        .peers = trainer->crew.expected,
        .job_uid = trainer->identity->job_uid,
        .on_stall = tell_stall,
        .restore = trainer_restore,
        .before_change = await_copy,
        .context = trainer,
    };
    return strategy_open(&options, &trainer->strategy, error);
}

static const struct stage {
    int (*open)(struct trainer *trainer, struct error *error);
    enum exit_code code; /* of plain bad input found there */
} stages[] = {
    {open_crew, EXIT_CODE_BAD_JOB},        {open_paths, EXIT_CODE_BAD_JOB},   {open_report, EXIT_CODE_INTERNAL},
    {open_store, EXIT_CODE_NO_CHECKPOINT}, {open_plan, EXIT_CODE_BAD_JOB},    {open_devices, EXIT_CODE_NO_DEVICE},
    {open_memory, EXIT_CODE_BAD_JOB},      {open_graphs, EXIT_CODE_BAD_JOB},  {open_data, EXIT_CODE_BAD_DATA},
    {open_state, EXIT_CODE_BAD_JOB},       {open_secrets, EXIT_CODE_BAD_JOB}, {open_member, EXIT_CODE_INTERNAL},
    {open_strategy, EXIT_CODE_BAD_JOB},
};

int trainer_open(struct trainer *trainer, const struct arguments *arguments, const struct identity *identity,
                 const struct job_document *job, enum exit_code *ret_code, struct error *error)
{
    *trainer = (struct trainer){
        .arguments = arguments, .identity = identity, .job = job, .evaluated_step = -1, .checkpoint_step = -1};
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++)
        if (stages[i].open(trainer, error) < 0) {
            *ret_code = trainer_exit_code(error, stages[i].code);
            return -1;
        }
    return 0;
}

void trainer_release(struct trainer *trainer)
{
    if (trainer->strategy)
        strategy_close(trainer->strategy);
    if (trainer->store) /* a save under way asks the member about the others */
        checkpoint_store_free(trainer->store);
    if (trainer->member)
        member_free(trainer->member);
    if (trainer->endpoint)
        endpoint_free(trainer->endpoint);
    peer_hub_free(trainer->hub);
    if (trainer->state.device)
        training_state_release(&trainer->state);
    if (trainer->validation)
        dataset_free(trainer->validation);
    if (trainer->training)
        dataset_free(trainer->training);
    for (unsigned i = 0; i < trainer->device_count; i++)
        graph_free(trainer->devices[i].graph);
    if (trainer->stream)
        device_stream_free(trainer->stream);
    for (unsigned i = 0; i < trainer->device_count; i++)
        device_close(trainer->devices[i].device);
    part_writer_free(trainer->parts);
    free(trainer->stages);
    if (trainer->report)
        report_free(trainer->report);
    if (trainer->storage)
        storage_map_free(trainer->storage);
    free(trainer->checkpoint_directory);
    free(trainer->export_path);
    free(trainer->init_path);
    crew_release(&trainer->crew);
}

/* ---- exit codes */

enum exit_code trainer_exit_code(const struct error *error, enum exit_code code)
{
    switch (error->kind) {
    case ERROR_STALE:
        return EXIT_CODE_SUPERSEDED;
    case ERROR_TIMEOUT:
    case ERROR_UNAVAILABLE:
        return EXIT_CODE_LOST_CREW;
    case ERROR_CANCELLED:
        return EXIT_CODE_LEFT;
    case ERROR_NO_SPACE:
        return code == EXIT_CODE_NOT_STORED ? code : EXIT_CODE_NO_MEMORY;
    case ERROR_UNSUPPORTED:
        return code == EXIT_CODE_NO_CHECKPOINT ? code : EXIT_CODE_NO_DEVICE;
    case ERROR_CONFLICT:
        return EXIT_CODE_BAD_JOB;
    case ERROR_NOT_FINITE:
        return EXIT_CODE_NOT_FINITE;
    case ERROR_DEVICE:
        return EXIT_CODE_DEVICE_FAILED;
    case ERROR_INTERNAL:
        return EXIT_CODE_INTERNAL;
    default:
        return code;
    }
}

/* ---- the state to start from */

static void tell_quarantined(void *context, const char *name, const char *reason)
{
    struct trainer *trainer = context;
    report_warn(trainer->report, "checkpoint %s is damaged and was moved aside: %s", name, reason);
}

static int start_from_checkpoint(struct trainer *trainer, const struct checkpoint_image *image, struct error *error)
{
    if (state_tensors_restore(&trainer->state, image, error) < 0)
        return error_wrap(error,
                          "checkpoint of step %lld does not fit this job (use another checkpoint.path to start anew)",
                          (long long)image->manifest.step);
    report_say(trainer->report, "resumes from the checkpoint of step %lld", (long long)image->manifest.step);
    return 0;
}

static int start_from_file(struct trainer *trainer, struct error *error)
{
    struct safetensors_file file;
    if (safetensors_open(trainer->init_path, &file, error) < 0)
        return error_wrap(error, "init.from");
    int result = initial_weights_load(&trainer->state, graph_layout(trainer->graph), &file, error);
    safetensors_close(&file);
    if (result < 0)
        return error_wrap(error, "init.from %s", trainer->init_path);
    report_say(trainer->report, "starts from the weights in %s", trainer->init_path);
    return 0;
}

int trainer_open_checkpoint(struct trainer *trainer, bool *ret_found, struct checkpoint_image *ret_image,
                            struct error *error)
{
    struct error cause = ERROR_INIT;
    *ret_found = false;
    if (trainer->store == NULL)
        return 0;
    if (checkpoint_restore(trainer->store, tell_quarantined, trainer, ret_image, &cause) == 0) {
        *ret_found = true;
        return 0;
    }
    if (cause.kind == ERROR_NOT_FOUND && !trainer->job->checkpoint.required)
        return 0;
    return error_set(error, cause.kind, "%s", cause.message);
}

/* `ret_name`: of the checkpoint that was found; may be NULL. */
static int try_checkpoint(struct trainer *trainer, bool *ret_found, struct checkpoint_name *ret_name,
                          struct error *error)
{
    struct checkpoint_image image = {0};
    if (trainer_open_checkpoint(trainer, ret_found, &image, error) < 0)
        return -1;
    if (!*ret_found)
        return 0;
    int result = start_from_checkpoint(trainer, &image, error);
    if (ret_name)
        *ret_name = image.name;
    checkpoint_image_release(&image);
    *ret_found = result == 0;
    return result;
}

int trainer_restore(void *context, struct error *error)
{
    struct trainer *trainer = context;
    bool found;
    trainer->restored_by_us = true;
    report_phase(trainer->report, STATUS_RESTORING, NULL);
    if (try_checkpoint(trainer, &found, NULL, error) < 0)
        return -1;
    if (!found && trainer->init_path)
        return start_from_file(trainer, error);
    return 0;
}

/* ---- the state of a crew that shares it out */

/* In the chief: the newest whole checkpoint, or "" when there is none. */
static int choose_base(struct trainer *trainer, char base[STRATEGY_BASE_MAX], struct error *error)
{
    struct checkpoint_name name;
    bool found;
    base[0] = '\0';
    if (trainer->store)
        checkpoint_give_up_parts(trainer->store);
    if (try_checkpoint(trainer, &found, &name, error) < 0)
        return -1;
    if (found) {
        char text[CHECKPOINT_NAME_MAX];
        checkpoint_name_format(&name, text);
        snprintf(base, STRATEGY_BASE_MAX, "%s", text);
    }
    return 0;
}

/* In the others: the one that the chief has named. */
static int take_base(struct trainer *trainer, const char *base, struct error *error)
{
    struct checkpoint_name name;
    struct checkpoint_image image = {0};
    if (base[0] == '\0')
        return 0;
    if (trainer->checkpoint_directory == NULL || checkpoint_name_parse(base, &name) < 0)
        return error_set(error, ERROR_INVALID, "the chief goes on from checkpoint %s, which this rank has no place for",
                         base);
    SCOPED_FREE char *path = file_path_join(trainer->checkpoint_directory, base);
    if (checkpoint_image_open(path, &name, &image, error) < 0)
        return error_wrap(error, "checkpoint %s, which the chief has chosen", base);
    int result = state_tensors_restore(&trainer->state, &image, error);
    checkpoint_image_release(&image);
    return result;
}

/* Every rank that was in training says what that costs: nothing, where the newest checkpoint is of the last step. */
static void tell_lost_steps(struct trainer *trainer)
{
    int64_t step = trainer->state.progress.step, lost = trainer->applied_step - step;
    const char *what = trainer->job->strategy.sharded_optimizer
                           ? "a shard of the optimizer was lost with its worker and the next one, which mirrored it"
                           : "a stage was lost with the only worker that held it";
    if (lost > 0)
        report_warn(trainer->report, "%s: back to step %lld, %lld step%s lost", what, (long long)step, (long long)lost,
                    lost == 1 ? " is" : "s are");
    else if (trainer->applied_step > 0)
        report_say(trainer->report, "%s: back to step %lld, no step is lost", what, (long long)step);
    trainer->applied_step = step;
}

int trainer_restore_part(void *context, bool chooses, char base[STRATEGY_BASE_MAX], struct error *error)
{
    struct trainer *trainer = context;
    report_phase(trainer->report, STATUS_RESTORING, NULL);
    trainer->restored_by_us = chooses;
    if ((chooses ? choose_base(trainer, base, error) : take_base(trainer, base, error)) < 0)
        return -1;
    tell_lost_steps(trainer);
    return base[0] == '\0' && trainer->init_path ? start_from_file(trainer, error) : 0;
}
