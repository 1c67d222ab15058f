/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/worker_rules.h"

#include "common/job/job_document.h"
#include "common/job/rule_values.h"

static bool is_foreign(const struct json *self)
{
    return rule_has(self, "pytorch") || rule_has(self, "tensorflow") || rule_has(self, "jax");
}

static bool is_served(const struct json *self)
{
    return rule_is(self, "strategy.type", "ParameterServer");
}

static int64_t devices(const struct json *self)
{
    return json_integer_at(self, "devices.count", 1);
}

static int64_t accumulation(const struct json *self)
{
    return rule_integer(self, "training.gradientAccumulation", 1);
}

/* ---------------------------------------------------------------- strategies */

bool worker_rule_server_accumulation(const struct json *self, const struct json *old)
{
    (void)old;
    return is_foreign(self) || !is_served(self) || rule_is(self, "strategy.mode", "Synchronous") ||
           accumulation(self) == 1;
}

/* Each worker's share is an update of its own there, at the whole rate: with more workers a step goes further as it is. */
bool worker_rule_server_rate(const struct json *self, const struct json *old)
{
    (void)old;
    return is_foreign(self) || !is_served(self) || rule_is(self, "strategy.mode", "Synchronous") ||
           !rule_is(self, "training.scaleLearningRate", "Linear");
}

/* All processes that take a step together must agree to skip it. */
bool worker_rule_float16(const struct json *self, const struct json *old)
{
    (void)old;
    static const char *const apart[] = {"ParameterServer", "PeerToPeer", NULL};
    bool scales = rule_is(self, "training.precision", "Float16");
    return is_foreign(self) || !scales ||
           !(rule_is_one_of(self, "strategy.type", apart) || rule_has(self, "strategy.localSteps"));
}

bool worker_rule_nccl(const struct json *self, const struct json *old)
{
    (void)old;
    bool several = rule_is(self, "strategy.type", "MultiWorkerMirrored") ||
                   (rule_is(self, "strategy.type", "Mirrored") && devices(self) > 1);
    bool can = several && !rule_is(self, "devices.type", "CPU") && !rule_uses_plugin(self);
    return is_foreign(self) || !rule_is(self, "strategy.collective", "NCCL") || can;
}

/* It adds in an order that follows the crew's size. */
bool worker_rule_ring(const struct json *self, const struct json *old)
{
    (void)old;
    return is_foreign(self) || !rule_is(self, "strategy.collective", "Ring") ||
           !rule_is(self, "training.determinism", "Crew");
}

static bool has_global_statistics(const struct json *self)
{
    const struct json *layers = rule_at(self, "model.layers");
    bool global = rule_is(self, "model.statistics", "Global");
    for (const struct json *layer = json_first(layers); layer; layer = json_next(layer))
        global |= rule_is(layer, "statistics", "Global");
    return global;
}

/* All shards of a batch must be computed at once, by processes that exchange values. */
bool worker_rule_global_statistics(const struct json *self, const struct json *old)
{
    (void)old;
    static const char *const at_once[] = {"OneDevice", "Mirrored", "CentralStorage", "MultiWorkerMirrored", NULL};
    bool can = rule_is_one_of(self, "strategy.type", at_once) && !rule_has(self, "strategy.localSteps") &&
               accumulation(self) == 1;
    return is_foreign(self) || !has_global_statistics(self) || can;
}

/* ---------------------------------------------------------------- how many */

/* The most that the crew ever has of them. */
static int64_t workers(const struct json *self)
{
    return json_integer_at(self, rule_has(self, "workers.maxReplicas") ? "workers.maxReplicas" : "workers.replicas", 1);
}

static int64_t trainers(const struct json *self)
{
    return workers(self) + rule_has(self, "chief");
}

/* Those that a ParameterServer crew's batch is cut for: neither its chief nor spare ones. */
static int64_t served_workers(const struct json *self)
{
    return workers(self) - rule_integer(self, "strategy.backupWorkers", 0);
}

/* Each has at least one logical shard. */
static int64_t replicas(const struct json *self)
{
    if (is_served(self))
        return served_workers(self) * devices(self);
    if (!rule_is(self, "strategy.type", "Pipeline"))
        return trainers(self) * devices(self);
    int64_t stages = rule_integer(self, "strategy.stages", 0);
    return stages > 0 ? json_integer_at(self, "workers.replicas", 1) * devices(self) / stages : 1;
}

/* Returns whether the worker's own operations compute on GPUs. */
static bool asks_for_gpus(const struct json *self)
{
    return !is_foreign(self) && rule_is(self, "devices.type", "GPU") && !rule_uses_plugin(self);
}

/* Returns whether a GPU or XLA computes the model. */
static bool computes_elsewhere(const struct json *self)
{
    return !is_foreign(self) && (rule_is(self, "devices.type", "GPU") || rule_uses_plugin(self));
}

bool worker_rule_gpu_statistics(const struct json *self, const struct json *old)
{
    (void)old;
    return !computes_elsewhere(self) || !has_global_statistics(self) ||
           (replicas(self) == 1 && rule_integer(self, "training.logicalShards", 1) == 1);
}

bool worker_rule_local_steps_crew(const struct json *self, const struct json *old)
{
    (void)old;
    return is_foreign(self) || !rule_has(self, "strategy.localSteps") || trainers(self) > 1;
}

bool worker_rule_sharded_alone(const struct json *self, const struct json *old)
{
    (void)old;
    return is_foreign(self) || !rule_boolean(self, "strategy.shardedOptimizer") || trainers(self) > 1 ||
           (asks_for_gpus(self) && devices(self) > 1);
}

bool worker_rule_fewest_shards(const struct json *self, const struct json *old)
{
    (void)old;
    return is_foreign(self) || rule_integer(self, "training.logicalShards", SHARDS_MAX) >= replicas(self);
}

/* Without a given number of micro-batches, there are as many as fit. */
bool worker_rule_most_shards(const struct json *self, const struct json *old)
{
    (void)old;
    int64_t pieces = rule_integer(self, "strategy.microBatches", 1) * accumulation(self);
    return is_foreign(self) || rule_has(self, "training.logicalShards") || replicas(self) * pieces <= SHARDS_MAX;
}

static bool is_synchronous(const struct json *self)
{
    return !is_foreign(self) && is_served(self) && rule_is(self, "strategy.mode", "Synchronous");
}

/* Those of a batch, a logical shard for each device of a worker. */
static int64_t served_shares(const struct json *self)
{
    if (rule_has(self, "training.logicalShards"))
        return rule_integer(self, "training.logicalShards", 1) / devices(self);
    return served_workers(self) * accumulation(self);
}

/* The sum of a worker's devices is one of the tree's own where that halves down to it. */
bool worker_rule_served_tree(const struct json *self, const struct json *old)
{
    (void)old;
    int64_t shares = served_shares(self);
    bool even = rule_integer(self, "training.logicalShards", 0) % devices(self) == 0;
    return !is_synchronous(self) || devices(self) == 1 || (even && shares > 0 && (shares & (shares - 1)) == 0);
}

bool worker_rule_served_shards(const struct json *self, const struct json *old)
{
    (void)old;
    return !is_synchronous(self) || served_shares(self) <= SERVED_SHARDS_MAX;
}

/* ---------------------------------------------------------------- the evaluator */

static bool is_evaluated_beside(const struct json *self)
{
    return !is_foreign(self) && is_served(self) && rule_has(self, "evaluator");
}

bool worker_rule_evaluator_checkpoint(const struct json *self, const struct json *old)
{
    (void)old;
    return !is_evaluated_beside(self) || rule_has(self, "checkpoint");
}

bool worker_rule_evaluator_examples(const struct json *self, const struct json *old)
{
    (void)old;
    return !is_evaluated_beside(self) || rule_has(self, "data.validation");
}

/* ---------------------------------------------------------------- model, data, weights */

static bool is_preset_of_texts(const struct json *self)
{
    return strncmp(rule_string(self, "model.preset"), "gpt", 3) == 0;
}

/* A model over tokens begins with an embedding. */
static bool reads_tokens(const struct json *self)
{
    const struct json *layers = rule_at(self, "model.layers");
    return is_preset_of_texts(self) || rule_is(json_first(layers), "type", "Embedding");
}

bool worker_rule_texts(const struct json *self, const struct json *old)
{
    (void)old;
    static const char *const texts[] = {"Bytes", "Tokens", NULL};
    return is_foreign(self) || !rule_has(self, "model") || !rule_has(self, "data") ||
           rule_is(self, "data.format", "Synthetic") || rule_has(self, "model.program") ||
           rule_is_one_of(self, "data.format", texts) == reads_tokens(self);
}

bool worker_rule_augmented_images(const struct json *self, const struct json *old)
{
    (void)old;
    return is_foreign(self) || !rule_has(self, "model") || !rule_has(self, "data.augmentation") || !reads_tokens(self);
}

bool worker_rule_export_names(const struct json *self, const struct json *old)
{
    (void)old;
    return is_foreign(self) || !rule_is(self, "export.names", "HuggingFace") || !rule_has(self, "model.preset") ||
           is_preset_of_texts(self);
}

/* ---------------------------------------------------------------- layers */

bool worker_rule_lent_bias(const struct json *self, const struct json *old)
{
    (void)old;
    return !rule_has(self, "weightsOf") || !json_boolean_at(self, "bias", true);
}

/* A window could otherwise be entirely in the padding. */
bool worker_rule_pool_padding(const struct json *self, const struct json *old)
{
    (void)old;
    static const char *const pools[] = {"MaxPool", "AveragePool", NULL};
    return !rule_is_one_of(self, "type", pools) ||
           json_integer_at(self, "padding", 0) < json_integer_at(self, "size", 1);
}
