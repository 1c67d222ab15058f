/* SPDX-License-Identifier: Apache-2.0
 *
 * What this process will keep in memory, by purpose, worked out before any of it
 * is allocated, and held against what its cgroups and the machine allow, and its
 * GPUs have. A crew's members on one machine (crew_members_here) have a share of
 * the host's memory each. What a GPU's host copies and batches take (pinned memory)
 * is the host's. What CUDA, cuBLAS and NCCL take for themselves at first use is in
 * no plan.
 *
 * Where nothing says which layers a Pipeline's stages have (trainer->stages), only
 * the state of a lone worker is planned; once they are cut all is, and checked again
 * before it is allocated (trainer_check_stages). `trainer->memory` then tells what
 * was taken before.
 * Files that are mapped do not count: their pages can be read again.
 */
#ifndef COXSWAIN_TRAIN_MEMORY_BUDGET_H
#define COXSWAIN_TRAIN_MEMORY_BUDGET_H

#include "worker/device/host_memory.h"
#include "worker/train/trainer.h"

/* Of `job`, which need not be the trainer's own: another may be asked about. The trainer's crew, plan and devices are there. */
int memory_budget_plan(const struct trainer *trainer, const struct job_document *job, struct memory_plans *ret_plans,
                       struct error *error);

/* ERROR_NO_SPACE when the host's plan is more than `limit`, or the GPUs' more than they have: with the bytes by purpose, and what
 * would make it fit. */
int memory_budget_check(const struct trainer *trainer, const struct memory_plans *plans, struct host_memory_limit limit,
                        struct error *error);

#endif
