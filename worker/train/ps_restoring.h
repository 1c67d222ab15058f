/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds what the servers of a ParameterServer job start from when no server holds the trained state: the job's newest
 * complete checkpoint, else what the spec field init.path names, else the parameters of a fresh run. The chief
 * (ps_chief.h) passes it to recovery_plan. Only manifests are read here; the servers read the values.
 */
#ifndef COXSWAIN_TRAIN_PS_RESTORING_H
#define COXSWAIN_TRAIN_PS_RESTORING_H

#include "worker/parameter_server/recovery.h"
#include "worker/train/trainer.h"

/* Finds the checkpoint and reads its step, position and tickets. The caller calls recovery_source_release, also after
 * a failure. */
int ps_restoring_find_source(struct trainer *trainer, struct recovery_source *source, struct error *error);

/* Reads the servers' tickets from a checkpoint's manifest into `source`, whose step and position
 * are already set. Reads none if the manifest has none, or if the checkpoint's crew had another
 * number of servers or of tickets per step, or another batch size: its tickets then stand for other
 * examples, and updates beyond the step are computed again. */
int ps_restoring_read_tickets(const struct trainer *trainer, const struct manifest *manifest,
                              struct recovery_source *source, struct error *error);

#endif
