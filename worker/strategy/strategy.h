/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs training steps by a distribution strategy, which divides each step among devices and
 * processes. The training loop uses only these functions; each strategy is a file.
 *
 *     strategy_open(options)
 *     strategy_reform          join the crew, agree on the state, get it
 *     strategy_step …          until one fails with ERROR_UNAVAILABLE: strategy_reform again
 *     strategy_close
 *
 * A step that fails has changed nothing: parameters, slots and the position in the data change
 * together, after every gradient of the step is reduced.
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

struct communicator_standing;
struct dataset;
struct device;
struct peer_hub;
struct graph;
struct sampler;
struct loss_sums;
struct memory_plans;
struct strategy;
struct training_state;

/* A device of this process and the model planned on it. */
struct strategy_device {
    struct device *device;
    struct graph *graph;
};

/* A text by which ranks agree on a checkpoint; "": a fresh start. */
#define STRATEGY_BASE_MAX 128

/* All borrowed; they outlive the strategy. */
struct strategy_options {
    enum strategy_type type;
    enum collective_type collective;
    struct device *device; /* the first, where `state` lives */
    struct graph *graph;
    const struct strategy_device
        *devices; /* all of this process, the first again among them; NULL: it is the only one */
    unsigned device_count;
    struct dataset *dataset; /* training examples */
    const struct sampler *sampler;
    const struct strategy_spec *spec; /* the type's own options; NULL: none given */
    const struct optimizer_spec *optimizer;
    struct training_state *state;
    int64_t global_batch;
    unsigned logical_shards;
    double gradient_clip_norm; /* 0: no clipping */
    const int64_t
        *total_steps; /* the last one's number, once strategy_reform has told where the run stands; NULL: nobody says */

    /* For strategies whose strategy_step takes several steps: the learning rate of a step, and this rank's votes now. */
    double (*learning_rate)(void *context, int64_t step);
    unsigned (*votes)(void *context);

    /* Pipeline: `graph` plans no pass, `devices` have none; a memory plan is that of stages which are given or recorded. */
    const struct model_spec *model;
    unsigned stages; /* 0: one on every device of the crew */
    bool recompute;
    unsigned crew_size, crew_rank; /* the seats, taken or not; 0 and 0: a crew of one */
    unsigned expected;             /* of them, for memory plans; 0: all */
    /* Where each layer runs, as the checkpoint to go on from says; NULL: nothing is known. Read during strategy_open. */
    const unsigned *recorded_stages;
    unsigned recorded_layers;
    /* As `restore`, in every rank, each for what it holds (`state` is fresh). The chief chooses, and writes into `base` what the
     * others are then given. */
    int (*restore_part)(void *context, bool chooses, char base[STRATEGY_BASE_MAX], struct error *error);
    /* Where each layer runs from now on; before anything of the stages is allocated: whether there is room for them here. May be
     * NULL. */
    int (*check_stages)(void *context, const unsigned *stages, unsigned layers, struct error *error);

    /* Strategies of more than one process: */
    struct member *member; /* NULL: a crew of one */
    struct endpoint *endpoint;
    struct peer_hub *hub; /* PeerToPeer, instead of the endpoint */
    unsigned seat;        /* PeerToPeer: ours */
    int64_t grace_ms;     /* PeerToPeer: from a vote to leave until the process is killed; 0: no end */
    const int64_t *
        restored_finished; /* PeerToPeer: strategy_finished of the checkpoint that `restore` takes, by seat; all 0: not known */
    const char *job_uid;
    enum collective_transport transport;
    uint64_t machine;            /* which this one is, for Hierarchical; 0: found out */
    bool waits_for_device;       /* OneDevice: in each step, although the device could go on by itself */
    bool launches_singly;        /* likewise: each operation, although the device can record them */
    bool sums_wait_for_pass;     /* MultiWorkerMirrored: no sum begins before the whole backward pass is over */
    int64_t step_deadline_ms;    /* 0: 300 s without progress */
    int64_t connect_deadline_ms; /* of a new generation's mesh; 0: 60 s */
    int64_t stall_ms;            /* 0: 30 s */
    void (*on_stall)(void *context, const char *text);
    void (*on_notice)(void *context, const char *text);  /* what people may want to know, once; may be NULL */
    void (*on_warning)(void *context, const char *text); /* what they should know; may be NULL */

    /* Mirrored, MultiWorkerMirrored, Pipeline, and PeerToPeer's own devices: by the job, which is everybody's, gradients (what crosses between stages) may go
     * from device to device; then ranks ask each other whether they can. What this one's devices can do, one after another
     * (device/communicator.h); NULL: they cannot. */
    bool may_sum_on_devices;
    const struct communicator_standing *communicator;
    bool in_any_order;   /* determinism Run: such sums need not follow the tree */
    bool gradients_stay; /* they are wanted in the device's own memory: a strategy's word to its replicas */

    /* Called by strategy_reform when no live replica holds the state: fills `state` from a checkpoint or by initialisation.
     * Only in the chief (or the lone worker). */
    int (*restore)(void *context, struct error *error);
    /* Called before anything in `state` changes: until it returns, somebody may still be reading the last boundary's bytes. May be
     * NULL. */
    void (*before_change)(void *context);
    /* In a step the last boundary's state is still to be had (strategy_stand_at_boundary), until the first of these is called, which
     * does not return where somebody gives the step up; and again once the second is. May be NULL. */
    void (*leaves_boundary)(void *context);
    void (*at_boundary)(void *context);
    void *context;
};

/* What a rank wants of the crew; travels with the step's control word, so that all learn it at
 * the same boundary. */
enum strategy_vote {
    STRATEGY_VOTE_LEAVE = 1,      /* SIGTERM: this rank leaves at the boundary */
    STRATEGY_VOTE_CHECKPOINT = 2, /* save at this boundary: the chief asks, the others could; it takes all of them */
    STRATEGY_VOTE_REFORM = 4,     /* form the crew anew at this boundary: somebody comes or goes */
};
#define STRATEGY_VOTE_BITS 3

struct strategy_result {
    int64_t step;         /* applied by this call: the state's step now */
    int64_t examples;     /* in the global batch, or in all of them */
    double loss;          /* mean over these */
    double gradient_norm; /* of the whole gradient, before clipping */
    int64_t correct;      /* predictions that hit, of `examples` (or targets) */
    bool skipped;         /* float16: the gradient is not finite, and nothing but the position has changed */
    unsigned leaving;     /* ranks that voted to leave */
    bool leaves[CREW_SIZE_MAX];
    int64_t own_ns[CREW_SIZE_MAX]; /* by rank: what it took over its own part, waiting for nobody; 0: not measured */
    int64_t own_steps; /* so many parts (0: one): own_ns is then the mean of all but the longest, which took: */
    int64_t longest_ns[CREW_SIZE_MAX];
    bool checkpoint;             /* all voted for one */
    unsigned checkpoint_held_by; /* where rank 0 did, the lowest that did not; 0: nobody */
    bool reform;                 /* somebody voted for it: call strategy_reform before the next step */
};

/* A rank's word: its votes, and how long its own part has taken, in tenths of a millisecond. A
 * float32 holds it exactly. */
unsigned strategy_vote_word(unsigned votes, int64_t own_ns);
/* The part of a result that comes from everybody's words, one a rank. */
void strategy_result_votes(struct strategy_result *result, const float *words, unsigned size);
/* Likewise longest_ns, from words without votes. */
void strategy_result_longest(struct strategy_result *result, const float *words, unsigned size);
/* ERROR_NOT_FINITE, with a remedy, unless loss and norm are numbers; with float16 the step is
 * skipped instead (`skipped`), as long as the scale of the loss can be lowered. Every rank has
 * the same and comes to the same verdict. */
int strategy_judge(const struct strategy_options *options, struct strategy_result *result, struct error *error);

/* For strategies: by what the losses of the state's next step are multiplied, and its gradients
 * with them; 1: by nothing. */
double strategy_loss_scale(const struct strategy_options *options);
/* Likewise, as passes and begin_step are told it: 0 where losses are not scaled. */
float strategy_loss_scale_told(const struct strategy_options *options);

/* For strategies, before a step's first change to the state: from here on nobody reads it, or
 * gives the step up. */
void strategy_leave_boundary(const struct strategy_options *options);
/* Likewise, where the state does not change: from here on nobody gives the step up; and then,
 * from here on somebody may. */
void strategy_hold_step(const struct strategy_options *options);
void strategy_let_step_go(const struct strategy_options *options);

/* Whether the strategy makes `state` itself once it is known which part of the model each of its
 * holders has: a Pipeline of several workers, or of several devices with memory of their own. */
bool strategy_makes_state(enum strategy_type type, unsigned crew_size, const struct device *device,
                          unsigned device_count);

/* Adds what the strategy will allocate beside `graph`, the devices' graphs and `state`:
 * gradients, batches, more sets of variables and graphs, and `state` where strategy_makes_state.
 * Before strategy_open, of a graph that need have no memory; data set, state and member are not
 * read. */
void strategy_memory_plan(const struct strategy_options *options, struct memory_plans *plans);

int strategy_open(const struct strategy_options *options, struct strategy **ret_strategy, struct error *error);
void strategy_close(struct strategy *strategy);

/* Forms (or re-forms) the crew and brings every replica to the same state; fine to call when all
 * is well. */
int strategy_reform(struct strategy *strategy, struct error *error);

/* One optimizer step at the state's position in the data, or as many as the strategy takes
 * between two exchanges. `votes`: this rank's, or-ed together. */
int strategy_step(struct strategy *strategy, double learning_rate, unsigned votes, struct strategy_result *ret_result,
                  struct error *error);

/* Waits for what a step has left under way on the devices: before somebody else reads parameters
 * there or uses a graph. */
int strategy_settle(struct strategy *strategy, struct error *error);

/* values[i] becomes the sum over all ranks, for small host vectors (evaluation). Exact, and the
 * same for any crew, when for each i only one rank adds something other than 0, or when all are
 * integers below 2^53. */
int strategy_sum(struct strategy *strategy, double *values, unsigned count, struct error *error);
/* Whether the strategy evaluates itself, since no process need hold the whole model. Then
 * strategy_evaluate gives the sums over held-out examples [first, first + count); evaluation.h
 * does for the others. */
bool strategy_evaluates(const struct strategy *strategy);
int strategy_evaluate(struct strategy *strategy, const struct dataset *dataset, int64_t first, int64_t count,
                      struct loss_sums *ret_sums, struct error *error);
/* The step at which the last strategy_step that could end at the state's step began: step - 1
 * for most. The same for all ranks. */
int64_t strategy_step_before(const struct strategy *strategy);
/* Steps that the last strategy_step had taken when it failed and took them back: they are done
 * again. */
int64_t strategy_steps_abandoned(const struct strategy *strategy);
/* For a step, or an evaluation, that is given up while it is under way, from another thread: the
 * state is that of the last boundary from here on; there is no way back into the step. */
void strategy_stand_at_boundary(struct strategy *strategy);
/* Likewise: this rank takes no further part in what the crew does, and all others hear of it at
 * once, whatever they wait for. */
void strategy_break_off(struct strategy *strategy);
/* Whether all that this rank has to save is of one step: not while it is copied from others, or
 * shared out among them. */
bool strategy_is_whole(const struct strategy *strategy);
/* The held-out blocks are dealt to `count` parts in turn; this process's is `index`. */
void strategy_evaluation_part(const struct strategy *strategy, unsigned *ret_index, unsigned *ret_count);

/* Ranks below this one hold a part of the state each, and save it; 1: rank 0 holds all of it. */
unsigned strategy_writers(const struct strategy *strategy);
/* Whether every rank has all parameters, whatever else it has only a part of. */
bool strategy_has_whole_model(const struct strategy *strategy);
/* All parameters into rank 0's `whole`, which is laid out as options.graph says; others pass
 * NULL. Called by all ranks, only where they have not the whole model. */
int strategy_gather(struct strategy *strategy, float *whole, struct error *error);
/* Ranks with the same number do the same work, so that how long they take over it can be
 * compared; 0 for all of most. */
unsigned strategy_kin(const struct strategy *strategy, unsigned rank);
/* How the last step went, for people; nothing for most. Called by all ranks at the same step. */
int strategy_describe(struct strategy *strategy, struct buffer *text, struct error *error);
/* Where each layer runs, or NULL. */
const unsigned *strategy_stages(const struct strategy *strategy, unsigned *ret_layers);

/* After a step behind which somebody leaves or the crew forms anew, by all ranks: returns when
 * all have what this rank has sent in it, or when the crew is broken, which the next call says.
 * The state is the boundary's all the while. */
void strategy_await_delivery(struct strategy *strategy);

/* Returns when every rank has called it, however long one of them has something to store first.
 * Of loose strategies it is the end of the run: ranks wait for the chief, the chief releases
 * them. */
int strategy_meet(struct strategy *strategy, struct error *error);

/* Rank 0's bytes to all (choices that the chief makes for everyone). */
int strategy_share(struct strategy *strategy, void *bytes, size_t length, struct error *error);

/* Whether each rank goes at its own pace (PeerToPeer): then replicas differ, only the chief
 * evaluates and saves, and strategy_reform is called once, and strategy_sum never. */
bool strategy_is_loose(const struct strategy *strategy);
/* Loose strategies: between the two calls the chief's state is the mean of all replicas that can
 * be reached. */
int strategy_average_begin(struct strategy *strategy, struct error *error);
void strategy_average_end(struct strategy *strategy);
/* Replicas in the last mean, and those that there were to be reached; 0 and 0: none was taken. */
unsigned strategy_averaged(const struct strategy *strategy, unsigned *ret_of);

/* Loose strategies: the examples that a seat's members have finished, as far as was known here
 * when the state's progress was last told. */
int64_t strategy_finished(const struct strategy *strategy, unsigned seat);

/* The world as of the last reform; rank 0 of 1 for strategies of one process. */
const struct world *strategy_world(const struct strategy *strategy);

#endif
