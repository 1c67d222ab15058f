/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the names of the files in a job's checkpoint directory. Workers write the files; `cox` looks for them. The chief, the pod that
 * leads a job's training, commits and removes checkpoints. A checkpoint's name has the chief's attempt (how many times all pods of the job
 * have been started) and incarnation (a number that the operator raises before it creates pods), so that a replaced chief, whose
 * incarnation is lower, can no longer save.
 *
 *   step-00001200.attempt-1.incarnation-5/   a committed checkpoint: complete, fsynced, renamed into place
 *       manifest.json
 *       rank-00000.safetensors …
 *   .saving-step-…/                    a checkpoint that is being written; removed by the next chief
 *   .replaced-step-…/                  an older save that was about to be replaced when the chief died; the next chief restores its name
 *                                      if no newer save has that name, else removes it
 *   .bad-step-…/                       a checkpoint with wrong checksums; kept for inspection, never loaded
 *   incarnation-<N>.json               a chief's claim of the directory, and the checkpoint that it started from (incarnation_record.h)
 *   best.safetensors                   weights of the best evaluation, with step and loss in its metadata (keepBest)
 *   completion.json                    that the job has done everything, what it exported, and its last status (completion_record.h)
 *   tensorboard/                       event files
 */
#ifndef COXSWAIN_CONTRACT_CHECKPOINT_LAYOUT_H
#define COXSWAIN_CONTRACT_CHECKPOINT_LAYOUT_H

#define CHECKPOINT_STEP_PREFIX "step-"
#define CHECKPOINT_DIRECTORY_FORMAT                                                                                    \
    CHECKPOINT_STEP_PREFIX "%08lld.attempt-%lld.incarnation-%lld" /* step, attempt, incarnation: long long */
#define CHECKPOINT_SAVING_PREFIX ".saving-"
/* Local folder of a save of ParameterServer to a bucket: attempt, incarnation, number of the save. */
#define CHECKPOINT_SHARDS_FORMAT CHECKPOINT_SAVING_PREFIX "shards.%u.%u.%u"
#define CHECKPOINT_REPLACED_PREFIX ".replaced-"
#define CHECKPOINT_BAD_PREFIX ".bad-"
#define CHECKPOINT_MANIFEST "manifest.json"
#define CHECKPOINT_SHARD_FORMAT "rank-%05d.safetensors"
#define CHECKPOINT_INCARNATION_PREFIX "incarnation-"
#define CHECKPOINT_INCARNATION_FORMAT CHECKPOINT_INCARNATION_PREFIX "%lld.json"
#define CHECKPOINT_BEST "best.safetensors"
#define CHECKPOINT_COMPLETION "completion.json"
#define CHECKPOINT_TENSORBOARD "tensorboard"
#define CHECKPOINT_TENSORBOARD_EVALUATOR_NAME "evaluator"
#define CHECKPOINT_TENSORBOARD_EVALUATOR CHECKPOINT_TENSORBOARD "/" CHECKPOINT_TENSORBOARD_EVALUATOR_NAME
/* The directory .NAME.chiefs next to an exported file NAME has a record of each chief that was to write it (export_claim.h). */
#define CHECKPOINT_CLAIMS_SUFFIX ".chiefs"

/* Part of the worker's error message if a checkpoint has other tensors than the job, or was made from other training data. If `cox run`
 * finds it, it prints how to start without the checkpoint. */
#define CHECKPOINT_MISFIT "does not fit this job"

#endif
