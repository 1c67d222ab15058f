/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the C functions of the rules by which the API server refuses, when a job is created, what Coxswain's worker would refuse when
 * it starts. Jobs of other frameworks satisfy all these rules; a job document, which names no framework, is
 * checked. The table of rules (rules.h) has the CEL expressions and messages, and only its file, rules.c, calls the functions.
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
