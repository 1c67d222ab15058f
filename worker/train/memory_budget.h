/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans how much memory this process will use, by purpose, before any of it is allocated, and
 * checks the plan against the limits of its cgroups, the machine and its GPUs. If several members
 * of the crew run on one machine (crew_members_here), each may use an equal share of the host's
 * memory. Pinned host memory for a GPU's copies and batches counts as host memory. The memory that
 * CUDA, cuBLAS and NCCL take for themselves at first use is not planned. Mapped files do not count,
 * since their pages can be read again. Examples that are in memory (dataset_memory) count as input as soon as the datasets are open:
 * trainer_open_data plans and checks again.
 *
 * If it is not yet known which layers each stage of a Pipeline has (trainer->stages), only the
 * state of a lone worker is planned. Once the stages are cut, everything is planned and checked
 * again before it is allocated (trainer_check_stages); `trainer->memory` then includes what was
 * allocated before.
 */
#ifndef COXSWAIN_TRAIN_MEMORY_BUDGET_H
#define COXSWAIN_TRAIN_MEMORY_BUDGET_H

#include "worker/device/host_memory.h"
#include "worker/train/trainer.h"

/* Plans the memory for `job`, which may differ from the trainer's own job in order to ask what
 * another would need. The trainer's crew, plan and devices must be open. */
int memory_budget_plan(const struct trainer *trainer, const struct job_document *job, struct memory_plans *ret_plans,
                       struct error *error);

/* Fails with ERROR_NO_SPACE if the host's plan exceeds `limit` or the GPUs' plan exceeds their
 * memory. The error lists the bytes by purpose and what would make the plan fit. */
int memory_budget_check(const struct trainer *trainer, const struct memory_plans *plans, struct host_memory_limit limit,
                        struct error *error);

#endif
