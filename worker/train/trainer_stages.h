/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the stages of trainer_open: functions that set up one part of struct trainer each, such as
 * its devices. trainer.c calls them in the order of its table; a comment names the file that defines
 * each. inference/trained_model.c calls some of them, since it needs the paths, the model and the state
 * but no crew. Only these files and those that define a stage include this header.
 */
#ifndef COXSWAIN_TRAIN_TRAINER_STAGES_H
#define COXSWAIN_TRAIN_TRAINER_STAGES_H

#include "worker/train/trainer.h"

int trainer_open_crew(struct trainer *trainer, struct error *error);  /* trainer_crew.c */
int trainer_open_paths(struct trainer *trainer, struct error *error); /* trainer_storage.c */
/* Sets trainer->files.checkpoint_directory from the arguments, the environment or the job; NULL: the job saves
 * no checkpoints. Part of trainer_open_paths. In trainer_storage.c. */
int trainer_resolve_checkpoint(struct trainer *trainer, struct error *error);
int trainer_open_report(struct trainer *trainer, struct error *error);  /* trainer_report.c */
int trainer_open_store(struct trainer *trainer, struct error *error);   /* trainer_storage.c */
int trainer_open_plan(struct trainer *trainer, struct error *error);    /* trainer_plan.c */
int trainer_open_devices(struct trainer *trainer, struct error *error); /* trainer_devices.c */
/* Returns how many threads this process computes with (compute_threads). In trainer_devices.c. */
int trainer_threads(const struct trainer *trainer);
/* Returns whether this is a server, which keeps its variables in host memory for the network, or a chief that only leads servers. Their
 * pods request no device. In trainer_devices.c. */
bool trainer_keeps_to_the_host(const struct trainer *trainer);
int trainer_open_memory(struct trainer *trainer, struct error *error); /* trainer_devices.c */
/* Plans and checks the memory of a Pipeline whose stages are now known. For
 * strategy_calls.check_stages; `context` is the trainer. In trainer_devices.c. */
int trainer_check_stages(void *context, const unsigned *stages, unsigned layers, struct error *error);
int trainer_open_program(struct trainer *trainer, struct error *error); /* trainer_model.c */
/* Opens the job's program, if it has one, for a set of enum program_use. In trainer_model.c. */
int trainer_open_program_for(struct trainer *trainer, unsigned uses, struct error *error);
/* Translates the job's layers to a program, if XLA computes them, and compiles it. Needs the plan. In trainer_model.c. */
int trainer_lower_model(struct trainer *trainer, struct error *error);
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
