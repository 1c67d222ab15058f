/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules for what Coxswain's worker would refuse in the pod and the spec alone shows: the C versions of CEL rules (rules.c has their
 * table). Jobs of other frameworks pass. A job document, which names no framework, counts as the worker's.
 */
#ifndef COXSWAIN_JOB_WORKER_RULES_H
#define COXSWAIN_JOB_WORKER_RULES_H

#include <stdbool.h>

#include "common/json.h"

/* For members that the spec and the job document share. */
bool worker_rule_server_accumulation(const struct json *self, const struct json *old);
bool worker_rule_server_rate(const struct json *self, const struct json *old);
bool worker_rule_float16(const struct json *self, const struct json *old);
bool worker_rule_nccl(const struct json *self, const struct json *old);
bool worker_rule_ring(const struct json *self, const struct json *old);
bool worker_rule_global_statistics(const struct json *self, const struct json *old);
bool worker_rule_texts(const struct json *self, const struct json *old);
bool worker_rule_augmented_images(const struct json *self, const struct json *old);
bool worker_rule_export_names(const struct json *self, const struct json *old);

/* For the spec, which has the roles. */
bool worker_rule_gpu_statistics(const struct json *self, const struct json *old);
bool worker_rule_local_steps_crew(const struct json *self, const struct json *old);
bool worker_rule_sharded_alone(const struct json *self, const struct json *old);
bool worker_rule_fewest_shards(const struct json *self, const struct json *old);
bool worker_rule_most_shards(const struct json *self, const struct json *old);
bool worker_rule_served_tree(const struct json *self, const struct json *old);
bool worker_rule_served_shards(const struct json *self, const struct json *old);
bool worker_rule_evaluator_checkpoint(const struct json *self, const struct json *old);
bool worker_rule_evaluator_examples(const struct json *self, const struct json *old);

/* For a layer. */
bool worker_rule_lent_bias(const struct json *self, const struct json *old);
bool worker_rule_pool_padding(const struct json *self, const struct json *old);

#endif
