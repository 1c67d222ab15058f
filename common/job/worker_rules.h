/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the rules by which the API server refuses a job that Coxswain's own worker cannot run, so that the
 * user learns of it when the job is created and not when its pods start. Jobs of other frameworks pass all of
 * them; a job document names no framework and is checked like a job of Coxswain's.
 *
 * Each function returns whether `self` satisfies the rule; `old` is not used. The table in rules.c, which calls
 * them, has each rule's CEL expression and message. The comments below say what a rule demands.
 */
#ifndef COXSWAIN_JOB_WORKER_RULES_H
#define COXSWAIN_JOB_WORKER_RULES_H

#include <stdbool.h>

#include "common/json.h"

/* `self` is the section coxswain, which a job document has as well. */

/* gradientAccumulation above 1: with ParameterServer only in mode Synchronous. */
bool worker_rule_server_accumulation(const struct json *self, const struct json *old);
/* scaleLearningRate Linear: with ParameterServer only in mode Synchronous. */
bool worker_rule_server_rate(const struct json *self, const struct json *old);
/* precision Float16: not with ParameterServer, PeerToPeer or localSteps, where the crew cannot skip a step together. */
bool worker_rule_float16(const struct json *self, const struct json *old);
/* collective Ring: not with determinism Crew, since its order of additions depends on the crew's size. */
bool worker_rule_ring(const struct json *self, const struct json *old);
/* statistics Global of a model or layer: only with strategies that compute a whole batch at once. */
bool worker_rule_global_statistics(const struct json *self, const struct json *old);
/* Data formats Bytes and Tokens: for models that read tokens, and those read no other format. */
bool worker_rule_texts(const struct json *self, const struct json *old);
/* data.augmentation: only for models that read images. */
bool worker_rule_augmented_images(const struct json *self, const struct json *old);
/* export.names HuggingFace: only for GPT presets. */
bool worker_rule_export_names(const struct json *self, const struct json *old);

/* `self` is the spec of a job, which also has the roles and devices. */

/* collective NCCL: only on GPUs, with Mirrored or MultiWorkerMirrored. It applies to job documents, too. */
bool worker_rule_nccl(const struct json *self, const struct json *old);
/* statistics Global of a model or layer: not on GPUs, nor by XLA, with several logical shards. */
bool worker_rule_gpu_statistics(const struct json *self, const struct json *old);
/* localSteps: at least two members that train. */
bool worker_rule_local_steps_crew(const struct json *self, const struct json *old);
/* shardedOptimizer: at least two members that train, or several GPUs. */
bool worker_rule_sharded_alone(const struct json *self, const struct json *old);
/* logicalShards: at least one per device of the crew. */
bool worker_rule_fewest_shards(const struct json *self, const struct json *old);
/* Without logicalShards: devices x gradientAccumulation x microBatches is at most SHARDS_MAX. */
bool worker_rule_most_shards(const struct json *self, const struct json *old);
/* ParameterServer, Synchronous, several devices per worker: devices.count times a power of two logical shards. */
bool worker_rule_served_tree(const struct json *self, const struct json *old);
/* ParameterServer, Synchronous: at most SERVED_SHARDS_MAX shares of a batch. */
bool worker_rule_served_shards(const struct json *self, const struct json *old);
/* A ParameterServer job's evaluator needs checkpoints … */
bool worker_rule_evaluator_checkpoint(const struct json *self, const struct json *old);
/* … and validation examples. */
bool worker_rule_evaluator_examples(const struct json *self, const struct json *old);

/* `self` is a layer. */

/* A layer that takes the weights of another (weightsOf) has no bias. */
bool worker_rule_lent_bias(const struct json *self, const struct json *old);
/* A pool's padding is less than its size. */
bool worker_rule_pool_padding(const struct json *self, const struct json *old);

#endif
