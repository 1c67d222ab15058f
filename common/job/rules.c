/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/rules.h"

#include <string.h>

#include "common/job/immutability.h"
#include "common/job/job_document.h"
#include "common/job/rule_parts.h"
#include "common/job/string_format.h"
#include "common/job/worker_rules.h"

static bool is_ours(const struct json *self)
{
    return rule_is(self, "framework", "Coxswain");
}

/* ---------------------------------------------------------------- crew */

static const char *const one_worker_strategies[] = {"OneDevice", "Mirrored", "CentralStorage", NULL};
static const char *const chiefless_strategies[] = {"OneDevice", "Mirrored", "CentralStorage", "Pipeline", NULL};
static const char *const elastic_strategies[] = {"MultiWorkerMirrored", "ParameterServer", "PeerToPeer", NULL};

static bool one_worker(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is_one_of(self, "strategy.type", one_worker_strategies) || json_integer_at(self, "workers", 1) == 1;
}

static bool one_device(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "strategy.type", "OneDevice") || json_integer_at(self, "devices.count", 1) == 1;
}

static bool pipeline_options(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_is(self, "strategy.type", "Pipeline") ||
           (!rule_has(self, "strategy.stages") && !rule_has(self, "strategy.microBatches"));
}

static bool pipeline_stages(const struct json *self, const struct json *old)
{
    (void)old;
    int64_t devices = json_integer_at(self, "workers", 1) * json_integer_at(self, "devices.count", 1);
    int64_t own = json_integer_at(self, "devices.count", 1), stages = json_integer_at(self, "strategy.stages", 1);
    return stages < 1 || own < 1 || (devices % stages == 0 && (own % stages == 0 || stages % own == 0));
}

/* As many stages as there are devices when nothing else is said. */
static bool pipeline_devices(const struct json *self, const struct json *old)
{
    (void)old;
    int64_t devices = json_integer_at(self, "workers", 1) * json_integer_at(self, "devices.count", 1);
    return !rule_is(self, "strategy.type", "Pipeline") || rule_has(self, "strategy.stages") || devices <= STAGES_MAX;
}

static bool pipeline_shards(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "strategy.microBatches") || !rule_has(self, "training.logicalShards");
}

static bool pipeline_accumulation(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "strategy.microBatches") || json_integer_at(self, "training.gradientAccumulation", 1) == 1;
}

static bool layer_devices(const struct json *self, const struct json *old)
{
    (void)old;
    int64_t devices = json_integer_at(self, "workers", 1) * json_integer_at(self, "devices.count", 1);
    int64_t stages = json_integer_at(self, "strategy.stages", devices);
    const struct json *layers = json_member(json_member(self, "model"), "layers");
    for (const struct json *layer = json_first(layers); layer; layer = json_next(layer))
        if (rule_has(layer, "device") &&
            (!rule_is(self, "strategy.type", "Pipeline") || json_integer_at(layer, "device", 0) >= stages))
            return false;
    return true;
}

static bool split_devices(const struct json *self, const struct json *old)
{
    (void)old;
    int64_t devices = json_integer_at(self, "workers", 1) * json_integer_at(self, "devices.count", 1);
    int64_t stages = json_integer_at(self, "strategy.stages", devices);
    const struct json *layers = json_member(json_member(self, "model"), "layers");
    for (const struct json *layer = json_first(layers); layer; layer = json_next(layer))
        for (const struct json *item = json_first(json_member(layer, "devices")); item; item = json_next(item))
            if (!rule_is(self, "strategy.type", "Pipeline") || json_integer(item, 0) >= stages)
                return false;
    return true;
}

static bool parameter_servers(const struct json *self, const struct json *old)
{
    (void)old;
    bool given = rule_has_role(self, "ps");
    return rule_is(self, "strategy.type", "ParameterServer") == given;
}

static bool parameter_server_options(const struct json *self, const struct json *old)
{
    (void)old;
    bool given = rule_has(self, "mode") || rule_has(self, "staleness") || rule_has(self, "backupWorkers");
    return rule_is(self, "type", "ParameterServer") || !given;
}

static bool staleness_bounds(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "staleness") || rule_is(self, "mode", "BoundedStaleness");
}

static bool backup_workers_wait(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "backupWorkers") || rule_is(self, "mode", "Synchronous") ||
           rule_is(self, "mode", "BoundedStaleness");
}

static bool backup_workers_fit(const struct json *self, const struct json *old)
{
    (void)old;
    return json_integer_at(self, "strategy.backupWorkers", 0) < json_integer_at(self, "workers", 1);
}

static bool image_of_foreign_framework(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_is(self, "framework", "Coxswain") || rule_has(self, "image");
}

static bool worker_count(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "name", "worker") || !rule_has(self, "count");
}

static bool lone_role(const struct json *self, const struct json *old)
{
    (void)old;
    static const char *const lone[] = {"chief", "evaluator", NULL};
    return !rule_is_one_of(self, "name", lone) || json_integer_at(self, "count", 1) == 1;
}

/* Only a ParameterServer crew has members that do not train. */
static bool evaluator_strategy(const struct json *self, const struct json *old)
{
    (void)old;
    bool given = rule_has_role(self, "evaluator");
    return !is_ours(self) || !given || rule_is(self, "strategy.type", "ParameterServer");
}

/* It trains, and would be the second to do so; a pipeline's stages are cut for its workers. */
static bool chief_strategy(const struct json *self, const struct json *old)
{
    (void)old;
    bool given = rule_has_role(self, "chief");
    return !is_ours(self) || !given || !rule_is_one_of(self, "strategy.type", chiefless_strategies);
}

static bool trainers_fit(const struct json *self, const char *workers)
{
    int64_t chiefs = rule_has_role(self, "chief");
    return !is_ours(self) || json_integer_at(self, workers, 1) + chiefs <= TRAINERS_MAX;
}

static bool crew_size(const struct json *self, const struct json *old)
{
    (void)old;
    return trainers_fit(self, "workers");
}

static bool elastic_size(const struct json *self, const struct json *old)
{
    (void)old;
    return trainers_fit(self, "elastic.maxWorkers");
}

static bool server_count(const struct json *self, const struct json *old)
{
    (void)old;
    const struct json *servers = rule_element_named(json_member(self, "roles"), "ps");
    return !is_ours(self) || json_integer_at(servers, "count", 1) <= CREW_SERVERS_MAX;
}

static bool encryption_is_ours(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_is(self, "framework", "Coxswain") || !rule_is(self, "encryption", "TLS");
}

static bool tpu_is_foreign(const struct json *self, const struct json *old)
{
    (void)old;
    return !is_ours(self) || !rule_is(self, "devices.type", "TPU");
}

/* jax.distributed counts its processes once. */
static bool jax_is_not_elastic(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "framework", "JAX") || !rule_has(self, "elastic");
}

static bool elastic_strategy(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "elastic") || rule_is_one_of(self, "strategy.type", elastic_strategies);
}

static bool elastic_bounds(const struct json *self, const struct json *old)
{
    (void)old;
    int64_t workers = json_integer_at(self, "workers", 1);
    return !rule_has(self, "elastic") || (json_integer_at(self, "elastic.minWorkers", 0) <= workers &&
                                          workers <= json_integer_at(self, "elastic.maxWorkers", 0));
}

static bool elastic_order(const struct json *self, const struct json *old)
{
    (void)old;
    return json_integer_at(self, "minWorkers", 0) <= json_integer_at(self, "maxWorkers", 0);
}

static bool workers_fixed(const struct json *self, const struct json *old)
{
    return rule_has(self, "elastic") || json_integer_at(self, "workers", 1) == json_integer_at(old, "workers", 1);
}

/* Each worker's share, and with it the global batch, would change with their number. */
static bool elastic_batch(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "elastic") || !rule_has(self, "training.perReplicaBatchSize");
}

static bool local_steps_strategy(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "localSteps") || rule_is(self, "type", "MultiWorkerMirrored");
}

/* What it would have to be combined with is not: replicas that differ, other ways of summing. */
static bool sharded_optimizer(const struct json *self, const struct json *old)
{
    (void)old;
    bool elsewhere = !rule_is(self, "type", "MultiWorkerMirrored") || rule_has(self, "localSteps") ||
                     (rule_has(self, "collective") && !rule_is(self, "collective", "Auto"));
    return !json_boolean_at(self, "shardedOptimizer", false) || !elsewhere;
}

/* Its slots are cut for one size of the crew. */
static bool sharded_crew(const struct json *self, const struct json *old)
{
    (void)old;
    return !json_boolean_at(self, "strategy.shardedOptimizer", false) || !rule_has(self, "elastic");
}

static bool collective_strategy(const struct json *self, const struct json *old)
{
    (void)old;
    static const char *const summing[] = {"Mirrored", "CentralStorage", "MultiWorkerMirrored", NULL};
    return !rule_has(self, "collective") || rule_is(self, "collective", "Auto") ||
           rule_is_one_of(self, "type", summing);
}

static bool outer_optimizer(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "localSteps") || !(rule_has(self, "outerLearningRate") || rule_has(self, "outerMomentum"));
}

static int64_t pods_in_all(const struct json *self)
{
    int64_t count = json_integer_at(self, "workers", 1);
    const struct json *roles = json_member(self, "roles");
    for (const struct json *role = json_first(roles); role; role = json_next(role))
        if (!rule_is(role, "name", "worker"))
            count += json_integer_at(role, "count", 1);
    return count;
}

static bool gang_size(const struct json *self, const struct json *old)
{
    (void)old;
    return json_integer_at(self, "runPolicy.gang.minAvailable", 1) <= pods_in_all(self);
}

static bool gang_scheduled(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "minAvailable") || !rule_is(self, "scheduler", "None");
}

static bool gang_queue(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "queue") || rule_is(self, "scheduler", "Volcano");
}

static bool gang_timeout(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "scheduleTimeoutSeconds") || rule_is(self, "scheduler", "Coscheduling");
}

static bool one_failure_match(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "onExitCodes") != rule_has(self, "onPodConditions");
}

/* ---------------------------------------------------------------- sections */

static bool model_given(const struct json *self, const struct json *old)
{
    (void)old;
    return !is_ours(self) || rule_has(self, "model");
}

static bool data_given(const struct json *self, const struct json *old)
{
    (void)old;
    return !is_ours(self) || rule_has(self, "data");
}

static bool training_given(const struct json *self, const struct json *old)
{
    (void)old;
    return !is_ours(self) || rule_has(self, "training");
}

static bool document_model(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "model");
}

static bool document_data(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "data");
}

static bool document_training(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "training");
}

/* ---------------------------------------------------------------- storage */

static bool storage_exists(const struct json *self, const char *path)
{
    return !rule_has(self, path) || rule_element_named(json_member(self, "storage"), json_string_at(self, path, ""));
}

static bool storage_writable(const struct json *self, const char *path)
{
    const struct json *storage = rule_element_named(json_member(self, "storage"), json_string_at(self, path, ""));
    return !json_boolean_at(storage, "readOnly", false);
}

static bool data_storage(const struct json *self, const struct json *old)
{
    (void)old;
    return storage_exists(self, "data.storage");
}

static bool checkpoint_storage(const struct json *self, const struct json *old)
{
    (void)old;
    return storage_exists(self, "checkpoint.storage");
}

static bool checkpoint_writable(const struct json *self, const struct json *old)
{
    (void)old;
    return storage_writable(self, "checkpoint.storage");
}

static bool export_storage(const struct json *self, const struct json *old)
{
    (void)old;
    return storage_exists(self, "export.storage");
}

static bool export_writable(const struct json *self, const struct json *old)
{
    (void)old;
    return storage_writable(self, "export.storage");
}

static bool best_is_kept(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "export.weights", "Best") || json_boolean_at(self, "checkpoint.keepBest", false);
}

static bool best_is_scored(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "export.weights", "Best") || rule_has(self, "data.validation");
}

static bool init_storage(const struct json *self, const struct json *old)
{
    (void)old;
    const char *from = json_string_at(self, "init.from", "/");
    const struct json *storage = json_member(self, "storage");
    const char *colon = strchr(from, ':');
    if (*from == '/')
        return true;
    for (const struct json *item = json_first(storage); colon && item; item = json_next(item)) {
        const char *name = json_string_at(item, "name", "");
        if (strlen(name) == (size_t)(colon - from) && memcmp(name, from, strlen(name)) == 0)
            return true;
    }
    return false;
}

static const char *const volume_sources[] = {"persistentVolumeClaim",
                                             "hostPath",
                                             "emptyDir",
                                             "nfs",
                                             "csi",
                                             "ephemeral",
                                             "configMap",
                                             "secret",
                                             "projected",
                                             NULL};

static int volume_source_count(const struct json *storage)
{
    int count = 0;
    for (const char *const *source = volume_sources; *source; source++)
        count += json_member(storage, *source) != NULL;
    return count;
}

static bool one_volume_source(const struct json *self, const struct json *old)
{
    (void)old;
    for (const struct json *item = json_first(json_member(self, "storage")); item; item = json_next(item))
        if (volume_source_count(item) != 1)
            return false;
    return true;
}

/* ---------------------------------------------------------------- checkpoint, model, data, training */

static bool checkpoint_interval(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "every") || !rule_has(self, "everySteps");
}

static bool preset_or_layers(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "preset") != rule_has(self, "layers");
}

static bool layers_have_input_shape(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "layers") || rule_has(self, "inputShape");
}

static bool dense_has_units(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "type", "dense") || rule_has(self, "units");
}

static bool conv2d_has_kernel(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "type", "conv2d") || (rule_has(self, "filters") && rule_has(self, "kernel"));
}

static bool pool_has_size(const struct json *self, const struct json *old)
{
    (void)old;
    static const char *const pools[] = {"maxPool", "averagePool", NULL};
    return !rule_is_one_of(self, "type", pools) || rule_has(self, "size");
}

static bool embedding_has_sizes(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "type", "embedding") || (rule_has(self, "size") && rule_has(self, "units"));
}

static bool attention_has_heads(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "type", "attention") || rule_has(self, "heads");
}

static bool add_has_inputs(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "type", "add") || json_count(json_member(self, "inputs")) >= 2;
}

static bool dropout_has_rate(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "type", "dropout") || rule_has(self, "rate");
}

static bool shortcut_has_filters(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "type", "shortcut") || rule_has(self, "filters");
}

static bool concat_has_inputs(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "type", "concat") || json_count(json_member(self, "inputs")) >= 2;
}

static bool split_is_dense(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "devices") || (rule_is(self, "type", "dense") && !rule_has(self, "weightsOf"));
}

static bool idx_files(const struct json *self, const struct json *old)
{
    (void)old;
    static const char *const pairs[] = {"idx", "npy", NULL};
    return !rule_is_one_of(self, "format", pairs) || (rule_has(self, "train.images") && rule_has(self, "train.labels"));
}

static bool listed_files(const struct json *self, const struct json *old)
{
    (void)old;
    static const char *const listed[] = {"cifar10", "tokens", "tfrecord", NULL};
    return !rule_is_one_of(self, "format", listed) || rule_has(self, "train.files");
}

static bool bytes_file(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "format", "bytes") || rule_has(self, "train.text");
}

static bool synthetic_examples(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "format", "synthetic") || rule_has(self, "examples");
}

static bool validation_last_or_files(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "validation.last") ||
           !(rule_has(self, "validation.images") || rule_has(self, "validation.labels") ||
             rule_has(self, "validation.text") || rule_has(self, "validation.files"));
}

static bool validation_pair(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "validation.images") == rule_has(self, "validation.labels");
}

static bool epochs_or_steps(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "epochs") != rule_has(self, "steps");
}

static bool one_batch_size(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "batchSize") != rule_has(self, "perReplicaBatchSize");
}

/* Accumulation is a number of shards; one given by hand would overrule it. */
static bool accumulation_or_shards(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "logicalShards") || json_integer_at(self, "gradientAccumulation", 1) == 1;
}

static bool learning_rate_scale(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "perReplicaBatchSize") == rule_has(self, "scaleLearningRate");
}

/* ---------------------------------------------------------------- the table */

#define DIGITS(number) #number
#define TEXT(number) DIGITS(number)
#define NAMED(list, name) "(has(self." list ") && self." list ".exists(s, s.name == " name "))"
#define WRITABLE(section)                                                                                              \
    "!has(self." section ") || !has(self." section ".storage) || !has(self.storage) || "                               \
    "!self.storage.exists(s, s.name == self." section ".storage && s.readOnly)"
#define EXISTING(section)                                                                                              \
    "!has(self." section ") || !has(self." section ".storage) || " NAMED("storage", "self." section ".storage")
#define GIVEN(section) "self.framework != 'Coxswain' || has(self." section ")"
#define FITS(workers)                                                                                                  \
    "self.framework != 'Coxswain' || " workers " + (" NAMED("roles", "'chief'") " ? 1 : 0) <= " TEXT(TRAINERS_MAX)
#define SOURCE(name) "(has(s." name ") ? 1 : 0)"
#define OURS "self.framework != 'Coxswain' || "
/* As worker_rules.c counts them. */
#define WORKERS "(has(self.elastic) ? self.elastic.maxWorkers : self.workers)"
#define TRAINERS "(" WORKERS " + (" NAMED("roles", "'chief'") " ? 1 : 0))"
#define SERVED_WORKERS "(" WORKERS " - (has(self.strategy.backupWorkers) ? self.strategy.backupWorkers : 0))"
#define SERVED_SHARES                                                                                                  \
    "(has(self.training.logicalShards) ? self.training.logicalShards / self.devices.count : " SERVED_WORKERS           \
    " * self.training.gradientAccumulation)"
#define REPLICAS                                                                                                       \
    "(self.strategy.type == 'ParameterServer' ? " SERVED_WORKERS                                                       \
    " * self.devices.count : self.strategy.type != 'Pipeline' ? " TRAINERS                                             \
    " * self.devices.count : has(self.strategy.stages) ? self.workers * self.devices.count / self.strategy.stages : "  \
    "1)"
#define IS_GLOBAL                                                                                                      \
    "(has(self.model) && ((has(self.model.statistics) && self.model.statistics == 'Global') || "                       \
    "(has(self.model.layers) && self.model.layers.exists(l, has(l.statistics) && l.statistics == 'Global'))))"
#define SHARDED "(has(self.strategy.shardedOptimizer) && self.strategy.shardedOptimizer)"
#define IS_SYNCHRONOUS "(has(self.strategy.mode) && self.strategy.mode == 'Synchronous')"
#define MODEL_READS_TOKENS                                                                                             \
    "((has(self.model.preset) && self.model.preset.startsWith('gpt')) || (has(self.model.layers) && "                  \
    "self.model.layers.size() > 0 && self.model.layers[0].type == 'embedding'))"

const struct rule rules[] = {
    {.name = "OneWorker",
     .about = &shared_type,
     .field = "workers",
     .holds = one_worker,
     .cel = "!(self.strategy.type in ['OneDevice', 'Mirrored', 'CentralStorage']) || self.workers == 1",
     .message = "OneDevice, Mirrored and CentralStorage have one worker; set workers to 1 or take MultiWorkerMirrored"},
    {.name = "OneDevice",
     .about = &shared_type,
     .field = "devices.count",
     .holds = one_device,
     .cel = "self.strategy.type != 'OneDevice' || self.devices.count == 1",
     .message = "OneDevice computes on one device; set devices.count to 1 or take Mirrored"},
    {.name = "PipelineOptions",
     .about = &shared_type,
     .field = "strategy",
     .holds = pipeline_options,
     .cel = "self.strategy.type == 'Pipeline' || (!has(self.strategy.stages) && !has(self.strategy.microBatches))",
     .message = "stages and microBatches are Pipeline's; leave them out or take Pipeline"},
    {.name = "PipelineStages",
     .about = &shared_type,
     .field = "strategy.stages",
     .holds = pipeline_stages,
     .cel = "!has(self.strategy.stages) || ((self.workers * self.devices.count) % self.strategy.stages == 0 && "
            "(self.devices.count % self.strategy.stages == 0 || self.strategy.stages % self.devices.count == 0))",
     .message = "must divide workers x devices.count, and divide devices.count or be divided by it, so that a worker "
                "has whole stages or whole replicas"},
    {.name = "PipelineDevices",
     .about = &shared_type,
     .field = "strategy.stages",
     .holds = pipeline_devices,
     .cel = "self.strategy.type != 'Pipeline' || has(self.strategy.stages) || "
            "self.workers * self.devices.count <= " TEXT(STAGES_MAX),
     .message = "is missing, and a stage on every device would be more than " TEXT(STAGES_MAX) "; say how many stages"},
    {.name = "PipelineShards",
     .about = &shared_type,
     .field = "training.logicalShards",
     .holds = pipeline_shards,
     .cel = "!has(self.strategy.microBatches) || !has(self.training) || !has(self.training.logicalShards)",
     .message = "a micro-batch is a logical shard; give either strategy.microBatches or this"},
    {.name = "PipelineAccumulation",
     .about = &shared_type,
     .field = "training.gradientAccumulation",
     .holds = pipeline_accumulation,
     .cel = "!has(self.strategy.microBatches) || !has(self.training) || self.training.gradientAccumulation == 1",
     .message = "micro-batches are accumulated anyway; raise strategy.microBatches and leave this out"},
    {.name = "LayerDevices",
     .about = &shared_type,
     .field = "model.layers",
     .holds = layer_devices,
     .cel = "!has(self.model) || !has(self.model.layers) || self.model.layers.all(l, !has(l.device) || "
            "(self.strategy.type == 'Pipeline' && l.device < (has(self.strategy.stages) ? self.strategy.stages : "
            "self.workers * self.devices.count)))",
     .message = "a layer's device must be below the number of stages, and only Pipeline places layers"},
    {.name = "SplitDevices",
     .about = &shared_type,
     .field = "model.layers",
     .holds = split_devices,
     .cel = "!has(self.model) || !has(self.model.layers) || self.model.layers.all(l, !has(l.devices) || "
            "(self.strategy.type == 'Pipeline' && l.devices.all(d, d < (has(self.strategy.stages) ? "
            "self.strategy.stages : self.workers * self.devices.count))))",
     .message = "a split layer's devices must be below the number of stages, and only Pipeline splits layers"},
    {.name = "ParameterServers",
     .about = &training_job_spec_type,
     .field = "roles",
     .holds = parameter_servers,
     .cel = "(self.strategy.type == 'ParameterServer') == " NAMED("roles", "'ps'"),
     .message = "ParameterServer needs a role named ps, and no other strategy has one"},
    {.name = "ParameterServerOptions",
     .about = &strategy_type,
     .field = "type",
     .holds = parameter_server_options,
     .cel = "self.type == 'ParameterServer' || !(has(self.mode) || has(self.staleness) || has(self.backupWorkers))",
     .message = "mode, staleness and backupWorkers are options of ParameterServer; leave them out"},
    {.name = "Staleness",
     .about = &strategy_type,
     .field = "staleness",
     .holds = staleness_bounds,
     .cel = "!has(self.staleness) || (has(self.mode) && self.mode == 'BoundedStaleness')",
     .message = "staleness belongs to mode BoundedStaleness; set that mode or leave staleness out"},
    {.name = "BackupWorkers",
     .about = &strategy_type,
     .field = "backupWorkers",
     .holds = backup_workers_wait,
     .cel = "!has(self.backupWorkers) || (has(self.mode) && self.mode != 'Async')",
     .message = "backupWorkers belongs to modes Synchronous and BoundedStaleness; set one of them or leave "
                "backupWorkers out"},
    {.name = "BackupWorkersFit",
     .about = &shared_type,
     .field = "strategy.backupWorkers",
     .holds = backup_workers_fit,
     .cel = "!has(self.strategy.backupWorkers) || self.strategy.backupWorkers < self.workers",
     .message = "must be lower than workers, for somebody has to compute the batch"},
    {.name = "Image",
     .about = &training_job_spec_type,
     .field = "image",
     .holds = image_of_foreign_framework,
     .cel = "self.framework == 'Coxswain' || has(self.image)",
     .message = "jobs of TensorFlow, PyTorch and JAX need an image; name the one to run"},
    {.name = "Encryption",
     .about = &training_job_spec_type,
     .field = "encryption",
     .holds = encryption_is_ours,
     .cel = "self.framework == 'Coxswain' || self.encryption != 'TLS'",
     .message = "only Coxswain's own worker encrypts what it says; leave encryption out and use a network that does"},
    {.name = "Tpu",
     .about = &training_job_spec_type,
     .field = "devices.type",
     .holds = tpu_is_foreign,
     .cel = "self.framework != 'Coxswain' || self.devices.type != 'TPU'",
     .message =
         "Coxswain's own worker does not compute on TPUs; take framework JAX, TensorFlow or PyTorch with an image "
         "that does, or devices.type CPU or GPU"},
    {.name = "JaxElastic",
     .about = &training_job_spec_type,
     .field = "elastic",
     .holds = jax_is_not_elastic,
     .cel = "self.framework != 'JAX' || !has(self.elastic)",
     .message = "a JAX crew keeps its size; leave elastic out"},
    {.name = "WorkerCount",
     .about = &role_type,
     .field = "count",
     .holds = worker_count,
     .cel = "self.name != 'worker' || !has(self.count)",
     .message = "the number of workers is spec.workers; leave it out here"},
    {.name = "LoneRole",
     .about = &role_type,
     .field = "count",
     .holds = lone_role,
     .cel = "!(self.name in ['chief', 'evaluator']) || !has(self.count) || self.count == 1",
     .message = "there is at most one chief and one evaluator"},
    {.name = "EvaluatorStrategy",
     .about = &training_job_spec_type,
     .field = "roles",
     .holds = evaluator_strategy,
     .cel = "self.framework != 'Coxswain' || self.strategy.type == 'ParameterServer' || "
            "!" NAMED("roles", "'evaluator'"),
     .message = "only ParameterServer has an evaluator of its own; leave it out, the chief evaluates"},
    {.name = "ChiefStrategy",
     .about = &training_job_spec_type,
     .field = "roles",
     .holds = chief_strategy,
     .cel = OURS "!(self.strategy.type in ['OneDevice', 'Mirrored', 'CentralStorage', 'Pipeline']) || "
                 "!" NAMED("roles", "'chief'"),
     .message = "OneDevice, Mirrored, CentralStorage and Pipeline are led by worker 0; leave the chief out"},
    {.name = "CrewSize",
     .about = &training_job_spec_type,
     .field = "workers",
     .holds = crew_size,
     .cel = FITS("self.workers"),
     .message = "a crew has at most " TEXT(TRAINERS_MAX) " members that train, its chief among them; lower workers"},
    {.name = "ElasticSize",
     .about = &training_job_spec_type,
     .field = "elastic.maxWorkers",
     .holds = elastic_size,
     .cel = "!has(self.elastic) || " FITS("self.elastic.maxWorkers"),
     .message = "a crew has at most " TEXT(TRAINERS_MAX) " members that train, its chief among them; lower maxWorkers"},
    {.name = "ServerCount",
     .about = &training_job_spec_type,
     .field = "roles",
     .holds = server_count,
     .cel = "self.framework != 'Coxswain' || !has(self.roles) || "
            "self.roles.all(r, r.name != 'ps' || !has(r.count) || r.count <= " TEXT(CREW_SERVERS_MAX) ")",
     .message = "a crew has at most " TEXT(CREW_SERVERS_MAX) " ps; lower the count of that role"},
    {.name = "ElasticStrategy",
     .about = &training_job_spec_type,
     .field = "elastic",
     .holds = elastic_strategy,
     .cel = "!has(self.elastic) || self.strategy.type in ['MultiWorkerMirrored', 'ParameterServer', 'PeerToPeer']",
     .message = "only MultiWorkerMirrored, ParameterServer and PeerToPeer can be elastic; leave elastic out"},
    {.name = "ElasticBounds",
     .about = &training_job_spec_type,
     .field = "workers",
     .holds = elastic_bounds,
     .cel =
         "!has(self.elastic) || (self.elastic.minWorkers <= self.workers && self.workers <= self.elastic.maxWorkers)",
     .message = "workers must lie between elastic.minWorkers and elastic.maxWorkers"},
    {.name = "ElasticOrder",
     .about = &elastic_type,
     .field = "minWorkers",
     .holds = elastic_order,
     .cel = "self.minWorkers <= self.maxWorkers",
     .message = "minWorkers must not exceed maxWorkers"},
    {.name = "ElasticBatch",
     .about = &training_job_spec_type,
     .field = "training.perReplicaBatchSize",
     .holds = elastic_batch,
     .cel = "!has(self.elastic) || !has(self.training) || !has(self.training.perReplicaBatchSize)",
     .message = "would make the global batch depend on how many workers are there; elastic jobs give batchSize"},
    {.name = "ShardedOptimizer",
     .about = &strategy_type,
     .field = "shardedOptimizer",
     .holds = sharded_optimizer,
     .cel = "!has(self.shardedOptimizer) || !self.shardedOptimizer || (self.type == 'MultiWorkerMirrored' && "
            "!has(self.localSteps) && (!has(self.collective) || self.collective == 'Auto'))",
     .message = "is for MultiWorkerMirrored with collective Auto and no localSteps; leave it or the others out"},
    {.name = "ShardedCrew",
     .about = &training_job_spec_type,
     .field = "strategy.shardedOptimizer",
     .holds = sharded_crew,
     .cel = "!has(self.strategy.shardedOptimizer) || !self.strategy.shardedOptimizer || !has(self.elastic)",
     .message = "needs a fixed number of workers; leave it or elastic out"},
    {.name = "Collective",
     .about = &strategy_type,
     .field = "collective",
     .holds = collective_strategy,
     .cel = "!has(self.collective) || self.collective == 'Auto' || "
            "self.type in ['Mirrored', 'CentralStorage', 'MultiWorkerMirrored']",
     .message = "is an option of Mirrored, CentralStorage and MultiWorkerMirrored; leave it out"},
    {.name = "LocalSteps",
     .about = &strategy_type,
     .field = "localSteps",
     .holds = local_steps_strategy,
     .cel = "!has(self.localSteps) || self.type == 'MultiWorkerMirrored'",
     .message = "is an option of MultiWorkerMirrored; take that type or leave it out"},
    {.name = "OuterOptimizer",
     .about = &strategy_type,
     .field = "localSteps",
     .holds = outer_optimizer,
     .cel = "has(self.localSteps) || !(has(self.outerLearningRate) || has(self.outerMomentum))",
     .message = "is missing; outerLearningRate and outerMomentum belong to local steps"},
    {.name = "GangSize",
     .about = &training_job_spec_type,
     .field = "runPolicy.gang.minAvailable",
     .holds = gang_size,
     .cel = "!has(self.runPolicy) || !has(self.runPolicy.gang) || !has(self.runPolicy.gang.minAvailable) || "
            "self.runPolicy.gang.minAvailable <= self.workers + (has(self.roles) ? self.roles.filter(r, r.name != "
            "'worker').map(r, has(r.count) ? r.count : 1).sum() : 0)",
     .message = "the job never has so many pods; take at most workers and the counts of the other roles together"},
    {.name = "GangScheduled",
     .about = &gang_type,
     .field = "minAvailable",
     .holds = gang_scheduled,
     .cel = "!has(self.minAvailable) || self.scheduler != 'None'",
     .message = "nobody places a gang without a scheduler that knows gangs: name it in scheduler, or leave this out"},
    {.name = "GangQueue",
     .about = &gang_type,
     .field = "queue",
     .holds = gang_queue,
     .cel = "!has(self.queue) || self.scheduler == 'Volcano'",
     .message = "only Volcano has queues here; for Kueue label the job with kueue.x-k8s.io/queue-name"},
    {.name = "GangTimeout",
     .about = &gang_type,
     .field = "scheduleTimeoutSeconds",
     .holds = gang_timeout,
     .cel = "!has(self.scheduleTimeoutSeconds) || self.scheduler == 'Coscheduling'",
     .message = "is an option of Coscheduling; leave it out"},
    {.name = "OneFailureMatch",
     .about = &failure_rule_type,
     .field = "onExitCodes",
     .holds = one_failure_match,
     .cel = "has(self.onExitCodes) != has(self.onPodConditions)",
     .message = "give either onExitCodes or onPodConditions; for both write two rules"},
    {.name = "WorkersFixed",
     .about = &training_job_spec_type,
     .field = "workers",
     .holds = workers_fixed,
     .on_update = true,
     .cel = "self.workers == oldSelf.workers || has(self.elastic)",
     .message = "workers may change only when elastic is set; " IMMUTABLE_REMEDY},
    {.name = "ModelGiven",
     .about = &training_job_spec_type,
     .field = "model",
     .holds = model_given,
     .cel = GIVEN("model"),
     .message = "framework Coxswain needs a model, such as {preset: lenet}"},
    {.name = "DataGiven",
     .about = &training_job_spec_type,
     .field = "data",
     .holds = data_given,
     .cel = GIVEN("data"),
     .message = "framework Coxswain needs data to train on"},
    {.name = "TrainingGiven",
     .about = &training_job_spec_type,
     .field = "training",
     .holds = training_given,
     .cel = GIVEN("training"),
     .message = "framework Coxswain needs training with epochs or steps and a batch size"},
    {.name = "DocumentModel",
     .about = &job_document_type,
     .field = "model",
     .holds = document_model,
     .message = "is missing; name a model, such as {preset: lenet}"},
    {.name = "DocumentData",
     .about = &job_document_type,
     .field = "data",
     .holds = document_data,
     .message = "is missing; say what to train on"},
    {.name = "DocumentTraining",
     .about = &job_document_type,
     .field = "training",
     .holds = document_training,
     .message = "is missing; give epochs or steps and a batch size"},
    {.name = "DataStorage",
     .about = &shared_type,
     .field = "data.storage",
     .holds = data_storage,
     .cel = EXISTING("data"),
     .message = "is not the name of a storage of this job; add it to storage or correct it"},
    {.name = "CheckpointStorage",
     .about = &shared_type,
     .field = "checkpoint.storage",
     .holds = checkpoint_storage,
     .cel = EXISTING("checkpoint"),
     .message = "is not the name of a storage of this job; add it to storage or correct it"},
    {.name = "CheckpointWritable",
     .about = &shared_type,
     .field = "checkpoint.storage",
     .holds = checkpoint_writable,
     .cel = WRITABLE("checkpoint"),
     .message = "is read-only; save to a storage that can be written"},
    {.name = "ExportStorage",
     .about = &shared_type,
     .field = "export.storage",
     .holds = export_storage,
     .cel = EXISTING("export"),
     .message = "is not the name of a storage of this job; add it to storage or correct it"},
    {.name = "ExportWritable",
     .about = &shared_type,
     .field = "export.storage",
     .holds = export_writable,
     .cel = WRITABLE("export"),
     .message = "is read-only; export to a storage that can be written"},
    {.name = "BestIsKept",
     .about = &shared_type,
     .field = "export.weights",
     .holds = best_is_kept,
     .cel = "!has(self.export) || self.export.weights != 'Best' || (has(self.checkpoint) && self.checkpoint.keepBest)",
     .message = "Best needs checkpoint.keepBest: true; the best weights are kept nowhere else"},
    {.name = "BestIsScored",
     .about = &shared_type,
     .field = "export.weights",
     .holds = best_is_scored,
     .cel = "!has(self.export) || self.export.weights != 'Best' || (has(self.data) && has(self.data.validation))",
     .message = "Best needs held-out examples to tell by; add data.validation, such as {last: 1000}"},
    {.name = "InitStorage",
     .about = &shared_type,
     .field = "init.from",
     .holds = init_storage,
     .cel = "!has(self.init) || self.init.from.startsWith('/') || "
            "(has(self.storage) && self.storage.exists(s, self.init.from.startsWith(s.name + ':')))",
     .message = "must be an absolute path, or <storage>:<path> with the name of a storage of this job"},
    {.name = "OneVolumeSource",
     .about = &training_job_spec_type,
     .field = "storage",
     .holds = one_volume_source,
     .cel =
         "!has(self.storage) || self.storage.all(s, " SOURCE("persistentVolumeClaim") " + " SOURCE("hostPath") " + " //
     SOURCE("emptyDir") " + " SOURCE("nfs") " + " SOURCE("csi") " + " SOURCE("ephemeral") " + " SOURCE("configMap")  //
     " + " SOURCE("secret") " + " SOURCE("projected") " == 1)",
     .message = "each storage needs exactly one volume source, such as persistentVolumeClaim: {claimName: runs}"},
    {.name = "CheckpointInterval",
     .about = &checkpoint_type,
     .field = "every",
     .holds = checkpoint_interval,
     .cel = "!has(self.every) || !has(self.everySteps)",
     .message = "give either every or everySteps, not both"},
    {.name = "PresetOrLayers",
     .about = &model_type,
     .field = "preset",
     .holds = preset_or_layers,
     .cel = "has(self.preset) != has(self.layers)",
     .message = "give either a preset or layers"},
    {.name = "InputShape",
     .about = &model_type,
     .field = "inputShape",
     .holds = layers_have_input_shape,
     .cel = "!has(self.layers) || has(self.inputShape)",
     .message = "layers need the inputShape of an example, such as [28, 28, 1]"},
    {.name = "DenseUnits",
     .about = &layer_type_type,
     .field = "units",
     .holds = dense_has_units,
     .cel = "self.type != 'dense' || has(self.units)",
     .message = "a dense layer needs units"},
    {.name = "Conv2dKernel",
     .about = &layer_type_type,
     .field = "filters",
     .holds = conv2d_has_kernel,
     .cel = "self.type != 'conv2d' || (has(self.filters) && has(self.kernel))",
     .message = "a conv2d layer needs filters and kernel"},
    {.name = "PoolSize",
     .about = &layer_type_type,
     .field = "size",
     .holds = pool_has_size,
     .cel = "!(self.type in ['maxPool', 'averagePool']) || has(self.size)",
     .message = "a pool needs the size of its window"},
    {.name = "EmbeddingSizes",
     .about = &layer_type_type,
     .field = "size",
     .holds = embedding_has_sizes,
     .cel = "self.type != 'embedding' || (has(self.size) && has(self.units))",
     .message = "an embedding needs size (of the vocabulary) and units"},
    {.name = "AttentionHeads",
     .about = &layer_type_type,
     .field = "heads",
     .holds = attention_has_heads,
     .cel = "self.type != 'attention' || has(self.heads)",
     .message = "attention needs heads"},
    {.name = "AddInputs",
     .about = &layer_type_type,
     .field = "inputs",
     .holds = add_has_inputs,
     .cel = "self.type != 'add' || (has(self.inputs) && self.inputs.size() >= 2)",
     .message = "add needs the names of at least two inputs"},
    {.name = "ConcatInputs",
     .about = &layer_type_type,
     .field = "inputs",
     .holds = concat_has_inputs,
     .cel = "self.type != 'concat' || (has(self.inputs) && self.inputs.size() >= 2)",
     .message = "concat needs the names of at least two inputs"},
    {.name = "SplitDense",
     .about = &layer_type_type,
     .field = "devices",
     .holds = split_is_dense,
     .cel = "!has(self.devices) || (self.type == 'dense' && !has(self.weightsOf))",
     .message = "only a dense layer with weights of its own can be split over devices"},
    {.name = "DropoutRate",
     .about = &layer_type_type,
     .field = "rate",
     .holds = dropout_has_rate,
     .cel = "self.type != 'dropout' || has(self.rate)",
     .message = "dropout needs its rate, such as \"0.1\""},
    {.name = "ShortcutFilters",
     .about = &layer_type_type,
     .field = "filters",
     .holds = shortcut_has_filters,
     .cel = "self.type != 'shortcut' || has(self.filters)",
     .message = "a shortcut needs filters, the channels that it is widened to"},
    {.name = "IdxFiles",
     .about = &data_type,
     .field = "train",
     .holds = idx_files,
     .cel = "!(self.format in ['idx', 'npy']) || "
            "(has(self.train) && has(self.train.images) && has(self.train.labels))",
     .message = "formats idx and npy need train.images and train.labels"},
    {.name = "ListedFiles",
     .about = &data_type,
     .field = "train",
     .holds = listed_files,
     .cel = "!(self.format in ['cifar10', 'tokens', 'tfrecord']) || (has(self.train) && has(self.train.files))",
     .message = "formats cifar10, tokens and tfrecord need train.files"},
    {.name = "BytesFile",
     .about = &data_type,
     .field = "train",
     .holds = bytes_file,
     .cel = "self.format != 'bytes' || (has(self.train) && has(self.train.text))",
     .message = "format bytes needs train.text"},
    {.name = "SyntheticExamples",
     .about = &data_type,
     .field = "examples",
     .holds = synthetic_examples,
     .cel = "self.format != 'synthetic' || has(self.examples)",
     .message = "format synthetic needs the number of examples"},
    {.name = "ValidationLastOrFiles",
     .about = &data_type,
     .field = "validation.last",
     .holds = validation_last_or_files,
     .cel = "!has(self.validation) || !has(self.validation.last) || !(has(self.validation.images) || "
            "has(self.validation.labels) || has(self.validation.text) || has(self.validation.files))",
     .message = "give either last or files of their own, not both"},
    {.name = "ValidationPair",
     .about = &data_type,
     .field = "validation.labels",
     .holds = validation_pair,
     .cel = "!has(self.validation) || has(self.validation.images) == has(self.validation.labels)",
     .message = "validation images and labels come together"},
    {.name = "EpochsOrSteps",
     .about = &training_type,
     .field = "epochs",
     .holds = epochs_or_steps,
     .cel = "has(self.epochs) != has(self.steps)",
     .message = "give either epochs or steps"},
    {.name = "OneBatchSize",
     .about = &training_type,
     .field = "batchSize",
     .holds = one_batch_size,
     .cel = "has(self.batchSize) != has(self.perReplicaBatchSize)",
     .message = "give either batchSize (of the whole crew) or perReplicaBatchSize"},
    {.name = "AccumulationOrShards",
     .about = &training_type,
     .field = "gradientAccumulation",
     .holds = accumulation_or_shards,
     .cel = "!has(self.logicalShards) || self.gradientAccumulation == 1",
     .message = "multiplies the default of logicalShards, which is given; raise logicalShards and leave this out"},
    {.name = "LearningRateScale",
     .about = &training_type,
     .field = "scaleLearningRate",
     .holds = learning_rate_scale,
     .cel = "has(self.perReplicaBatchSize) == has(self.scaleLearningRate)",
     .message = "perReplicaBatchSize needs scaleLearningRate, Linear or None; batchSize has none"},
    {.name = "LocalStepsCrew",
     .about = &training_job_spec_type,
     .field = "strategy.localSteps",
     .holds = worker_rule_local_steps_crew,
     .cel = OURS "!has(self.strategy.localSteps) || " TRAINERS " > 1",
     .message = "a lone worker has nobody to average with; leave it out or take more workers"},
    {.name = "ShardedAlone",
     .about = &training_job_spec_type,
     .field = "strategy.shardedOptimizer",
     .holds = worker_rule_sharded_alone,
     .cel = OURS "!" SHARDED " || " TRAINERS " > 1 || (self.devices.type == 'GPU' && self.devices.count > 1)",
     .message = "a lone worker shares slots among several GPUs of its own only; leave it out, take more workers, or "
                "devices {type: GPU, count: 2} and up"},
    {.name = "ServerAccumulation",
     .about = &shared_type,
     .field = "training.gradientAccumulation",
     .holds = worker_rule_server_accumulation,
     .cel = OURS "self.strategy.type != 'ParameterServer' || " IS_SYNCHRONOUS
                 " || !has(self.training) || self.training.gradientAccumulation == 1",
     .message = "with ParameterServer only in mode Synchronous; lower batchSize instead"},
    {.name = "ServerRate",
     .about = &shared_type,
     .field = "training.scaleLearningRate",
     .holds = worker_rule_server_rate,
     .cel = OURS "self.strategy.type != 'ParameterServer' || " IS_SYNCHRONOUS
                 " || !has(self.training) || !has(self.training.scaleLearningRate) || "
                 "self.training.scaleLearningRate != 'Linear'",
     .message = "each worker's share is an update of its own in modes Async and BoundedStaleness, and more workers "
                "make more of them at the whole rate; write None"},
    {.name = "Float16",
     .about = &shared_type,
     .field = "training.precision",
     .holds = worker_rule_float16,
     .cel = OURS "!has(self.training) || self.training.precision != 'float16' || "
                 "(!(self.strategy.type in ['ParameterServer', 'PeerToPeer']) && !has(self.strategy.localSteps))",
     .message = "float16 skips a step where its gradient is not finite, by the verdict of all who share it, which "
                "ParameterServer, PeerToPeer and localSteps have not; take bfloat16"},
    {.name = "Nccl",
     .about = &shared_type,
     .field = "strategy.collective",
     .holds = worker_rule_nccl,
     .cel = OURS "!has(self.strategy.collective) || self.strategy.collective != 'NCCL' || "
                 "((self.strategy.type == 'MultiWorkerMirrored' || "
                 "(self.strategy.type == 'Mirrored' && self.devices.count > 1)) && self.devices.type != 'CPU')",
     .message = "NCCL sums on several GPUs, those of Mirrored (devices.count) or of MultiWorkerMirrored; take Auto"},
    {.name = "Ring",
     .about = &shared_type,
     .field = "strategy.collective",
     .holds = worker_rule_ring,
     .cel = OURS "!has(self.strategy.collective) || self.strategy.collective != 'Ring' || !has(self.training) || "
                 "self.training.determinism != 'Crew'",
     .message = "Ring adds in an order that follows the crew's size, and so do its bits; set training.determinism to "
                "Run, or collective to Auto"},
    {.name = "GlobalStatistics",
     .about = &shared_type,
     .field = "model",
     .holds = worker_rule_global_statistics,
     .cel = OURS "!" IS_GLOBAL
                 " || (self.strategy.type in ['OneDevice', 'Mirrored', 'CentralStorage', 'MultiWorkerMirrored'] && "
                 "!has(self.strategy.localSteps) && (!has(self.training) || "
                 "self.training.gradientAccumulation == 1))",
     .message = "statistics: Global needs a strategy that computes a batch at once (OneDevice, Mirrored, "
                "CentralStorage, MultiWorkerMirrored without localSteps) and no gradientAccumulation; write Shard"},
    {.name = "GpuStatistics",
     .about = &training_job_spec_type,
     .field = "model",
     .holds = worker_rule_gpu_statistics,
     .cel = OURS "self.devices.type != 'GPU' || !" IS_GLOBAL " || (" REPLICAS
                 " == 1 && (!has(self.training) || !has(self.training.logicalShards) || "
                 "self.training.logicalShards == 1))",
     .message = "statistics: Global over several logical shards is computed on CPUs only so far; write Shard"},
    {.name = "FewestShards",
     .about = &training_job_spec_type,
     .field = "training.logicalShards",
     .holds = worker_rule_fewest_shards,
     .cel = OURS "!has(self.training) || !has(self.training.logicalShards) || "
                 "self.training.logicalShards >= " REPLICAS,
     .message = "each device of the crew, its chief's too, has at least one shard; give as many, or leave it out"},
    {.name = "MostShards",
     .about = &training_job_spec_type,
     .field = "training.gradientAccumulation",
     .holds = worker_rule_most_shards,
     .cel = OURS "!has(self.training) || has(self.training.logicalShards) || " REPLICAS
                 " * (has(self.strategy.microBatches) ? self.strategy.microBatches : 1) * "
                 "self.training.gradientAccumulation <= " TEXT(SHARDS_MAX),
     .message = "a batch is cut into at most " TEXT(SHARDS_MAX) " pieces, and devices x this x microBatches are more; "
                                                                "lower one of them"},
    {.name = "ServedTree",
     .about = &training_job_spec_type,
     .field = "devices.count",
     .holds = worker_rule_served_tree,
     .cel = OURS "self.strategy.type != 'ParameterServer' || !" IS_SYNCHRONOUS
                 " || self.devices.count == 1 || !has(self.training) || ((!has(self.training.logicalShards) || "
                 "self.training.logicalShards % self.devices.count == 0) && " SERVED_SHARES
                 " in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096])",
     .message = "in mode Synchronous the devices of a worker take a logical shard each, and such groups of a batch "
                "must be a power of two for the bits of one device; take 2, 4, 8 … workers (x gradientAccumulation), "
                "give logicalShards of as many x devices.count, or take another mode"},
    {.name = "ServedShards",
     .about = &training_job_spec_type,
     .field = "training",
     .holds = worker_rule_served_shards,
     .cel = OURS "self.strategy.type != 'ParameterServer' || !" IS_SYNCHRONOUS
                 " || !has(self.training) || " SERVED_SHARES " <= " TEXT(SERVED_SHARDS_MAX),
     .message = "a ps in mode Synchronous keeps at most " TEXT(
         SERVED_SHARDS_MAX) " shares of a batch; lower "
                            "logicalShards or gradientAccumulation, or take another mode"},
    {.name = "EvaluatorCheckpoint",
     .about = &training_job_spec_type,
     .field = "checkpoint",
     .holds = worker_rule_evaluator_checkpoint,
     .cel = OURS "self.strategy.type != 'ParameterServer' || has(self.checkpoint) || !" NAMED("roles", "'evaluator'"),
     .message =
         "is missing, and an evaluator scores checkpoints; say where they are saved, or leave the evaluator out"},
    {.name = "EvaluatorExamples",
     .about = &training_job_spec_type,
     .field = "data.validation",
     .holds = worker_rule_evaluator_examples,
     .cel = OURS "self.strategy.type != 'ParameterServer' || (has(self.data) && has(self.data.validation)) || "
                 "!" NAMED("roles", "'evaluator'"),
     .message = "is missing, and an evaluator needs held-out examples; give some, such as {last: 1000}, or leave the "
                "evaluator out"},
    {.name = "Texts",
     .about = &shared_type,
     .field = "data.format",
     .holds = worker_rule_texts,
     .cel = OURS "!has(self.model) || !has(self.data) || self.data.format == 'synthetic' || "
                 "(self.data.format in ['bytes', 'tokens']) == " MODEL_READS_TOKENS,
     .message = "bytes and tokens are for gpt presets and layers that begin with an embedding, and the other formats "
                "for the other models; change format or model"},
    {.name = "AugmentedImages",
     .about = &shared_type,
     .field = "data.augmentation",
     .holds = worker_rule_augmented_images,
     .cel = OURS "!has(self.model) || !has(self.data) || !has(self.data.augmentation) || !" MODEL_READS_TOKENS,
     .message = "is for images, and the model reads tokens; leave it out"},
    {.name = "ExportNames",
     .about = &shared_type,
     .field = "export.names",
     .holds = worker_rule_export_names,
     .cel = OURS "!has(self.export) || self.export.names != 'HuggingFace' || !has(self.model) || "
                 "!has(self.model.preset) || self.model.preset.startsWith('gpt')",
     .message = "Hugging Face's names are those of GPT-2; leave it out, or take a gpt preset"},
    {.name = "InitPath",
     .about = &shared_type,
     .field = "init.from",
     .holds = worker_rule_init_path,
     .cel = OURS "!has(self.init) || self.init.from.startsWith('/') || !self.init.from.contains(':') || "
                 "self.init.from.matches('^[^:]*:" PATH_EXPRESSION "$')",
     .message = "needs, behind the storage's name, a path without empty, '.' and '..' parts, such as "
                "runs:digits/weights.safetensors"},
    {.name = "LentBias",
     .about = &layer_type_type,
     .field = "bias",
     .holds = worker_rule_lent_bias,
     .cel = "!has(self.weightsOf) || !self.bias",
     .message = "a layer with weightsOf has none; write bias: false"},
    {.name = "PoolPadding",
     .about = &layer_type_type,
     .field = "padding",
     .holds = worker_rule_pool_padding,
     .cel = "!(self.type in ['maxPool', 'averagePool']) || !has(self.size) || self.padding < self.size",
     .message = "must be lower than the pool's size, or a window would lie on zeros alone"},
    {.name = NULL},
};

bool job_name_holds(const char *name)
{
    return strlen(name) <= JOB_NAME_MAX && string_format_matches(STRING_FORMAT_JOB_NAME, name);
}
