/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the functions that open the members of a trainer, each of which is a stage of
 * trainer_open, and the file of each. Only the files that open a trainer include it: trainer.c,
 * which calls the stages in the order of its table, the trainer_*.c files, and
 * inference/trained_model.c, which opens a trainer's paths, model and state without a crew.
 */
#ifndef COXSWAIN_TRAIN_TRAINER_STAGES_H
#define COXSWAIN_TRAIN_TRAINER_STAGES_H

#include "worker/train/trainer.h"

int trainer_open_crew(struct trainer *trainer, struct error *error);          /* trainer_crew.c */
int trainer_open_paths(struct trainer *trainer, struct error *error);         /* trainer_storage.c */
int trainer_resolve_checkpoint(struct trainer *trainer, struct error *error); /* called by trainer_open_paths */
int trainer_open_report(struct trainer *trainer, struct error *error);        /* trainer_report.c */
int trainer_open_store(struct trainer *trainer, struct error *error);         /* trainer_storage.c */
int trainer_open_plan(struct trainer *trainer, struct error *error);          /* trainer_plan.c */
int trainer_open_devices(struct trainer *trainer, struct error *error);       /* trainer_devices.c */
/* Returns how many threads this process computes with (compute_threads). In trainer_devices.c. */
int trainer_threads(const struct trainer *trainer);
int trainer_open_memory(struct trainer *trainer, struct error *error); /* trainer_devices.c */
/* Plans and checks the memory of a Pipeline whose stages are now known. For
 * strategy_options.check_stages; `context` is the trainer. In trainer_devices.c. */
int trainer_check_stages(void *context, const unsigned *stages, unsigned layers, struct error *error);
int trainer_open_program(struct trainer *trainer, struct error *error);
/* Opens the job's program, if it has one, for a set of enum program_use. In trainer_model.c. */
int trainer_open_program_for(struct trainer *trainer, unsigned uses, struct error *error);
int trainer_open_graphs(struct trainer *trainer, struct error *error); /* trainer_model.c */
/* Returns the options for a graph of the whole model that takes part in training. In
 * trainer_model.c. */
struct graph_options trainer_graph_options(const struct trainer *trainer, struct device *device);
int trainer_open_data(struct trainer *trainer, struct error *error);         /* trainer_model.c */
int trainer_open_state(struct trainer *trainer, struct error *error);        /* trainer_model.c */
int trainer_open_key(struct trainer *trainer, struct error *error);          /* trainer_crew.c */
int trainer_open_certificates(struct trainer *trainer, struct error *error); /* trainer_crew.c */
int trainer_open_member(struct trainer *trainer, struct error *error);       /* trainer_crew.c */
int trainer_open_strategy(struct trainer *trainer, struct error *error);     /* trainer_strategy.c */

#endif
