/* SPDX-License-Identifier: Apache-2.0
 *
 * Names inside a job's checkpoint directory. The worker writes them; `cox`
 * shows them to people.
 *
 *   step-00001200.attempt-1.epoch-5/   committed: complete, fsynced, renamed into place
 *       manifest.json
 *       rank-00000.safetensors …
 *   .saving-step-00001200.attempt-1.epoch-5/  being written; removed by the next chief
 *   .replaced-step-…/                  the last chief died while it put a newer save of that step there; the next puts it back
 *   .bad-step-…/                       failed its digests; kept for a person to look at, never loaded
 *   epoch-<E>.json                     written exclusively by a new chief: which checkpoint its lineage starts from
 *   best.safetensors                   weights of the best evaluation, with step and loss in its metadata (keepBest)
 *   export.json                        which file the job has exported (export_record.h)
 *   tensorboard/                       event files
 */
#ifndef COXSWAIN_CONTRACT_CHECKPOINT_LAYOUT_H
#define COXSWAIN_CONTRACT_CHECKPOINT_LAYOUT_H

#define CHECKPOINT_STEP_PREFIX "step-"
#define CHECKPOINT_DIRECTORY_FORMAT                                                                                    \
    CHECKPOINT_STEP_PREFIX "%08lld.attempt-%lld.epoch-%lld" /* step, attempt, chief's epoch: long long */
#define CHECKPOINT_SAVING_PREFIX ".saving-"
#define CHECKPOINT_REPLACED_PREFIX ".replaced-"
#define CHECKPOINT_BAD_PREFIX ".bad-"
#define CHECKPOINT_MANIFEST "manifest.json"
#define CHECKPOINT_SHARD_FORMAT "rank-%05d.safetensors"
#define CHECKPOINT_EPOCH_FORMAT "epoch-%lld.json"
#define CHECKPOINT_BEST "best.safetensors"
#define CHECKPOINT_EXPORT "export.json"
#define CHECKPOINT_TENSORBOARD "tensorboard"
#define CHECKPOINT_TENSORBOARD_EVALUATOR_NAME "evaluator"
#define CHECKPOINT_TENSORBOARD_EVALUATOR CHECKPOINT_TENSORBOARD "/" CHECKPOINT_TENSORBOARD_EVALUATOR_NAME
/* Beside an exported file NAME stands the directory .NAME.chiefs, with a record of each chief that exported it. */
#define CHECKPOINT_CLAIMS_SUFFIX ".chiefs"

/* Part of the worker's message when a checkpoint's tensors are not this job's; cox then says how to begin without it. */
#define CHECKPOINT_MISFIT "does not fit this job"

#endif
