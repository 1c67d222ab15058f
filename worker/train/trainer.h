/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines struct trainer, which holds everything that one process needs to train: devices, model,
 * data, state, strategy and so on. main.c opens one, passes it to the training loop (loop.h or
 * parameter_server.h), and releases it. Inference opens parts of one.
 *
 * The struct's members are opened in a fixed order (trainer.c) and closed in reverse order. If a
 * stage of opening fails, trainer_open returns the exit code for that stage.
 */
#ifndef COXSWAIN_TRAIN_TRAINER_H
#define COXSWAIN_TRAIN_TRAINER_H

#include <stdatomic.h>

#include "common/contract/exit_code.h"
#include "common/error.h"
#include "common/job/job_document.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/part.h"
#include "worker/coordination/member.h"
#include "worker/data/dataset.h"
#include "worker/data/sampler.h"
#include "worker/device/communicator.h"
#include "worker/device/device.h"
#include "worker/launch/arguments.h"
#include "worker/launch/crew.h"
#include "worker/launch/identity.h"
#include "worker/model/graph.h"
#include "worker/optimizer/training_state.h"
#include "worker/report/report.h"
#include "worker/strategy/strategy.h"
#include "worker/train/step_plan.h"
#include "worker/train/trained_on.h"

struct abandonment;
struct best;
struct bucket;
struct export_objects;
struct program;

/* What the job stores, and where. */
struct trainer_files {
    struct storage_map *storage;
    char *checkpoint_directory;            /* NULL: no checkpoints */
    char *export_path;                     /* NULL: no export */
    struct export_objects *export_objects; /* NULL: the export stays at its path */
    char *init_path;                       /* NULL: start from fresh parameters */
    struct checkpoint_store *store;        /* the chief's; NULL: no checkpoints */
    bool store_begun;                      /* the incarnation record is written */
    struct bucket *bucket;     /* of ranks other than the chief, to read checkpoints and to write shards; NULL: none */
    struct part_writer *parts; /* for ranks other than the chief that hold a part of the state; NULL: no checkpoints */
    struct best *best;         /* the chief's, if it keeps the best weights (best.h) */
};

/* The saves so far (saving.h). */
struct trainer_saves {
    int64_t step;              /* the last one whose save was started */
    int64_t started_ns;        /* when it was started */
    int64_t reported_failures; /* failed saves that were reported */
    int64_t reported;          /* successful saves that were reported */
    int64_t held_ns;           /* since when another rank's older part holds up saves; 0: nothing does */
    int64_t reported_held_ns;  /* when this was last reported */
    /* Read by the thread that saves: */
    struct world world;   /* the crew of the last save that was started */
    atomic_bool finishes; /* the end of the run waits for a save */
};

/* What the checkpoint from which the run goes on says. */
struct trainer_resumed {
    bool by_us;                      /* this process filled the state from a checkpoint or with initial weights */
    int64_t shards;                  /* logical ones; 0: there is no checkpoint */
    int64_t finished[CREW_SIZE_MAX]; /* finished_examples.h */
};

/* The program that computes the model (docs/programs.md). */
struct trainer_program {
    struct program *program; /* NULL: the worker's own operations compute the model */
    /* What the bits of the program's code depend on (coordination/arithmetic.h); "": no program. */
    char code[ARITHMETIC_MAX / 2 + 8];
    int wanted_threads; /* restart the process with this number of threads (compute_threads.h); 0: no need */
};

struct trainer {
    /* Borrowed; must outlive the trainer. */
    const struct arguments *arguments;
    const struct identity *identity;
    const struct job_document *job;

    struct crew crew;
    struct report *report;
    struct trainer_files files;

    /* The devices and the model on them. */
    struct memory_plans memory;                           /* planned for this process (memory_budget.h) */
    struct strategy_device devices[STRATEGY_DEVICES_MAX]; /* each has a graph if the strategy replicates the model */
    unsigned device_count;
    struct device *device; /* the first */
    struct communicator_capabilities
        communicators[STRATEGY_DEVICES_MAX]; /* of each device; version 0 of the first: sums are computed on the host */
    struct device_stream *stream;            /* for evaluations */
    struct graph *graph;                     /* of the first device */
    struct trainer_program xla;
    unsigned *stages; /* the stage of each layer, from the newest checkpoint, later from the crew; NULL: not known */
    unsigned stage_layers; /* number of layers in `stages` */

    /* The data. */
    struct dataset *training, *validation;
    struct sampler sampler;
    struct step_plan plan;

    /* The state, and what changes it. */
    struct training_state state;
    struct trained_on trained_on; /* of the weights that inference has loaded */
    struct endpoint *endpoint;    /* for crews of more than one */
    struct member *member;        /* for crews of more than one */
    struct peer_hub *hub;         /* PeerToPeer, instead of the endpoint */
    struct strategy *strategy;
    struct abandonment *abandonment; /* NULL: a step is never abandoned (leaving.h) */

    /* Progress. */
    int64_t applied_step;   /* last step that this process has applied */
    int64_t evaluated_step; /* -1: none since the crew formed */
    bool evaluates;         /* an evaluation, not a step, is in progress and may be abandoned */
    bool averaged;          /* the state is at present the mean of all replicas (averaging.h) */
    struct trainer_saves saves;
    struct trainer_resumed resumed;
};

/* Opens the trainer. On failure *ret_code is the exit code for the process; the trainer must be
 * released all the same. */
int trainer_open(struct trainer *trainer, const struct arguments *arguments, const struct identity *identity,
                 const struct job_document *job, enum exit_code *ret_code, struct error *error);
void trainer_release(struct trainer *trainer);

bool trainer_is_chief(const struct trainer *trainer);
/* Returns among how many workers a batch is divided. */
unsigned trainer_batch_workers(const struct trainer *trainer);
/* Returns whether the strategy is ParameterServer, whose processes have loops of their own
 * (parameter_server.h). */
bool trainer_serves_parameters(const struct trainer *trainer);
/* Returns whether gradients may be sent from device to device. Depends on the job only, so that all
 * its processes agree. */
bool trainer_may_sum_on_devices(const struct trainer *trainer);
/* Returns the address to listen on; NULL: all interfaces. */
const char *trainer_listen_address(const struct trainer *trainer);

/* Writes the name of this process's arithmetic (coordination/arithmetic.h): that of its device and, if the job promises the same bits in all
 * its processes, what the bits of a program's code depend on. */
void trainer_name_arithmetic(const struct trainer *trainer, char ret_name[ARITHMETIC_MAX]);

/* Two functions for struct strategy_calls (strategy.h); `trainer`, a struct trainer, is their context. The first returns the learning rate
 * of a step, the second this rank's votes (STRATEGY_VOTE_…) at the moment. */
double trainer_learning_rate(void *trainer, int64_t step);
unsigned trainer_votes(void *trainer);

#endif
