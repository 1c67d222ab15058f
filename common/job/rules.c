/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/rules.h"

#include <string.h>

#include "common/job/immutability.h"
#include "common/job/rule_values.h"
#include "common/job/string_format.h"
#include "common/job/sweep_rules.h"
#include "common/job/training_job.h"
#include "common/job/worker_rules.h"

/* ---------------------------------------------------------------- crew */

static const char *const one_worker_strategies[] = {"OneDevice", "Mirrored", "CentralStorage", NULL};
static const char *const chiefless_strategies[] = {"OneDevice", "Mirrored", "CentralStorage", "Pipeline", NULL};
static const char *const tpu_strategies[] = {"OneDevice", "Mirrored", "MultiWorkerMirrored", NULL};
static const char *const elastic_strategies[] = {"MultiWorkerMirrored", "ParameterServer", "PeerToPeer", NULL};

static int64_t worker_count(const struct json *self)
{
    return json_integer_at(self, "workers.replicas", 1);
}

/* How many devices train, all workers together. */
static int64_t device_count(const struct json *self)
{
    return worker_count(self) * json_integer_at(self, "devices.count", 1);
}

static bool is_elastic(const struct json *self)
{
    return rule_has(self, "workers.maxReplicas");
}

static bool one_worker(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is_one_of(self, "strategy.type", one_worker_strategies) || worker_count(self) == 1;
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
    int64_t devices = device_count(self);
    int64_t own = json_integer_at(self, "devices.count", 1), stages = rule_integer(self, "strategy.stages", 1);
    return stages < 1 || own < 1 || (devices % stages == 0 && (own % stages == 0 || stages % own == 0));
}

/* As many stages as there are devices when nothing else is said. */
static bool pipeline_devices(const struct json *self, const struct json *old)
{
    (void)old;
    int64_t devices = device_count(self);
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
    return !rule_has(self, "strategy.microBatches") || rule_integer(self, "training.gradientAccumulation", 1) == 1;
}

static bool layer_devices(const struct json *self, const struct json *old)
{
    (void)old;
    int64_t devices = device_count(self);
    int64_t stages = rule_integer(self, "strategy.stages", devices);
    const struct json *layers = rule_at(self, "model.layers");
    for (const struct json *layer = json_first(layers); layer; layer = json_next(layer))
        if (rule_has(layer, "device") &&
            (!rule_is(self, "strategy.type", "Pipeline") || json_integer_at(layer, "device", 0) >= stages))
            return false;
    return true;
}

static bool split_devices(const struct json *self, const struct json *old)
{
    (void)old;
    int64_t devices = device_count(self);
    int64_t stages = rule_integer(self, "strategy.stages", devices);
    const struct json *layers = rule_at(self, "model.layers");
    for (const struct json *layer = json_first(layers); layer; layer = json_next(layer))
        for (const struct json *item = json_first(json_member(layer, "devices")); item; item = json_next(item))
            if (!rule_is(self, "strategy.type", "Pipeline") || json_integer(item, 0) >= stages)
                return false;
    return true;
}

static bool parameter_servers(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "coxswain") ||
           rule_is(self, "strategy.type", "ParameterServer") == rule_has(self, "parameterServers");
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
    return rule_integer(self, "strategy.backupWorkers", 0) < worker_count(self);
}

static bool image_of_foreign_framework(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "coxswain") || rule_has(self, "image") || rule_has(self, "trainingClass");
}

/* Only a ParameterServer crew has members that do not train. */
static bool evaluator_strategy(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "coxswain") || !rule_has(self, "evaluator") ||
           rule_is(self, "strategy.type", "ParameterServer");
}

/* It trains, and would be the second to do so; a pipeline's stages are cut for its workers. */
static bool chief_strategy(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "coxswain") || !rule_has(self, "chief") ||
           !rule_is_one_of(self, "strategy.type", chiefless_strategies);
}

static bool trainers_fit(const struct json *self, const char *workers)
{
    int64_t chiefs = rule_has(self, "chief");
    return !rule_has(self, "coxswain") || json_integer_at(self, workers, 1) + chiefs <= TRAINERS_MAX;
}

static bool crew_size(const struct json *self, const struct json *old)
{
    (void)old;
    return trainers_fit(self, "workers.replicas");
}

static bool elastic_size(const struct json *self, const struct json *old)
{
    (void)old;
    return trainers_fit(self, "workers.maxReplicas");
}

static bool server_count(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "coxswain") || json_integer_at(self, "parameterServers.replicas", 1) <= CREW_SERVERS_MAX;
}

static bool plugin_devices(const struct json *self, const struct json *old)
{
    (void)old;
    bool suits = rule_has(self, "model") && !rule_is(self, "devices.type", "Auto");
    return !rule_has(self, "devices.plugin") || suits;
}

static bool plugin_strategy(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "devices.plugin") || !rule_is(self, "strategy.type", "Pipeline");
}

static bool plugin_precision(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_uses_plugin(self) || rule_has(self, "model.program") ||
           !rule_is(self, "training.precision", "Float16");
}

static bool plugin_recompute(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_uses_plugin(self) || !rule_boolean(self, "strategy.recompute");
}

static bool tpu_strategy(const struct json *self, const struct json *old)
{
    (void)old;
    static const char *const by_xla[] = {"GPU", "TPU", NULL};
    return !(rule_uses_plugin(self) && rule_is_one_of(self, "devices.type", by_xla)) ||
           !rule_has(self, "strategy.type") || rule_is_one_of(self, "strategy.type", tpu_strategies);
}

static bool elastic_strategy(const struct json *self, const struct json *old)
{
    (void)old;
    return !is_elastic(self) || !rule_has(self, "coxswain") ||
           rule_is_one_of(self, "strategy.type", elastic_strategies);
}

static bool elastic_pair(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "minReplicas") == rule_has(self, "maxReplicas");
}

static bool elastic_bounds(const struct json *self, const struct json *old)
{
    (void)old;
    int64_t replicas = json_integer_at(self, "replicas", 1);
    return json_integer_at(self, "minReplicas", replicas) <= replicas &&
           replicas <= json_integer_at(self, "maxReplicas", replicas);
}

static bool elastic_order(const struct json *self, const struct json *old)
{
    (void)old;
    return json_integer_at(self, "minReplicas", 0) <= json_integer_at(self, "maxReplicas", INT64_MAX);
}

static bool workers_fixed(const struct json *self, const struct json *old)
{
    return is_elastic(self) || worker_count(self) == worker_count(old);
}

/* Each worker's share, and with it the global batch, would change with their number. */
static bool elastic_batch(const struct json *self, const struct json *old)
{
    (void)old;
    return !is_elastic(self) || !rule_has(self, "training.perReplicaBatchSize");
}

static bool local_steps_strategy(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "localSteps") || rule_is(self, "type", "MultiWorkerMirrored");
}

/* A sharded optimizer cannot be combined with strategies in which replicas differ, nor with other ways of summing. */
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
    return !rule_boolean(self, "strategy.shardedOptimizer") || !is_elastic(self);
}

/* Workers of these do not act together, or compute with a plugin's devices. */
static bool preflight_strategy(const struct json *self, const struct json *old)
{
    (void)old;
    static const char *const apart[] = {"ParameterServer", "PeerToPeer", NULL};
    return !rule_boolean(self, "training.preflight") ||
           !(rule_is_one_of(self, "strategy.type", apart) || rule_uses_plugin(self));
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
    int64_t count = 0;
    for (int role = 0; role < ROLE_COUNT; role++)
        count += spec_role_count(self, (enum role)role);
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

static bool gang_topology(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "topologyKey") || rule_is(self, "scheduler", "Native");
}

/* The operator asks our own worker for its steps. */
static bool progress_deadline(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "runPolicy.progressDeadlineSeconds") || rule_has(self, "coxswain") ||
           rule_has(self, "pytorch.progress") || rule_has(self, "tensorflow.progress") ||
           rule_has(self, "jax.progress");
}

static bool straggler_replacement(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "runPolicy.stragglerReplacement") || rule_has(self, "coxswain");
}

static bool progress_source(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "logPatterns") || json_boolean_at(self, "push", false);
}

static bool one_failure_match(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "onExitCodes") != rule_has(self, "onPodConditions");
}

/* ---------------------------------------------------------------- frameworks */

static bool one_framework(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "coxswain") + rule_has(self, "pytorch") + rule_has(self, "tensorflow") +
               rule_has(self, "jax") ==
           1;
}

static bool pytorch_roles(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "pytorch") || !(rule_has(self, "parameterServers") || rule_has(self, "evaluator"));
}

static bool jax_roles(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "jax") ||
           !(rule_has(self, "chief") || rule_has(self, "parameterServers") || rule_has(self, "evaluator"));
}

/* jax.distributed counts its processes once. */
static bool jax_is_not_elastic(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "jax") || !is_elastic(self);
}

static bool tpu_slices(const struct json *self, const struct json *old)
{
    (void)old;
    int64_t slices = rule_integer(self, "devices.slices", 1);
    return !rule_has(self, "devices.slices") || (rule_has(self, "jax") && rule_is(self, "devices.type", "TPU") &&
                                                 slices > 0 && worker_count(self) % slices == 0);
}

/* An elastic worker's TF_CONFIG names the servers and itself alone. */
static bool tensorflow_elastic(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "tensorflow") || !is_elastic(self) || rule_has(self, "parameterServers");
}

/* ---------------------------------------------------------------- storage */

/* Whether the class gives a field is not known before the class is pinned. Then training_job_parse merges the two and checks again,
 * without spec.trainingClass. */
static bool class_may_give(const struct json *self)
{
    return rule_has(self, "trainingClass");
}

static bool storage_exists(const struct json *self, const char *path)
{
    return class_may_give(self) || !rule_has(self, path) ||
           rule_element_named(json_member(self, "storage"), rule_string(self, path));
}

static bool storage_writable(const struct json *self, const char *path)
{
    const struct json *storage = rule_element_named(json_member(self, "storage"), rule_string(self, path));
    return !json_boolean_at(storage, "readOnly", false);
}

static bool storage_is_volume(const struct json *self, const char *path)
{
    const struct json *storage = rule_element_named(json_member(self, "storage"), rule_string(self, path));
    return !json_member(storage, "s3") || json_at(storage, "s3.sync");
}

static bool sync_is_foreign(const struct json *self, const struct json *old)
{
    (void)old;
    for (const struct json *item = json_first(json_member(self, "storage")); item; item = json_next(item))
        if (rule_has(self, "coxswain") && json_at(item, "s3.sync"))
            return false;
    return true;
}

static bool sync_writable(const struct json *self, const struct json *old)
{
    (void)old;
    return !json_at(self, "s3.sync") || !json_boolean_at(self, "readOnly", false);
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

/* The same for the folder of a foreign framework. */
#define FOREIGN_CHECKPOINT(section)                                                                                    \
    static bool section##_checkpoint_storage(const struct json *self, const struct json *old)                          \
    {                                                                                                                  \
        (void)old;                                                                                                     \
        return storage_exists(self, #section ".checkpoint.storage");                                                   \
    }                                                                                                                  \
    static bool section##_checkpoint_writable(const struct json *self, const struct json *old)                         \
    {                                                                                                                  \
        (void)old;                                                                                                     \
        return storage_writable(self, #section ".checkpoint.storage");                                                 \
    }                                                                                                                  \
    static bool section##_checkpoint_volume(const struct json *self, const struct json *old)                           \
    {                                                                                                                  \
        (void)old;                                                                                                     \
        return storage_is_volume(self, #section ".checkpoint.storage");                                                \
    }
FOREIGN_CHECKPOINT(pytorch)
FOREIGN_CHECKPOINT(tensorflow)
FOREIGN_CHECKPOINT(jax)

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
    return storage_exists(self, "init.storage");
}

/* Without a storage there is no folder that a path could be relative to. */
static bool path_without_storage(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "storage") || *json_string_at(self, "path", "/") == '/';
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
                                             "image",
                                             "s3",
                                             NULL};

static int volume_source_count(const struct json *storage)
{
    int count = 0;
    for (const char *const *source = volume_sources; *source; source++)
        count += json_member(storage, *source) != NULL;
    return count;
}

static bool url_begins(const struct json *self, const char *with)
{
    return strncmp(json_string_at(self, "url", ""), with, strlen(with)) == 0;
}

static bool downloadable(const struct json *self, const struct json *old)
{
    (void)old;
    return !url_begins(self, "s3://") && !url_begins(self, "oci://");
}

static bool digest_given(const struct json *self, const struct json *old)
{
    (void)old;
    return !url_begins(self, "https://") || rule_has(self, "sha256");
}

static bool download_writable(const struct json *self, const struct json *old)
{
    static const char *const fixed[] = {"configMap", "secret", "projected", "image", "s3"};
    (void)old;
    for (size_t i = 0; rule_has(self, "download") && i < sizeof fixed / sizeof *fixed; i++)
        if (rule_has(self, fixed[i]))
            return false;
    return true;
}

static bool one_volume_source(const struct json *self, const struct json *old)
{
    (void)old;
    for (const struct json *item = json_first(json_member(self, "storage")); item; item = json_next(item))
        if (volume_source_count(item) != 1)
            return false;
    return true;
}

/* The operator mounts volumes of its own: the crew's key and certificates, and the token of progress over HTTPS. */
#define OWN_VOLUMES "coxswain-"

static bool storage_name_free(const struct json *self, const struct json *old)
{
    (void)old;
    for (const struct json *item = json_first(json_member(self, "storage")); item; item = json_next(item))
        if (strncmp(json_string_at(item, "name", ""), OWN_VOLUMES, strlen(OWN_VOLUMES)) == 0)
            return false;
    return true;
}

/* ---------------------------------------------------------------- checkpoint, model, data, training */

static bool checkpoint_interval(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "everySeconds") || !rule_has(self, "everySteps");
}

static bool one_kind_of_model(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "preset") + rule_has(self, "layers") + rule_has(self, "program") == 1;
}

static bool program_alone(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "program") || !rule_has(self, "inputShape");
}

static bool program_storage(const struct json *self, const struct json *old)
{
    (void)old;
    return storage_exists(self, "model.program.storage");
}

static bool program_strategy(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "model.program") || !rule_is(self, "strategy.type", "Pipeline");
}

static bool program_precision(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "model.program") || rule_is(self, "training.precision", "Float32") ||
           !rule_has(self, "training.precision");
}

static bool layers_have_input_shape(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "layers") || rule_has(self, "inputShape");
}

static bool dense_has_units(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "type", "Dense") || rule_has(self, "units");
}

static bool conv2d_has_kernel(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "type", "Conv2D") || (rule_has(self, "filters") && rule_has(self, "kernel"));
}

static bool pool_has_size(const struct json *self, const struct json *old)
{
    (void)old;
    static const char *const pools[] = {"MaxPool", "AveragePool", NULL};
    return !rule_is_one_of(self, "type", pools) || rule_has(self, "size");
}

static bool embedding_has_sizes(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "type", "Embedding") || (rule_has(self, "size") && rule_has(self, "units"));
}

static bool attention_has_heads(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "type", "Attention") || rule_has(self, "heads");
}

static bool add_has_inputs(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "type", "Add") || json_count(json_member(self, "inputs")) >= 2;
}

static bool dropout_has_rate(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "type", "Dropout") || rule_has(self, "rate");
}

static bool shortcut_has_filters(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "type", "Shortcut") || rule_has(self, "filters");
}

static bool concat_has_inputs(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "type", "Concat") || json_count(json_member(self, "inputs")) >= 2;
}

static bool split_is_dense(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "devices") || (rule_is(self, "type", "Dense") && !rule_has(self, "weightsOf"));
}

static bool idx_files(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "format", "IDX") || (rule_has(self, "train.images") && rule_has(self, "train.labels"));
}

static bool npy_files(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "format", "NPY") ||
           (rule_has(self, "train.images") != rule_has(self, "train.inputs") && rule_has(self, "train.labels"));
}

static bool listed_files(const struct json *self, const struct json *old)
{
    (void)old;
    static const char *const listed[] = {"CIFAR10", "Tokens", "TFRecord", "CSV", NULL};
    return !rule_is_one_of(self, "format", listed) || rule_has(self, "train.files");
}

/* Without train.images the classes are the folders of the data's folder, and files to test with would be one of them. */
static bool image_folders(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "format", "ImageFolder") || rule_has(self, "train.images") ||
           ((rule_has(self, "storage") || rule_has(self, "path")) && !rule_has(self, "validation.images"));
}

static bool bytes_file(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "format", "Bytes") || rule_has(self, "train.text");
}

static bool synthetic_examples(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_is(self, "format", "Synthetic") || rule_has(self, "examples");
}

static bool has_validation_files(const struct json *self)
{
    return rule_has(self, "validation.images") || rule_has(self, "validation.inputs") ||
           rule_has(self, "validation.labels") || rule_has(self, "validation.text") ||
           rule_has(self, "validation.files");
}

static bool validation_last_or_files(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "validation.last") || !has_validation_files(self);
}

static bool validation_sample_alone(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "validation.sample") ||
           !(rule_has(self, "validation.last") || rule_has(self, "validation.first") || has_validation_files(self));
}

static bool validation_pair(const struct json *self, const struct json *old)
{
    (void)old;
    bool images = rule_has(self, "validation.images"), inputs = rule_has(self, "validation.inputs");
    return rule_is(self, "format", "ImageFolder") ||
           (!(images && inputs) && (images || inputs) == rule_has(self, "validation.labels"));
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
#define OURS "!has(self.coxswain) || "
#define STORED(name) "(has(self.storage) && self.storage.exists(s, s.name == " name "))"
#define WRITABLE(section)                                                                                              \
    "!has(self." section ") || !has(self." section ".storage) || !has(self.storage) || "                               \
    "!self.storage.exists(s, s.name == self." section ".storage && s.readOnly)"
#define IN_A_VOLUME(section)                                                                                           \
    "!has(self." section ") || !has(self." section ".storage) || !has(self.storage) || "                               \
    "!self.storage.exists(s, s.name == self." section ".storage && has(s.s3) && !has(s.s3.sync))"
#define NOT_SAVED_TO_S3                                                                                                \
    "is object storage without sync; add sync: {} to its s3, or save to a volume, such as a persistentVolumeClaim"
#define EXISTING(section)                                                                                              \
    "has(self.trainingClass) || !has(self." section ") || !has(self." section                                          \
    ".storage) || " STORED("self." section ".storage")
#define FITS(workers) OURS workers " + (has(self.chief) ? 1 : 0) <= " TEXT(TRAINERS_MAX)
#define SOURCE(name) "(has(s." name ") ? 1 : 0)"
#define AND_SOURCE(name) " + " SOURCE(name)
#define SOURCE_COUNT                                                                                                   \
    SOURCE("persistentVolumeClaim")                                                                                    \
    AND_SOURCE("hostPath")                                                                                             \
    AND_SOURCE("emptyDir")                                                                                             \
    AND_SOURCE("nfs")                                                                                                  \
    AND_SOURCE("csi")                                                                                                  \
    AND_SOURCE("ephemeral")                                                                                            \
    AND_SOURCE("configMap") AND_SOURCE("secret") AND_SOURCE("projected") AND_SOURCE("image") AND_SOURCE("s3")

/* As worker_rules.c counts them. */
#define ELASTIC "has(self.workers.maxReplicas)"
#define DEVICES "self.workers.replicas * self.devices.count"
#define STRATEGY "self.coxswain.strategy"
#define TRAINING "self.coxswain.training"
#define WORKERS "(" ELASTIC " ? self.workers.maxReplicas : self.workers.replicas)"
#define TRAINERS "(" WORKERS " + (has(self.chief) ? 1 : 0))"
#define SERVED_WORKERS "(" WORKERS " - (has(" STRATEGY ".backupWorkers) ? " STRATEGY ".backupWorkers : 0))"
#define SERVED_SHARES                                                                                                  \
    "(has(" TRAINING ".logicalShards) ? " TRAINING ".logicalShards / self.devices.count : " SERVED_WORKERS             \
    " * " TRAINING ".gradientAccumulation)"
#define REPLICAS                                                                                                       \
    "(" STRATEGY ".type == 'ParameterServer' ? " SERVED_WORKERS " * self.devices.count : " STRATEGY                    \
    ".type != 'Pipeline' ? " TRAINERS " * self.devices.count : has(" STRATEGY ".stages) ? " DEVICES " / " STRATEGY     \
    ".stages : 1)"
#define IS_GLOBAL_OF(model)                                                                                            \
    "((has(" model ".statistics) && " model ".statistics == 'Global') || "                                             \
    "(has(" model ".layers) && " model ".layers.exists(l, has(l.statistics) && l.statistics == 'Global')))"
#define USES_PLUGIN "(has(self.coxswain.model.program) || self.devices.type == 'TPU' || has(self.devices.plugin))"
#define SHARDED "(has(" STRATEGY ".shardedOptimizer) && " STRATEGY ".shardedOptimizer)"
#define IS_SYNCHRONOUS "(has(self.strategy.mode) && self.strategy.mode == 'Synchronous')"
#define IS_SYNCHRONOUSLY_SERVED                                                                                        \
    "(" STRATEGY ".type == 'ParameterServer' && has(" STRATEGY ".mode) && " STRATEGY ".mode == 'Synchronous')"
#define MODEL_READS_TOKENS                                                                                             \
    "((has(self.model.preset) && self.model.preset.startsWith('gpt')) || (has(self.model.layers) && "                  \
    "self.model.layers.size() > 0 && self.model.layers[0].type == 'Embedding'))"

#define FOREIGN_CHECKPOINT_RULES(section)                                                                              \
    {.name = #section "CheckpointStorage",                                                                             \
     .about = &training_job_spec_type,                                                                                 \
     .field = #section ".checkpoint.storage",                                                                          \
     .holds = section##_checkpoint_storage,                                                                            \
     .cel = "!has(self." #section ") || " EXISTING(#section ".checkpoint"),                                            \
     .message = "is not the name of a storage of this job; add it to storage or correct it"},                          \
        {.name = #section "CheckpointVolume",                                                                          \
         .about = &training_job_spec_type,                                                                             \
         .field = #section ".checkpoint.storage",                                                                      \
         .holds = section##_checkpoint_volume,                                                                         \
         .cel = "!has(self." #section ") || " IN_A_VOLUME(#section ".checkpoint"),                                     \
         .message = NOT_SAVED_TO_S3},                                                                                  \
    {                                                                                                                  \
        .name = #section "CheckpointWritable", .about = &training_job_spec_type,                                       \
        .field = #section ".checkpoint.storage", .holds = section##_checkpoint_writable,                               \
        .cel = "!has(self." #section ") || " WRITABLE(#section ".checkpoint"),                                         \
        .message = "is read-only; save to a storage that can be written"                                               \
    }

/* Rules about the volumes that a job or a class gives. */
#define STORAGE_RULES(prefix, type)                                                                                    \
    {.name = prefix "OneVolumeSource",                                                                                 \
     .about = &(type),                                                                                                 \
     .field = "storage",                                                                                               \
     .holds = one_volume_source,                                                                                       \
     .cel = "!has(self.storage) || self.storage.all(s, " SOURCE_COUNT " == 1)",                                        \
     .message = "each storage needs exactly one volume source, such as persistentVolumeClaim: {claimName: runs}"},     \
    {                                                                                                                  \
        .name = prefix "StorageNameFree", .about = &(type), .field = "storage", .holds = storage_name_free,            \
        .cel = "!has(self.storage) || self.storage.all(s, !s.name.startsWith('" OWN_VOLUMES "'))",                     \
        .message = "names that begin with " OWN_VOLUMES                                                                \
                   " are those of the operator's own volumes; give the storage another name"                           \
    }

const struct rule rules[] = {
    {.name = "OneFramework",
     .about = &training_job_spec_type,
     .holds = one_framework,
     .cel = "(has(self.coxswain) ? 1 : 0) + (has(self.pytorch) ? 1 : 0) + (has(self.tensorflow) ? 1 : 0) + "
            "(has(self.jax) ? 1 : 0) == 1",
     .message = "needs exactly one of coxswain, pytorch, tensorflow and jax, which says what runs in the pods"},
    {.name = "PytorchRoles",
     .about = &training_job_spec_type,
     .field = "pytorch",
     .holds = pytorch_roles,
     .cel = "!has(self.pytorch) || !(has(self.parameterServers) || has(self.evaluator))",
     .message = "a PyTorch crew has workers and, if you like, a chief; leave parameterServers and evaluator out"},
    {.name = "JaxRoles",
     .about = &training_job_spec_type,
     .field = "jax",
     .holds = jax_roles,
     .cel = "!has(self.jax) || !(has(self.chief) || has(self.parameterServers) || has(self.evaluator))",
     .message = "a JAX crew has workers only; leave chief, parameterServers and evaluator out"},
    {.name = "TensorflowElastic",
     .about = &training_job_spec_type,
     .field = "workers.maxReplicas",
     .holds = tensorflow_elastic,
     .cel = "!has(self.tensorflow) || !" ELASTIC " || has(self.parameterServers)",
     .message = "a TensorFlow job can be elastic only with parameterServers; add them, or leave minReplicas and "
                "maxReplicas out"},
    {.name = "OneWorker",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "workers.replicas",
     .holds = one_worker,
     .cel = OURS "!(" STRATEGY ".type in ['OneDevice', 'Mirrored', 'CentralStorage']) || self.workers.replicas == 1",
     .message =
         "OneDevice, Mirrored and CentralStorage have one worker; set replicas to 1 or take MultiWorkerMirrored"},
    {.name = "OneDevice",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "devices.count",
     .holds = one_device,
     .cel = OURS STRATEGY ".type != 'OneDevice' || self.devices.count == 1",
     .message = "OneDevice computes on one device; set devices.count to 1 or take Mirrored"},
    {.name = "PipelineOptions",
     .about = &coxswain_type,
     .field = "strategy",
     .holds = pipeline_options,
     .cel = "self.strategy.type == 'Pipeline' || (!has(self.strategy.stages) && !has(self.strategy.microBatches))",
     .message = "stages and microBatches are Pipeline's; leave them out or take Pipeline"},
    {.name = "PipelineStages",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "coxswain.strategy.stages",
     .holds = pipeline_stages,
     .cel = OURS "!has(" STRATEGY ".stages) || ((" DEVICES ") % " STRATEGY ".stages == 0 && "
                 "(self.devices.count % " STRATEGY ".stages == 0 || " STRATEGY ".stages % self.devices.count == 0))",
     .message = "must divide workers.replicas x devices.count, and divide devices.count or be divided by it, so that a "
                "worker has whole stages or whole replicas"},
    {.name = "PipelineDevices",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "coxswain.strategy.stages",
     .holds = pipeline_devices,
     .cel = OURS STRATEGY ".type != 'Pipeline' || has(" STRATEGY ".stages) || " DEVICES " <= " TEXT(STAGES_MAX),
     .message = "is missing, and a stage on every device would be more than " TEXT(STAGES_MAX) "; say how many stages"},
    {.name = "PipelineShards",
     .about = &coxswain_type,
     .field = "training.logicalShards",
     .holds = pipeline_shards,
     .cel = "!has(self.strategy.microBatches) || !has(self.training.logicalShards)",
     .message = "a micro-batch is a logical shard; give either strategy.microBatches or this"},
    {.name = "PipelineAccumulation",
     .about = &coxswain_type,
     .field = "training.gradientAccumulation",
     .holds = pipeline_accumulation,
     .cel = "!has(self.strategy.microBatches) || self.training.gradientAccumulation == 1",
     .message = "micro-batches are accumulated anyway; raise strategy.microBatches and leave this out"},
    {.name = "LayerDevices",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "coxswain.model.layers",
     .holds = layer_devices,
     .cel = OURS "!has(self.coxswain.model.layers) || self.coxswain.model.layers.all(l, !has(l.device) || "
                 "(" STRATEGY ".type == 'Pipeline' && l.device < (has(" STRATEGY ".stages) ? " STRATEGY
                 ".stages : " DEVICES ")))",
     .message = "a layer's device must be below the number of stages, and only Pipeline places layers"},
    {.name = "SplitDevices",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "coxswain.model.layers",
     .holds = split_devices,
     .cel = OURS "!has(self.coxswain.model.layers) || self.coxswain.model.layers.all(l, !has(l.devices) || "
                 "(" STRATEGY ".type == 'Pipeline' && l.devices.all(d, d < (has(" STRATEGY ".stages) ? " STRATEGY
                 ".stages : " DEVICES "))))",
     .message = "a split layer's devices must be below the number of stages, and only Pipeline splits layers"},
    {.name = "ParameterServers",
     .about = &training_job_spec_type,
     .field = "parameterServers",
     .holds = parameter_servers,
     .cel = OURS "(" STRATEGY ".type == 'ParameterServer') == has(self.parameterServers)",
     .message = "strategy ParameterServer needs parameterServers, and no other strategy has them"},
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
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "coxswain.strategy.backupWorkers",
     .holds = backup_workers_fit,
     .cel = OURS "!has(" STRATEGY ".backupWorkers) || " STRATEGY ".backupWorkers < self.workers.replicas",
     .message = "must be lower than workers.replicas, because at least one worker must compute the batch"},
    {.name = "Image",
     .about = &training_job_spec_type,
     .field = "image",
     .holds = image_of_foreign_framework,
     .cel = "has(self.coxswain) || has(self.image) || has(self.trainingClass)",
     .message = "jobs of pytorch, tensorflow and jax need an image; name the one to run"},
    {.name = "Plugin",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "devices.plugin",
     .holds = plugin_devices,
     .cel = "!has(self.devices.plugin) || (has(self.coxswain) && self.devices.type in ['CPU', 'GPU', 'TPU'])",
     .message = "is for devices.type CPU, GPU or TPU in jobs of Coxswain's own worker; leave it out"},
    {.name = "PluginStrategy",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "coxswain.strategy.type",
     .holds = plugin_strategy,
     .cel = OURS "!has(self.devices.plugin) || " STRATEGY ".type != 'Pipeline'",
     .message = "XLA runs a model as a whole; take another strategy than Pipeline, or leave devices.plugin out"},
    {.name = "PluginPrecision",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "coxswain.training.precision",
     .holds = plugin_precision,
     .cel = OURS "!" USES_PLUGIN " || has(self.coxswain.model.program) || " TRAINING ".precision != 'Float16'",
     .message = "Float16 is for GPUs without XLA; take BFloat16 or Float32 on TPUs and with devices.plugin"},
    {.name = "PluginRecompute",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "coxswain.strategy.recompute",
     .holds = plugin_recompute,
     .cel = OURS "!" USES_PLUGIN " || !has(" STRATEGY ".recompute) || !" STRATEGY ".recompute",
     .message =
         "XLA decides itself what it computes again; leave it out on TPUs, for programs and with devices.plugin"},
    {.name = "TpuStrategy",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "coxswain.strategy.type",
     .holds = tpu_strategy,
     .cel = OURS "!(self.devices.type in ['GPU', 'TPU'] && " USES_PLUGIN ") || " STRATEGY
                 ".type in ['OneDevice', 'Mirrored', 'MultiWorkerMirrored']",
     .message =
         "TPUs, and GPUs through XLA (model.program, devices.plugin), support the strategies OneDevice, Mirrored "
         "and MultiWorkerMirrored; take one of these"},
    {.name = "JaxElastic",
     .about = &training_job_spec_type,
     .field = "workers.maxReplicas",
     .holds = jax_is_not_elastic,
     .cel = "!has(self.jax) || !" ELASTIC,
     .message = "a JAX crew keeps its size; leave minReplicas and maxReplicas out"},
    {.name = "TpuSlices",
     .about = &training_job_spec_type,
     .field = "devices.slices",
     .holds = tpu_slices,
     .cel = "!has(self.devices.slices) || (has(self.jax) && self.devices.type == 'TPU' && "
            "self.workers.replicas % self.devices.slices == 0)",
     .message = "is for jobs of jax with devices.type TPU, and must divide workers.replicas, since all slices have the "
                "same number of hosts"},
    {.name = "EvaluatorStrategy",
     .about = &training_job_spec_type,
     .field = "evaluator",
     .holds = evaluator_strategy,
     .cel = OURS STRATEGY ".type == 'ParameterServer' || !has(self.evaluator)",
     .message = "only ParameterServer has an evaluator of its own; leave it out, the chief evaluates"},
    {.name = "ChiefStrategy",
     .about = &training_job_spec_type,
     .field = "chief",
     .holds = chief_strategy,
     .cel = OURS "!(" STRATEGY ".type in ['OneDevice', 'Mirrored', 'CentralStorage', 'Pipeline']) || "
                 "!has(self.chief)",
     .message = "OneDevice, Mirrored, CentralStorage and Pipeline are led by worker 0; leave the chief out"},
    {.name = "CrewSize",
     .about = &training_job_spec_type,
     .field = "workers.replicas",
     .holds = crew_size,
     .cel = FITS("self.workers.replicas"),
     .message =
         "with coxswain a crew has at most " TEXT(TRAINERS_MAX) " members that train, its chief among them, and only "
                                                                "with other frameworks up to 1000; lower replicas"},
    {.name = "ElasticSize",
     .about = &training_job_spec_type,
     .field = "workers.maxReplicas",
     .holds = elastic_size,
     .cel = "!" ELASTIC " || " FITS("self.workers.maxReplicas"),
     .message =
         "with coxswain a crew has at most " TEXT(TRAINERS_MAX) " members that train, its chief among them, and only "
                                                                "with other frameworks up to 1000; lower maxReplicas"},
    {.name = "ServerCount",
     .about = &training_job_spec_type,
     .field = "parameterServers.replicas",
     .holds = server_count,
     .cel = OURS "!has(self.parameterServers) || self.parameterServers.replicas <= " TEXT(CREW_SERVERS_MAX),
     .message = "a crew has at most " TEXT(CREW_SERVERS_MAX) " parameter servers; lower replicas"},
    {.name = "ElasticStrategy",
     .about = &training_job_spec_type,
     .field = "workers.maxReplicas",
     .holds = elastic_strategy,
     .cel = "!" ELASTIC " || " OURS STRATEGY ".type in ['MultiWorkerMirrored', 'ParameterServer', 'PeerToPeer']",
     .message = "only MultiWorkerMirrored, ParameterServer and PeerToPeer can be elastic; leave minReplicas and "
                "maxReplicas out"},
    {.name = "ElasticBounds",
     .about = &workers_type,
     .field = "replicas",
     .holds = elastic_bounds,
     .cel = "!has(self.minReplicas) || !has(self.maxReplicas) || "
            "(self.minReplicas <= self.replicas && self.replicas <= self.maxReplicas)",
     .message = "must lie between minReplicas and maxReplicas"},
    {.name = "ElasticOrder",
     .about = &workers_type,
     .field = "minReplicas",
     .holds = elastic_order,
     .cel = "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
     .message = "must not exceed maxReplicas"},
    {.name = "ElasticPair",
     .about = &workers_type,
     .field = "minReplicas",
     .holds = elastic_pair,
     .cel = "has(self.minReplicas) == has(self.maxReplicas)",
     .message = "an elastic job has both minReplicas and maxReplicas; give both or neither"},
    {.name = "ElasticBatch",
     .about = &training_job_spec_type,
     .field = "coxswain.training.perReplicaBatchSize",
     .holds = elastic_batch,
     .cel = "!" ELASTIC " || " OURS "!has(" TRAINING ".perReplicaBatchSize)",
     .message = "would make the global batch depend on how many workers are there; elastic jobs give batchSize"},
    {.name = "ShardedOptimizer",
     .about = &strategy_type,
     .field = "shardedOptimizer",
     .holds = sharded_optimizer,
     .cel = "!has(self.shardedOptimizer) || !self.shardedOptimizer || (self.type == 'MultiWorkerMirrored' && "
            "!has(self.localSteps) && (!has(self.collective) || self.collective == 'Auto'))",
     .message = "is for MultiWorkerMirrored with collective Auto and no localSteps; leave it or the others out"},
    {.name = "PreflightStrategy",
     .about = &training_job_spec_type,
     .field = "coxswain.training.preflight",
     .holds = preflight_strategy,
     .cel = OURS "!has(" TRAINING ".preflight) || !" TRAINING ".preflight || (!(" STRATEGY
                 ".type in ['ParameterServer', 'PeerToPeer']) && !" USES_PLUGIN ")",
     .message = "is not for ParameterServer, PeerToPeer, model.program, TPUs and devices.plugin; leave it out"},
    {.name = "ShardedCrew",
     .about = &training_job_spec_type,
     .field = "coxswain.strategy.shardedOptimizer",
     .holds = sharded_crew,
     .cel = OURS "!" SHARDED " || !" ELASTIC,
     .message = "needs a fixed number of workers; leave it, or minReplicas and maxReplicas, out"},
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
     .message = "is missing; outerLearningRate and outerMomentum belong to local steps"},
    {.name = "GangSize",
     .about = &training_job_spec_type,
     .field = "runPolicy.gang.minAvailable",
     .holds = gang_size,
     .cel = "!has(self.runPolicy.gang.minAvailable) || self.runPolicy.gang.minAvailable <= self.workers.replicas + "
            "(has(self.chief) ? 1 : 0) + (has(self.evaluator) ? 1 : 0) + "
            "(has(self.parameterServers) ? self.parameterServers.replicas : 0)",
     .message = "the job never has so many pods; take at most the workers and the pods of the other roles together"},
    {.name = "GangScheduled",
     .about = &gang_type,
     .field = "minAvailable",
     .holds = gang_scheduled,
     .cel = "!has(self.minAvailable) || self.scheduler != 'None'",
     .message = "a gang needs a scheduler that places gangs: name it in scheduler, or remove minAvailable"},
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
    {.name = "GangTopology",
     .about = &gang_type,
     .field = "topologyKey",
     .holds = gang_topology,
     .cel = "!has(self.topologyKey) || self.scheduler == 'Native'",
     .message =
         "is an option of Native; with Kueue write the annotation kueue.x-k8s.io/podset-required-topology in the "
         "pod template"},
    {.name = "ProgressDeadline",
     .about = &training_job_spec_type,
     .field = "runPolicy.progressDeadlineSeconds",
     .holds = progress_deadline,
     .cel = "!has(self.runPolicy.progressDeadlineSeconds) || has(self.coxswain) || "
            "(has(self.pytorch) && has(self.pytorch.progress)) || "
            "(has(self.tensorflow) && has(self.tensorflow.progress)) || (has(self.jax) && has(self.jax.progress))",
     .message = "the operator does not learn the steps of the script: give progress in its section, such as "
                "pytorch.progress.logPatterns, or leave this out"},
    {.name = "StragglerReplacement",
     .about = &training_job_spec_type,
     .field = "runPolicy.stragglerReplacement",
     .holds = straggler_replacement,
     .cel = "!has(self.runPolicy.stragglerReplacement) || has(self.coxswain)",
     .message = "the operator does not learn which worker of a script is slow; leave it out"},
    {.name = "ProgressSource",
     .about = &foreign_progress_type,
     .field = "logPatterns",
     .holds = progress_source,
     .cel = "has(self.logPatterns) || (has(self.push) && self.push)",
     .message = "nothing says where the script's progress comes from: give logPatterns or push: true, or leave "
                "progress out"},
    {.name = "OneFailureMatch",
     .about = &failure_rule_type,
     .field = "onExitCodes",
     .holds = one_failure_match,
     .cel = "has(self.onExitCodes) != has(self.onPodConditions)",
     .message = "give either onExitCodes or onPodConditions; for both write two rules"},
    {.name = "WorkersFixed",
     .about = &training_job_spec_type,
     .field = "workers.replicas",
     .holds = workers_fixed,
     .on_update = true,
     .cel = "self.workers.replicas == oldSelf.workers.replicas || " ELASTIC,
     .message = "may change only with minReplicas and maxReplicas; " IMMUTABLE_REMEDY},
    {.name = "DataStorage",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "coxswain.data.storage",
     .holds = data_storage,
     .cel = OURS EXISTING("coxswain.data"),
     .message = "is not the name of a storage of this job; add it to storage or correct it"},
    {.name = "CheckpointStorage",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "coxswain.checkpoint.storage",
     .holds = checkpoint_storage,
     .cel = OURS EXISTING("coxswain.checkpoint"),
     .message = "is not the name of a storage of this job; add it to storage or correct it"},
    {.name = "CheckpointWritable",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "coxswain.checkpoint.storage",
     .holds = checkpoint_writable,
     .cel = OURS WRITABLE("coxswain.checkpoint"),
     .message = "is read-only; save to a storage that can be written"},
    {.name = "DownloadScheme",
     .about = &download_source_type,
     .field = "url",
     .holds = downloadable,
     .cel = "!self.url.startsWith('s3://') && !self.url.startsWith('oci://')",
     .message = "is not a download: for a bucket write s3: {bucket: NAME, prefix: FOLDER} in the storage instead of "
                "download, for an OCI artifact image: {reference: REFERENCE}"},
    {.name = "DownloadDigest",
     .about = &download_source_type,
     .field = "sha256",
     .holds = digest_given,
     .cel = "!self.url.startsWith('https://') || has(self.sha256)",
     .message = "is required with https://: the file's SHA-256, 64 lower-case hexadecimal digits (sha256sum FILE)"},
    {.name = "DownloadWritable",
     .about = &storage_type,
     .field = "download",
     .holds = download_writable,
     .cel = "!has(self.download) || !(has(self.configMap) || has(self.secret) || has(self.projected) || "
            "has(self.image) || has(self.s3))",
     .message = "needs a volume that can be written, such as persistentVolumeClaim: {claimName: models}"},
    {.name = "SyncIsForeign",
     .about = &training_job_spec_type,
     .field = "storage",
     .holds = sync_is_foreign,
     .cel = "!has(self.coxswain) || !has(self.storage) || self.storage.all(s, !has(s.s3) || !has(s.s3.sync))",
     .message = "s3.sync is for pytorch, tensorflow and jax; the trainers of coxswain upload checkpoints and exports "
                "themselves, so leave it out"},
    {.name = "SyncWritable",
     .about = &storage_type,
     .field = "readOnly",
     .holds = sync_writable,
     .cel = "!has(self.s3) || !has(self.s3.sync) || !has(self.readOnly) || !self.readOnly",
     .message = "is for storage that is only read, but s3.sync uploads what is written; leave one of them out"},
    {.name = "ExportStorage",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "coxswain.export.storage",
     .holds = export_storage,
     .cel = OURS EXISTING("coxswain.export"),
     .message = "is not the name of a storage of this job; add it to storage or correct it"},
    {.name = "ExportWritable",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "coxswain.export.storage",
     .holds = export_writable,
     .cel = OURS WRITABLE("coxswain.export"),
     .message = "is read-only; export to a storage that can be written"},
    {.name = "BestIsKept",
     .about = &coxswain_type,
     .field = "export.weights",
     .holds = best_is_kept,
     .cel = "!has(self.export) || self.export.weights != 'Best' || (has(self.checkpoint) && self.checkpoint.keepBest)",
     .message = "Best needs checkpoint.keepBest: true; the best weights are kept nowhere else"},
    {.name = "BestIsScored",
     .about = &coxswain_type,
     .field = "export.weights",
     .holds = best_is_scored,
     .cel = "!has(self.export) || self.export.weights != 'Best' || has(self.data.validation)",
     .message = "Best is chosen by the loss on held-out examples; add data.validation, such as {last: 1000}"},
    {.name = "InitStorage",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "coxswain.init.storage",
     .holds = init_storage,
     .cel = OURS EXISTING("coxswain.init"),
     .message = "is not the name of a storage of this job; add it to storage or correct it"},
    {.name = "InitPath",
     .about = &init_type,
     .field = "path",
     .holds = path_without_storage,
     .cel = "has(self.storage) || self.path.startsWith('/')",
     .message = "is a relative path, but no storage is named; name one in storage, or give an absolute path"},
    {.name = "ExportPath",
     .about = &export_type,
     .field = "path",
     .holds = path_without_storage,
     .cel = "has(self.storage) || self.path.startsWith('/')",
     .message = "is a relative path, but no storage is named; name one in storage, or give an absolute path"},
    FOREIGN_CHECKPOINT_RULES(pytorch),
    FOREIGN_CHECKPOINT_RULES(tensorflow),
    FOREIGN_CHECKPOINT_RULES(jax),
    STORAGE_RULES("", training_job_spec_type),
    STORAGE_RULES("Class", training_class_spec_type),
    {.name = "CheckpointInterval",
     .about = &checkpoint_type,
     .field = "everySeconds",
     .holds = checkpoint_interval,
     .cel = "!has(self.everySeconds) || !has(self.everySteps)",
     .message = "give either everySeconds or everySteps, not both"},
    {.name = "OneKindOfModel",
     .about = &model_type,
     .field = "preset",
     .holds = one_kind_of_model,
     .cel = "(has(self.preset) ? 1 : 0) + (has(self.layers) ? 1 : 0) + (has(self.program) ? 1 : 0) == 1",
     .message = "give a preset, layers or a program, and only one of them"},
    {.name = "ProgramAlone",
     .about = &model_type,
     .field = "inputShape",
     .holds = program_alone,
     .cel = "!has(self.program) || !has(self.inputShape)",
     .message = "is for layers; a program says itself what it reads, so leave it out"},
    {.name = "ProgramPath",
     .about = &program_type,
     .field = "path",
     .holds = path_without_storage,
     .cel = "has(self.storage) || self.path.startsWith('/')",
     .message = "is a relative path, but no storage is named; name one in storage, or give an absolute path"},
    {.name = "ProgramStorage",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "coxswain.model.program.storage",
     .holds = program_storage,
     .cel = OURS EXISTING("coxswain.model.program"),
     .message = "is not the name of a storage of this job; add it to storage or correct it"},
    {.name = "ProgramStrategy",
     .about = &coxswain_type,
     .field = "strategy.type",
     .holds = program_strategy,
     .cel = "!has(self.model.program) || self.strategy.type != 'Pipeline'",
     .message = "Pipeline cuts a model between its layers, which a program does not have; take another strategy"},
    {.name = "ProgramPrecision",
     .about = &coxswain_type,
     .field = "training.precision",
     .holds = program_precision,
     .cel = "!has(self.model.program) || self.training.precision == 'Float32'",
     .message = "a program computes as it was exported; leave precision out"},
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
     .cel = "self.type != 'Dense' || has(self.units)",
     .message = "a Dense layer needs units"},
    {.name = "Conv2dKernel",
     .about = &layer_type_type,
     .field = "filters",
     .holds = conv2d_has_kernel,
     .cel = "self.type != 'Conv2D' || (has(self.filters) && has(self.kernel))",
     .message = "a Conv2D layer needs filters and kernel"},
    {.name = "PoolSize",
     .about = &layer_type_type,
     .field = "size",
     .holds = pool_has_size,
     .cel = "!(self.type in ['MaxPool', 'AveragePool']) || has(self.size)",
     .message = "a pool needs the size of its window"},
    {.name = "EmbeddingSizes",
     .about = &layer_type_type,
     .field = "size",
     .holds = embedding_has_sizes,
     .cel = "self.type != 'Embedding' || (has(self.size) && has(self.units))",
     .message = "an Embedding needs size (of the vocabulary) and units"},
    {.name = "AttentionHeads",
     .about = &layer_type_type,
     .field = "heads",
     .holds = attention_has_heads,
     .cel = "self.type != 'Attention' || has(self.heads)",
     .message = "Attention needs heads"},
    {.name = "AddInputs",
     .about = &layer_type_type,
     .field = "inputs",
     .holds = add_has_inputs,
     .cel = "self.type != 'Add' || (has(self.inputs) && self.inputs.size() >= 2)",
     .message = "Add needs the names of at least two inputs"},
    {.name = "ConcatInputs",
     .about = &layer_type_type,
     .field = "inputs",
     .holds = concat_has_inputs,
     .cel = "self.type != 'Concat' || (has(self.inputs) && self.inputs.size() >= 2)",
     .message = "Concat needs the names of at least two inputs"},
    {.name = "SplitDense",
     .about = &layer_type_type,
     .field = "devices",
     .holds = split_is_dense,
     .cel = "!has(self.devices) || (self.type == 'Dense' && !has(self.weightsOf))",
     .message = "only a Dense layer with weights of its own can be split over devices"},
    {.name = "DropoutRate",
     .about = &layer_type_type,
     .field = "rate",
     .holds = dropout_has_rate,
     .message = "a Dropout layer needs its rate, such as 0.1"},
    {.name = "ShortcutFilters",
     .about = &layer_type_type,
     .field = "filters",
     .holds = shortcut_has_filters,
     .cel = "self.type != 'Shortcut' || has(self.filters)",
     .message = "a Shortcut needs filters: its number of output channels"},
    {.name = "IdxFiles",
     .about = &data_type,
     .field = "train",
     .holds = idx_files,
     .cel = "self.format != 'IDX' || (has(self.train) && has(self.train.images) && has(self.train.labels))",
     .message = "format IDX needs train.images and train.labels"},
    {.name = "NpyFiles",
     .about = &data_type,
     .field = "train",
     .holds = npy_files,
     .cel = "self.format != 'NPY' || "
            "(has(self.train) && has(self.train.images) != has(self.train.inputs) && has(self.train.labels))",
     .message = "format NPY needs train.labels and either train.images or train.inputs"},
    {.name = "ListedFiles",
     .about = &data_type,
     .field = "train",
     .holds = listed_files,
     .cel = "!(self.format in ['CIFAR10', 'Tokens', 'TFRecord', 'CSV']) || (has(self.train) && has(self.train.files))",
     .message = "formats CIFAR10, Tokens, TFRecord and CSV need train.files"},
    {.name = "ImageFolders",
     .about = &data_type,
     .field = "train",
     .holds = image_folders,
     .cel = "self.format != 'ImageFolder' || (has(self.train) && has(self.train.images)) || ((has(self.storage) || "
            "has(self.path)) && !(has(self.validation) && has(self.validation.images)))",
     .message = "format ImageFolder needs storage, path or train.images, and train.images beside validation.images"},
    {.name = "BytesFile",
     .about = &data_type,
     .field = "train",
     .holds = bytes_file,
     .cel = "self.format != 'Bytes' || (has(self.train) && has(self.train.text))",
     .message = "format Bytes needs train.text"},
    {.name = "SyntheticExamples",
     .about = &data_type,
     .field = "examples",
     .holds = synthetic_examples,
     .cel = "self.format != 'Synthetic' || has(self.examples)",
     .message = "format Synthetic needs the number of examples"},
    {.name = "ValidationLastOrFiles",
     .about = &data_type,
     .field = "validation.last",
     .holds = validation_last_or_files,
     .cel = "!has(self.validation) || !has(self.validation.last) || !(has(self.validation.images) || "
            "has(self.validation.inputs) || has(self.validation.labels) || has(self.validation.text) || "
            "has(self.validation.files))",
     .message = "give either last or files of their own, not both"},
    {.name = "ValidationSampleAlone",
     .about = &data_type,
     .field = "validation.sample",
     .holds = validation_sample_alone,
     .cel = "!has(self.validation) || !has(self.validation.sample) || !(has(self.validation.last) || "
            "has(self.validation.first) || has(self.validation.images) || has(self.validation.inputs) || "
            "has(self.validation.labels) || "
            "has(self.validation.text) || has(self.validation.files))",
     .message = "give exactly one of sample, last and files of their own; first is only for files of their own"},
    {.name = "ValidationPair",
     .about = &data_type,
     .field = "validation.labels",
     .holds = validation_pair,
     .cel = "self.format == 'ImageFolder' || !has(self.validation) || "
            "!(has(self.validation.images) && has(self.validation.inputs)) && "
            "(has(self.validation.images) || has(self.validation.inputs)) == has(self.validation.labels)",
     .message = "validation labels come together with either images or inputs"},
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
     .message = "cannot be combined with logicalShards, because it multiplies the default of that field; remove it and "
                "set a larger logicalShards"},
    {.name = "LearningRateScale",
     .about = &training_type,
     .field = "scaleLearningRate",
     .holds = learning_rate_scale,
     .cel = "has(self.perReplicaBatchSize) == has(self.scaleLearningRate)",
     .message = "perReplicaBatchSize needs scaleLearningRate, Linear or None; batchSize has none"},
    {.name = "LocalStepsCrew",
     .about = &training_job_spec_type,
     .field = "coxswain.strategy.localSteps",
     .holds = worker_rule_local_steps_crew,
     .cel = OURS "!has(" STRATEGY ".localSteps) || " TRAINERS " > 1",
     .message = "a lone worker has no others to average with; remove it or take more workers"},
    {.name = "ShardedAlone",
     .about = &training_job_spec_type,
     .field = "coxswain.strategy.shardedOptimizer",
     .holds = worker_rule_sharded_alone,
     .cel = OURS "!" SHARDED " || " TRAINERS
                 " > 1 || (self.devices.type == 'GPU' && self.devices.count > 1 && !" USES_PLUGIN ")",
     .message = "divides the optimizer's slots among workers or GPUs, and this job has only one; leave it out, take "
                "more workers, or at least two GPUs: devices {type: GPU, count: 2}"},
    {.name = "ServerAccumulation",
     .about = &coxswain_type,
     .field = "training.gradientAccumulation",
     .holds = worker_rule_server_accumulation,
     .cel = "self.strategy.type != 'ParameterServer' || " IS_SYNCHRONOUS " || self.training.gradientAccumulation == 1",
     .message = "works with ParameterServer only in mode Synchronous; lower batchSize instead"},
    {.name = "ServerRate",
     .about = &coxswain_type,
     .field = "training.scaleLearningRate",
     .holds = worker_rule_server_rate,
     .cel = "self.strategy.type != 'ParameterServer' || " IS_SYNCHRONOUS
            " || !has(self.training.scaleLearningRate) || self.training.scaleLearningRate != 'Linear'",
     .message = "in modes Async and BoundedStaleness each worker's share is an update of its own, so the learning rate "
                "must not grow with the number of workers; write None"},
    {.name = "Float16",
     .about = &coxswain_type,
     .field = "training.precision",
     .holds = worker_rule_float16,
     .cel = "self.training.precision != 'Float16' || "
            "(!(self.strategy.type in ['ParameterServer', 'PeerToPeer']) && !has(self.strategy.localSteps))",
     .message = "with Float16 all workers must skip a step together if its gradient is not finite, which is impossible "
                "with ParameterServer, PeerToPeer and localSteps; take BFloat16"},
    {.name = "Nccl",
     .in_documents = true,
     .about = &training_job_spec_type,
     .field = "coxswain.strategy.collective",
     .holds = worker_rule_nccl,
     .cel = OURS "!has(" STRATEGY ".collective) || " STRATEGY ".collective != 'NCCL' || "
                 "((" STRATEGY ".type == 'MultiWorkerMirrored' || (" STRATEGY
                 ".type == 'Mirrored' && self.devices.count > 1)) && self.devices.type != 'CPU' && !" USES_PLUGIN ")",
     .message =
         "NCCL sums on several GPUs, those of Mirrored (devices.count) or of MultiWorkerMirrored, and not through "
         "XLA; take Auto"},
    {.name = "Ring",
     .about = &coxswain_type,
     .field = "strategy.collective",
     .holds = worker_rule_ring,
     .cel = "!has(self.strategy.collective) || self.strategy.collective != 'Ring' || "
            "self.training.determinism != 'Crew'",
     .message = "with Ring the results depend on the number of workers, which determinism Crew excludes; set "
                "training.determinism to Run, or collective to Auto"},
    {.name = "GlobalStatistics",
     .about = &coxswain_type,
     .field = "model",
     .holds = worker_rule_global_statistics,
     .cel = "!" IS_GLOBAL_OF("self.model") " || (self.strategy.type in ['OneDevice', 'Mirrored', 'CentralStorage', "
                                           "'MultiWorkerMirrored'] && "
                                           "!has(self.strategy.localSteps) && self.training.gradientAccumulation == 1)",
     .message = "statistics: Global needs a strategy that computes a batch at once (OneDevice, Mirrored, "
                "CentralStorage, MultiWorkerMirrored without localSteps) and no gradientAccumulation; write Shard"},
    {.name = "GpuStatistics",
     .about = &training_job_spec_type,
     .field = "coxswain.model",
     .holds = worker_rule_gpu_statistics,
     .cel = OURS "!(self.devices.type == 'GPU' || " USES_PLUGIN
                 ") || !" IS_GLOBAL_OF("self.coxswain.model") " || (" REPLICAS " == 1 && (!has(" TRAINING
                                                              ".logicalShards) || " TRAINING ".logicalShards == 1))",
     .message =
         "statistics: Global over several logical shards is computed by the worker's own operations on CPUs only; "
         "write Shard"},
    {.name = "FewestShards",
     .about = &training_job_spec_type,
     .field = "coxswain.training.logicalShards",
     .holds = worker_rule_fewest_shards,
     .cel = OURS "!has(" TRAINING ".logicalShards) || " TRAINING ".logicalShards >= " REPLICAS,
     .message = "must be at least the number of the crew's devices, the chief's included, because each computes at "
                "least one shard; raise it, or leave it out"},
    {.name = "MostShards",
     .about = &training_job_spec_type,
     .field = "coxswain.training.gradientAccumulation",
     .holds = worker_rule_most_shards,
     .cel = OURS "has(" TRAINING ".logicalShards) || " REPLICAS " * (has(" STRATEGY ".microBatches) ? " STRATEGY
                 ".microBatches : 1) * " TRAINING ".gradientAccumulation <= " TEXT(SHARDS_MAX),
     .message = "a batch is cut into at most " TEXT(SHARDS_MAX) " pieces, and devices x this x microBatches are more; "
                                                                "lower one of them"},
    {.name = "ServedTree",
     .about = &training_job_spec_type,
     .field = "devices.count",
     .holds = worker_rule_served_tree,
     .cel = OURS "!" IS_SYNCHRONOUSLY_SERVED " || self.devices.count == 1 || ((!has(" TRAINING
                 ".logicalShards) || " TRAINING ".logicalShards % self.devices.count == 0) && " SERVED_SHARES
                 " in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096])",
     .message =
         "mode Synchronous with several devices per worker needs devices.count times a power of two logical shards, so "
         "that the results have the bits of one device; take 2, 4, 8 … workers (x gradientAccumulation), set "
         "logicalShards to devices.count times a power of two, or take another mode"},
    {.name = "ServedShards",
     .about = &training_job_spec_type,
     .field = "coxswain.training",
     .holds = worker_rule_served_shards,
     .cel = OURS "!" IS_SYNCHRONOUSLY_SERVED " || " SERVED_SHARES " <= " TEXT(SERVED_SHARDS_MAX),
     .message = "a ps in mode Synchronous keeps at most " TEXT(
         SERVED_SHARDS_MAX) " shares of a batch; lower "
                            "logicalShards or gradientAccumulation, or take another mode"},
    {.name = "EvaluatorCheckpoint",
     .about = &training_job_spec_type,
     .field = "coxswain.checkpoint",
     .holds = worker_rule_evaluator_checkpoint,
     .cel = OURS "has(self.coxswain.checkpoint) || !has(self.evaluator)",
     .message =
         "is missing, and an evaluator scores checkpoints; say where they are saved, or leave the evaluator out"},
    {.name = "EvaluatorExamples",
     .about = &training_job_spec_type,
     .field = "coxswain.data.validation",
     .holds = worker_rule_evaluator_examples,
     .cel = OURS "has(self.coxswain.data.validation) || !has(self.evaluator)",
     .message = "is missing, and an evaluator needs held-out examples; give some, such as {last: 1000}, or leave the "
                "evaluator out"},
    {.name = "Texts",
     .about = &coxswain_type,
     .field = "data.format",
     .holds = worker_rule_texts,
     .cel = "self.data.format == 'Synthetic' || has(self.model.program) || (self.data.format in ['Bytes', 'Tokens']) "
            "== " MODEL_READS_TOKENS,
     .message =
         "Bytes and Tokens are for gpt presets and layers that begin with an Embedding, and the other formats for the "
         "other models; change format or model"},
    {.name = "AugmentedImages",
     .about = &coxswain_type,
     .field = "data.augmentation",
     .holds = worker_rule_augmented_images,
     .cel = "!has(self.data.augmentation) || !" MODEL_READS_TOKENS,
     .message = "is for images, and the model reads tokens; leave it out"},
    {.name = "ExportNames",
     .about = &coxswain_type,
     .field = "export.names",
     .holds = worker_rule_export_names,
     .cel = "!has(self.export) || self.export.names != 'HuggingFace' || !has(self.model.preset) || "
            "self.model.preset.startsWith('gpt')",
     .message = "Hugging Face's names are those of GPT-2; leave it out, or take a gpt preset"},
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
     .cel = "!(self.type in ['MaxPool', 'AveragePool']) || !has(self.size) || self.padding < self.size",
     .message = "must be lower than the pool's size, or a window would lie on zeros alone"},
    {.name = "SweepRange",
     .about = &sweep_range_type,
     .field = "max",
     .holds = sweep_rule_range,
     .message = "must be above min"},
    {.name = "SweepLogRange",
     .about = &sweep_log_range_type,
     .field = "max",
     .holds = sweep_rule_range,
     .message = "must be above min"},
    {.name = "SweepIntegers",
     .about = &sweep_integers_type,
     .field = "max",
     .holds = sweep_rule_integers,
     .cel = "self.min <= self.max",
     .message = "must not be below min"},
    {.name = "SweepLogIntegers",
     .about = &sweep_integers_type,
     .field = "min",
     .holds = sweep_rule_log_integers,
     .cel = "self.scale != 'Log' || self.min >= 1",
     .message = "must be at least 1 with scale Log, since only positive numbers have a logarithm"},
    {.name = "SweepIntegerStep",
     .about = &sweep_integers_type,
     .field = "step",
     .holds = sweep_rule_integer_step,
     .cel = "self.scale != 'Log' || self.step == 1",
     .message = "is not for scale Log; leave it out, or list the values, such as values: [16, 32, 64]"},
    {.name = "SweepTarget",
     .about = &sweep_parameter_type,
     .holds = sweep_rule_target,
     .cel = "(has(self.path) ? 1 : 0) + (has(self.env) ? 1 : 0) + (has(self.arg) ? 1 : 0) == 1",
     .message = "give either path, a field of the template, or env, a variable of the pods, or arg, an argument of "
                "theirs"},
    {.name = "SweepSource",
     .about = &sweep_parameter_type,
     .holds = sweep_rule_source,
     .message = "give exactly one of values, uniform, logUniform and integer"},
    {.name = "SweepGoal",
     .about = &training_sweep_spec_type,
     .field = "objective.goal",
     .holds = sweep_rule_goal,
     .cel = "has(self.objective.goal) || self.objective.metric.endsWith('loss') || "
            "self.objective.metric.endsWith('Loss')",
     .message =
         "is missing, and only of a loss a lower value is known to be better; give Maximize, as for an accuracy, "
         "or Minimize, as for an error"},
    {.name = "SweepTargets",
     .about = &training_sweep_spec_type,
     .field = "parameters",
     .holds = sweep_rule_targets_differ,
     .message = "two of them have the same path, env or arg; give each one once"},
    {.name = "SweepWhenKnown",
     .about = &training_sweep_spec_type,
     .field = "parameters",
     .holds = sweep_rule_when_known,
     .cel = "self.parameters.all(p, !has(p.when) || self.parameters.exists(q, (has(q.path) && q.path == "
            "p.when.parameter) || (has(q.env) && q.env == p.when.parameter) || (has(q.arg) && q.arg == "
            "p.when.parameter)))",
     .message =
         "a when names a parameter that does not exist; give the path, env or arg of another parameter of the sweep"},
    {.name = "SweepWhenEarlier",
     .about = &training_sweep_spec_type,
     .field = "parameters",
     .holds = sweep_rule_when_earlier,
     .message = "a when must name a parameter that is earlier in the list; move that parameter before this one"},
    {.name = "SweepWhenValues",
     .about = &training_sweep_spec_type,
     .field = "parameters",
     .holds = sweep_rule_when_values,
     .message = "a when lists a value that the other parameter never has; take some of its values, or whole numbers "
                "of its integer"},
    {.name = "SweepGrid",
     .about = &training_sweep_spec_type,
     .field = "parameters",
     .holds = sweep_rule_grid,
     .cel = "self.algorithm.type != 'Grid' || self.parameters.all(p, !has(p.uniform) && !has(p.logUniform))",
     .message =
         "a Grid needs values or integer in every parameter, because uniform and logUniform cannot be enumerated; list "
         "values, or take algorithm Random"},
    {.name = "SweepGridSize",
     .about = &training_sweep_spec_type,
     .field = "parameters",
     .holds = sweep_rule_grid_size,
     .message = "the grid has more than 10000 points; give fewer values, or maxTrials to try only its first ones"},
    {.name = "SweepEndless",
     .about = &training_sweep_spec_type,
     .field = "maxTrials",
     .holds = sweep_rule_endless,
     .cel = "self.algorithm.type == 'Grid' || has(self.maxTrials)",
     .message = "is missing, and algorithms Random, TPE and PBT draw trials without end; say how many"},
    {.name = "SweepRecordedTrials",
     .about = &training_sweep_spec_type,
     .field = "maxTrials",
     .holds = sweep_rule_recorded_trials,
     .cel = "(!(self.algorithm.type in ['TPE', 'PBT']) && !has(self.earlyStopping)) || !has(self.maxTrials) || "
            "self.maxTrials <= "
            "1000",
     .message =
         "must be at most 1000 with algorithm TPE or PBT or earlyStopping, since the status keeps more of each trial "
         "then"},
    {.name = "SweepRecordedGrid",
     .about = &training_sweep_spec_type,
     .field = "parameters",
     .holds = sweep_rule_recorded_grid,
     .message = "the grid has more than 1000 points, which is too many with earlyStopping; give fewer values, or "
                "maxTrials to try only its first ones"},
    {.name = "SweepPopulationParameters",
     .about = &training_sweep_spec_type,
     .field = "parameters",
     .holds = sweep_rule_population_parameters,
     .cel = "self.algorithm.type != 'PBT' || self.parameters.all(p, has(p.path) && !has(p.when) && "
            "((p.path.startsWith('coxswain.training.optimizer.') && p.path != 'coxswain.training.optimizer.type' && "
            "!p.path.startsWith('coxswain.training.optimizer.schedule')) || "
            "p.path in ['coxswain.training.batchSize', 'coxswain.training.perReplicaBatchSize']))",
     .message = "with PBT a trial goes on from another's checkpoint, so that only some fields can change: take paths "
                "below coxswain.training.optimizer other than its type and schedule, batchSize or perReplicaBatchSize, "
                "without when"},
    {.name = "SweepPopulationMomentum",
     .about = &training_sweep_spec_type,
     .field = "parameters",
     .holds = sweep_rule_population_momentum,
     .message =
         "with PBT a momentum of 0 cannot be mixed with other values, because a trial with momentum cannot go on "
         "from the checkpoint of a trial without; take a small value such as 0.01 instead of 0"},
    {.name = "SweepPopulationStopping",
     .about = &training_sweep_spec_type,
     .field = "earlyStopping",
     .holds = sweep_rule_population_stopping,
     .cel = "self.algorithm.type != 'PBT' || !has(self.earlyStopping)",
     .message = "is not for PBT, which replaces the worst trials itself; leave it out"},
    {.name = "SweepGenerations",
     .about = &training_sweep_spec_type,
     .field = "maxTrials",
     .holds = sweep_rule_generations,
     .cel = "self.algorithm.type != 'PBT' || !has(self.maxTrials) || !has(self.algorithm.population) || "
            "self.maxTrials >= 2 * self.algorithm.population",
     .message = "with PBT there must be at least two generations; raise it to twice the population, or more"},
    {.name = "SweepWholeGenerations",
     .about = &training_sweep_spec_type,
     .field = "maxTrials",
     .holds = sweep_rule_whole_generations,
     .cel = "self.algorithm.type != 'PBT' || !has(self.maxTrials) || !has(self.algorithm.population) || "
            "self.maxTrials % self.algorithm.population == 0",
     .message = "with PBT generations are whole; take a multiple of the population"},
    {.name = "SweepRound",
     .about = &training_sweep_spec_type,
     .field = "earlyStopping.brackets",
     .holds = sweep_rule_round,
     .message = "there are fewer trials than one round of the brackets needs, so the last bracket would get none; "
                "raise maxTrials, or give fewer brackets or a lower reductionFactor (docs/sweeps.md has the numbers)"},
    {.name = NULL},
};

bool job_name_holds(const char *name)
{
    return strlen(name) <= JOB_NAME_MAX && string_format_matches(STRING_FORMAT_JOB_NAME, name);
}
