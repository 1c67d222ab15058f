/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything one process needs to train, opened in order and closed in reverse.
 * Each stage of the opening has the exit code that its failure means.
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

struct abandonment;
struct best;

struct trainer {
    /* Given; outlive the trainer. */
    const struct arguments *arguments;
    const struct identity *identity;
    const struct job_document *job;

    struct crew crew;
    struct storage_map *storage;
    char *checkpoint_directory; /* NULL: no checkpoints */
    char *export_path;          /* NULL: no export */
    char *init_path;            /* NULL: start from fresh parameters */
    struct report *report;
    struct checkpoint_store *store; /* the chief's; NULL: no checkpoints */
    struct part_writer *parts; /* of ranks that hold a part of the state beside the chief's; NULL: no checkpoints */
    struct step_plan plan;
    int64_t recorded_shards;    /* of the checkpoint to go on from; 0: there is none */
    struct memory_plans memory; /* of this process (memory_budget.h) */
    struct strategy_device
        devices[STRATEGY_DEVICES_MAX]; /* with a graph each where the strategy replicates the model */
    unsigned device_count;
    struct device *device;                                            /* the first */
    struct communicator_standing communicators[STRATEGY_DEVICES_MAX]; /* version 0: gradients go through the host */
    struct device_stream *stream;                                     /* for evaluations */
    struct graph *graph;                                              /* of the first */
    struct dataset *training, *validation;
    struct sampler sampler;
    struct training_state state;
    struct endpoint *endpoint; /* crews of more than one */
    struct member *member;     /* likewise */
    struct peer_hub *hub;      /* PeerToPeer, instead of the endpoint */
    struct strategy *strategy;
    struct abandonment *abandonment; /* NULL: a step is never abandoned (leaving.h) */

    bool store_begun;     /* the epoch record is written */
    bool restored_by_us;  /* this process filled the state from a checkpoint or afresh */
    int64_t applied_step; /* the last that this process has applied */
    unsigned *stages; /* where each layer runs, as the newest checkpoint says and later the crew; NULL: nobody does */
    unsigned stage_layers;  /* how many */
    int64_t evaluated_step; /* -1: none since the crew formed */
    bool evaluates;         /* what may be abandoned is an evaluation, not a step */
    bool averaged;          /* the state is the mean of all replicas (averaging.h) */
    int64_t restored_finished
        [CREW_SIZE_MAX];      /* what the checkpoint tells that it was restored from (finished_examples.h) */
    int64_t checkpoint_step;  /* last step whose save was started */
    int64_t checkpoint_ns;    /* when */
    int64_t told_failures;    /* failed saves that the report has told */
    struct world saved_world; /* whose ranks write the last save that was started; read by its background */
    int64_t told_saves;       /* and those that succeeded */
    int64_t held_ns;          /* since when saves wait for another rank's last part; 0: they do not */
    int64_t told_held_ns;     /* when it was last told whose */
    atomic_bool finishes;     /* waits for a save; read by its background */
    struct best *best;        /* the chief's, where it keeps the best weights (best.h) */
};

/* On failure *ret_code says how the process should end; the trainer must be released all the same. */
int trainer_open(struct trainer *trainer, const struct arguments *arguments, const struct identity *identity,
                 const struct job_document *job, enum exit_code *ret_code, struct error *error);
void trainer_release(struct trainer *trainer);

bool trainer_is_chief(const struct trainer *trainer);
/* Among whom a batch is shared out. */
unsigned trainer_batch_workers(const struct trainer *trainer);
/* Whether the job's strategy is ParameterServer, whose parts have loops of their own (parameter_server.h). */
bool trainer_serves_parameters(const struct trainer *trainer);
/* Whether gradients may go from device to device, by what the job says, which is the same in all its processes. */
bool trainer_may_sum_on_devices(const struct trainer *trainer);
/* Where this process listens; NULL: on all interfaces. */
const char *trainer_listen_address(const struct trainer *trainer);

/* Of the strategy's options; `trainer` is their context. */
double trainer_learning_rate(void *trainer, int64_t step);
unsigned trainer_votes(void *trainer);

#endif
