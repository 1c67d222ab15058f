/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs training steps by the distribution strategy of the job (OneDevice, Mirrored, MultiWorkerMirrored, PeerToPeer,
 * Pipeline …), which divides each step among devices and processes. The training loop (train/loop.c) uses only these
 * functions; each strategy is a file that implements strategy_table.h. Order of calls:
 *
 *     strategy_open(options)
 *     strategy_reform          join the crew, agree on the state, get it
 *     strategy_step …          until one fails with ERROR_UNAVAILABLE: strategy_reform again
 *     strategy_close
 *
 * A step that fails has changed nothing: parameters, slots and the position in the data change
 * together, after every gradient of the step is reduced. The moment between two calls of
 * strategy_step is called a boundary: all ranks then have the state of the same step.
 *
 * Errors of reform and step: UNAVAILABLE: the crew has lost a member; call strategy_reform. STALE:
 * this process is superseded (exit 163). TIMEOUT: the crew is lost (160). CANCELLED: member_cancel
 * was called. Other errors come from device, data or checkpoint.
 */
#ifndef COXSWAIN_STRATEGY_STRATEGY_H
#define COXSWAIN_STRATEGY_STRATEGY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"
#include "common/job/job_document.h"
#include "worker/comm/collective.h"
#include "worker/coordination/member.h"

#define STRATEGY_DEVICES_MAX 64 /* of one process */

struct communicator_capabilities;
struct dataset;
struct device;
struct peer_hub;
struct graph;
struct sampler;
struct loss_sums;
struct memory_plans;
struct preflight_figures;
struct strategy;
struct training_state;

/* A device of this process and the model planned on it. */
struct strategy_device {
    struct device *device;
    struct graph *graph;
};

/* Text that names the checkpoint on which ranks agree; "": none, start with initial weights. */
#define STRATEGY_BASE_MAX 128

/* What a strategy calls. Unless it says otherwise, a function may not be NULL. */
struct strategy_calls {
    /* Fills `state` from a checkpoint or with initial weights. strategy_reform calls it, only in the chief or the lone worker, if no
     * live replica holds the state. */
    int (*restore)(void *context, struct error *error);
    /* Like `restore`, for strategies in which each rank holds a part of the state (Pipeline): restores this rank's part into the fresh
     * `state`. The chief is called first, with `chooses`, and writes the name of its choice to `base`; the other ranks then get this
     * `base`. */
    int (*restore_part)(void *context, bool chooses, char base[STRATEGY_BASE_MAX], struct error *error);
    /* Pipeline: learns the stage of each layer before the stages are allocated; fails if this process has too little memory for its
     * stages. May be NULL. */
    int (*check_stages)(void *context, const unsigned *stages, unsigned layers, struct error *error);
    /* For strategies whose strategy_step takes several steps: the learning rate of a step, and this rank's votes at the moment. */
    double (*learning_rate)(void *context, int64_t step);
    unsigned (*votes)(void *context);
    /* Called before `state` changes. Returns once nobody reads the state of the last boundary any more. May be NULL. */
    void (*before_change)(void *context);
    /* During a step, another thread may abandon it and save the state of the last boundary (strategy_stand_at_boundary), except between
     * a call of leaves_boundary and the next one of at_boundary. If a thread is already abandoning the step, leaves_boundary does not
     * return. May be NULL. */
    void (*leaves_boundary)(void *context);
    void (*at_boundary)(void *context);
    /* Report that a rank waits for another one, what users may want to know, and what they should know. The last two may be NULL. */
    void (*on_stall)(void *context, const char *text);
    void (*on_notice)(void *context, const char *text);
    void (*on_warning)(void *context, const char *text);
    void *context; /* the first argument of all of them */
};

/* The processes that train together. */
struct strategy_crew {
    struct member *member; /* NULL: a crew of one */
    struct endpoint *endpoint;
    const char *job_uid;
    enum collective_type collective;
    enum collective_transport transport;
    uint64_t machine;            /* identifies this machine, for Hierarchical; 0: crew_nodes_machine() */
    unsigned size, rank;         /* number of seats, taken or not, and this process's; 0 and 0: a crew of one */
    unsigned expected;           /* members that memory plans count with; 0: all seats */
    int64_t step_deadline_ms;    /* 0: 300 s without progress */
    int64_t connect_deadline_ms; /* for connecting the members of a new generation; 0: 60 s */
    int64_t stall_ms;            /* 0: 30 s */
};

/* How gradients (in a Pipeline, values between stages) are summed. */
struct strategy_sums {
    /* Whether the job lets them go from device to device, for Mirrored, MultiWorkerMirrored, Pipeline and the devices of one PeerToPeer
     * worker. The job is the same in all ranks; they then ask each other whether their devices can do it. */
    bool may_use_devices;
    /* What each device of this process can do for it (device/communicator.h); NULL: nothing. */
    const struct communicator_capabilities *communicator;
    bool in_any_order;   /* determinism Run: sums between devices need not follow the tree */
    bool wait_for_pass;  /* MultiWorkerMirrored: begin no sum before the backward pass is complete */
    bool gradients_stay; /* set by a strategy for its replicas: allocate gradients in the device's own memory */
};

/* Pipeline. The options' `graph` only describes the whole model, and their `devices` have no graphs. A memory plan covers the stages
 * that the job or a checkpoint gives. */
struct strategy_pipeline {
    const struct model_spec *model;
    unsigned stages; /* 0: as many as the crew has devices */
    bool recompute;
    /* The stage of each layer in the checkpoint to resume from; NULL: unknown. Read by strategy_open. */
    const unsigned *recorded_stages;
    unsigned recorded_layers;
};

/* PeerToPeer. */
struct strategy_peers {
    struct peer_hub *hub; /* instead of the crew's endpoint */
    unsigned seat;        /* this process's */
    int64_t grace_ms;     /* time between a vote to leave and SIGKILL; 0: no limit */
    /* strategy_finished for each seat as of the checkpoint that `restore` reads; all 0: unknown. */
    const int64_t *restored_finished;
};

/* All pointers are borrowed; what they point to must outlive the strategy. */
struct strategy_options {
    enum strategy_type type;
    const struct strategy_spec *spec; /* the type's own options; NULL: none given */
    struct device *device;            /* the first device, where `state` is */
    struct graph *graph;
    const struct strategy_device *devices; /* all devices of this process, the first included; NULL: it has one */
    unsigned device_count;
    struct dataset *dataset; /* training examples */
    const struct sampler *sampler;
    const struct optimizer_spec *optimizer;
    struct training_state *state;
    int64_t global_batch;
    unsigned logical_shards;
    double gradient_clip_norm;  /* 0: no clipping */
    const int64_t *total_steps; /* the number of the last step; read after strategy_reform; NULL: unknown */
    bool
        waits_for_device; /* OneDevice: wait for the device in each step, although it could run ahead (replica_ahead.h) */
    bool launches_singly; /* launch each operation by itself, although the device can record launches */
    struct strategy_calls calls;
    struct strategy_sums sums;
    struct strategy_crew crew; /* of strategies with several processes */
    struct strategy_pipeline pipeline;
    struct strategy_peers peers;
};

/* A rank's requests to the crew. Votes travel with the step's control words, so that all ranks learn them at the same boundary. */
enum strategy_vote {
    STRATEGY_VOTE_LEAVE = 1,      /* this rank got SIGTERM and leaves at the boundary */
    STRATEGY_VOTE_CHECKPOINT = 2, /* save at this boundary; done if the chief and all other ranks vote for it */
    STRATEGY_VOTE_REFORM = 4,     /* form the crew anew at this boundary, because a member joins or leaves */
};
#define STRATEGY_VOTE_BITS 3

struct strategy_result {
    int64_t step;         /* the state's step after the call */
    int64_t examples;     /* in the global batch, or in the batches of all steps taken */
    double loss;          /* mean over the examples */
    double gradient_norm; /* of the whole gradient, before clipping */
    double count_factor;  /* by which the passes' gradients are multiplied, since some targets do not count; else 1 */
    int64_t correct;      /* right predictions, of `examples` (or targets) */
    bool skipped;         /* float16: the gradient is not finite, so only the position has changed */
    unsigned leaving;     /* ranks that voted to leave */
    bool leaves[CREW_SIZE_MAX];
    int64_t own_ns
        [CREW_SIZE_MAX]; /* by rank: time for its own part of the step, without waiting for others; 0: not measured */
    /* Steps measured (0: one). With several, own_ns is the mean of all except the longest, which longest_ns gives. */
    int64_t own_steps;
    int64_t longest_ns[CREW_SIZE_MAX];
    bool checkpoint;             /* all ranks voted for one */
    unsigned checkpoint_held_by; /* if rank 0 voted for one: the lowest rank that did not; 0: none */
    bool reform;                 /* a rank voted for it: call strategy_reform before the next step */
};

/* Returns a rank's word: its votes, and the time for its own part in tenths of a millisecond. A
 * float32 represents it exactly. */
unsigned strategy_vote_word(unsigned votes, int64_t own_ns);
/* Fills the fields of a result that come from votes and own_ns, from the words of all ranks. */
void strategy_result_votes(struct strategy_result *result, const float *words, unsigned size);
/* Fills longest_ns from the words of all ranks, which hold no votes. */
void strategy_result_longest(struct strategy_result *result, const float *words, unsigned size);
/* Checks the loss and gradient norm of a step. If one is not finite: fails with ERROR_NOT_FINITE and a message that says what to change or,
 * with float16, sets result->skipped as long as the loss scale can be lowered. All ranks have the same values and so decide alike. */
int strategy_judge(const struct strategy_options *options, struct strategy_result *result, struct error *error);

/* For strategies: returns the factor by which losses, and so gradients, of the state's next step are
 * multiplied; 1 if they are not scaled. */
double strategy_loss_scale(const struct strategy_options *options);
/* Returns the same factor in the form that passes and begin_step take: 0 if losses are not scaled. */
float strategy_loss_scale_for_passes(const struct strategy_options *options);

/* For strategies, before a step's first change to the state: waits until nobody reads the state, and
 * forbids other threads to abandon the step from now on. */
void strategy_leave_boundary(const struct strategy_options *options);
/* Forbids other threads to abandon the step, without changing the state, and allows it again. */
void strategy_hold_step(const struct strategy_options *options);
void strategy_release_step(const struct strategy_options *options);

/* Returns whether the strategy creates `state` itself, once it knows which part of the model each process and device holds: a Pipeline
 * of several workers, or of several devices with memory of their own. */
bool strategy_makes_state(enum strategy_type type, unsigned crew_size, const struct device *device,
                          unsigned device_count);

/* Adds what the strategy will allocate beside `graph`, the devices' graphs and `state`: gradients, batches, further copies of the
 * variables, further graphs, and `state` if strategy_makes_state. Called before strategy_open; the graph may be one without memory, and
 * data set, state and member are not read. */
void strategy_memory_plan(const struct strategy_options *options, struct memory_plans *plans);

/* Creates the strategy of options->type. Does not join the crew. */
int strategy_open(const struct strategy_options *options, struct strategy **ret_strategy, struct error *error);
void strategy_close(struct strategy *strategy);

/* Forms the crew, or forms it again, and brings every replica to the same state. May be called at any boundary. */
int strategy_reform(struct strategy *strategy, struct error *error);

/* Takes one optimizer step at the state's position in the data, or as many as the strategy takes
 * between two exchanges. `votes`: this rank's strategy_vote flags. */
int strategy_step(struct strategy *strategy, double learning_rate, unsigned votes, struct strategy_result *ret_result,
                  struct error *error);

/* Measures this rank and its connections before the first step, and fills ret_figures[0..CREW_SIZE_MAX) with what all ranks have measured
 * (preflight.h). `fault` makes this rank's figures wrong for tests (preflight_measure); NULL: none. All ranks must call it after
 * strategy_reform. Not for loose strategies. */
int strategy_preflight(struct strategy *strategy, const char *fault, struct preflight_figures *ret_figures,
                       struct error *error);

/* Waits for work that a step has left running on the devices. Call it before reading parameters
 * there or using a graph. */
int strategy_settle(struct strategy *strategy, struct error *error);

/* Sets values[i] to the sum over all ranks, for small host vectors (evaluation). The sum is exact, and the same for any crew, if for
 * each i only one rank adds a value other than 0, or if all values are integers below 2^53. */
int strategy_sum(struct strategy *strategy, double *values, unsigned count, struct error *error);
/* Returns whether the strategy evaluates the model itself, because no process need hold all of it. strategy_evaluate then sums the
 * losses over held-out examples [first, first + count). For other strategies see evaluation.h. */
bool strategy_evaluates(const struct strategy *strategy);
int strategy_evaluate(struct strategy *strategy, const struct dataset *dataset, int64_t first, int64_t count,
                      struct loss_sums *ret_sums, struct error *error);
/* Returns the step of the state before the last strategy_step: the present step - 1, or less for a strategy that takes several steps in one
 * call. The same in all ranks. */
int64_t strategy_step_before(const struct strategy *strategy);
/* Returns how many steps the last strategy_step had taken when it failed; they are undone and must be
 * taken again. */
int64_t strategy_steps_abandoned(const struct strategy *strategy);
/* Abandons a running step or evaluation, from another thread: `state` is that of the last boundary from now on, and the step cannot
 * continue. */
void strategy_stand_at_boundary(struct strategy *strategy);
/* Ends this rank's part in the crew's communication, from another thread. All other ranks learn of it
 * at once, even while they wait. */
void strategy_break_off(struct strategy *strategy);
/* Returns whether everything that this rank has to save belongs to one step. False while the state is being received from other ranks
 * or redistributed. */
bool strategy_is_whole(const struct strategy *strategy);
/* Sets which blocks of held-out examples this process evaluates: of every `count` blocks, number `index`. */
void strategy_evaluation_part(const struct strategy *strategy, unsigned *ret_index, unsigned *ret_count);

/* Returns the number of ranks (the lowest ones) that hold a part of the state each and save it; 1: rank
 * 0 holds all of it. */
unsigned strategy_writers(const struct strategy *strategy);
/* Returns whether every rank has all parameters. */
bool strategy_has_gathered_model(const struct strategy *strategy);
/* Collects all parameters in rank 0's `whole`, in the layout of options.graph; other ranks pass NULL. All ranks must call it. Only for
 * strategies without strategy_has_gathered_model. */
int strategy_gather(struct strategy *strategy, float *whole, struct error *error);
/* Returns a number that is the same for ranks that do the same work, so that their times can be
 * compared; 0 for all ranks of most strategies. */
unsigned strategy_kin(const struct strategy *strategy, unsigned rank);
/* Appends a description of the last step; nothing for most strategies. All ranks must call it at the same step. */
int strategy_describe(struct strategy *strategy, struct buffer *text, struct error *error);
/* Pipeline: returns the stage of each layer, and sets *ret_layers to the number of layers. The array belongs to the strategy, and holds
 * until strategy_reform or strategy_close. NULL for other strategies, and while the stages are not known. */
const unsigned *strategy_stages(const struct strategy *strategy, unsigned *ret_layers);

/* Waits until all ranks have received what this rank has sent in the last step, or the crew is broken, which the next call reports. All
 * ranks call it after a step at which a member leaves or the crew forms anew. The state stays that of the boundary. */
void strategy_await_delivery(struct strategy *strategy);

/* Returns when every rank has called it, without a time limit, since a rank may have to store something first. Loose strategies call it
 * at the end of the run: the other ranks wait until the chief calls it. */
int strategy_meet(struct strategy *strategy, struct error *error);

/* Broadcasts rank 0's bytes to all ranks: choices that the chief makes for everyone. */
int strategy_share(struct strategy *strategy, void *bytes, size_t length, struct error *error);

/* Returns whether each rank goes at its own pace (PeerToPeer). Then replicas differ, only the chief evaluates and saves,
 * strategy_reform is called once and strategy_sum never. */
bool strategy_is_loose(const struct strategy *strategy);
/* Loose strategies (strategy_is_loose): strategy_average_begin makes the chief's state the mean of all replicas that it can reach,
 * and strategy_average_end restores the chief's own state. */
int strategy_average_begin(struct strategy *strategy, struct error *error);
void strategy_average_end(struct strategy *strategy);
/* Returns the number of replicas in the last mean, and sets *ret_of to the number that it should have had; 0 and 0: there was no
 * mean. */
unsigned strategy_averaged(const struct strategy *strategy, unsigned *ret_of);

/* Loose strategies: returns how many examples a seat's members have finished, as far as this rank knew when the state's progress was
 * last updated. */
int64_t strategy_finished(const struct strategy *strategy, unsigned seat);

/* Returns the world as of the last reform; rank 0 of 1 for strategies of one process. */
const struct world *strategy_world(const struct strategy *strategy);

#endif
