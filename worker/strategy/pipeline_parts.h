/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the internals of the Pipeline strategy, in which each device computes one stage (some of the layers) of the
 * model, for the files that together implement it. Only they include this header.
 *
 *     pipeline.c            the strategy
 *     pipeline_lane.c       a lane: a device and the thread that runs its actions
 *     pipeline_unit.c       a unit: one part of a stage, in one replica
 *     pipeline_share.c      a share: what this process has of one replica
 *     pipeline_store.c      a store: the gradients of the stages that share one memory
 *     pipeline_passing.c    values and gradients that cross between parts
 *     pipeline_direct.c     the same between processes, from GPU to GPU by NCCL
 *     pipeline_crew.c       forming the crew
 *     pipeline_exchange.c   what processes exchange in a step
 *     pipeline_update.c     the reduced gradient and the optimizer's step
 *     pipeline_memory.c     the memory plan
 *     pipeline_report.c     the description of a step
 *
 * Devices are numbered replica by replica, and within a replica stage by stage: device d runs stage d mod S of replica d / S. Process p
 * has the devices [p D, (p + 1) D), where D is the number of devices of each process.
 */
#ifndef COXSWAIN_STRATEGY_PIPELINE_PARTS_H
#define COXSWAIN_STRATEGY_PIPELINE_PARTS_H

#include <pthread.h>

#include "worker/comm/transfer.h"
#include "worker/device/device.h"
#include "worker/model/graph.h"
#include "worker/model/graph_stage.h"
#include "worker/model/partition.h"
#include "worker/strategy/pipeline_schedule.h"
#include "worker/strategy/reduction_tree.h"
#include "worker/strategy/replica.h"
#include "worker/strategy/strategy_table.h"

struct crew_communicator;
struct device_sums;
struct pipeline;
struct pipeline_direct;

struct pipeline_shape {
    unsigned stages, replicas;
    unsigned devices; /* of each process */
    unsigned rank;    /* of this process */
    unsigned size;    /* processes */
};

/* Returns how many processes hold one replica together. Processes hold the same stages if their ranks differ by a multiple of it. */
static inline unsigned pipeline_span_of(const struct pipeline_shape *shape)
{
    return shape->stages > shape->devices ? shape->stages / shape->devices : 1;
}

/* Channels of transfers. Those of values and gradients have lower numbers. */
enum pipeline_channel {
    CHANNEL_STATE = 65000,
    CHANNEL_CONTRIBUTION,
    CHANNEL_RESULT,
    CHANNEL_GATHER,
    CHANNEL_TABLE,
};

/* Return the device that runs a stage of a replica, and the rank of its process. */
static inline unsigned pipeline_device_of(const struct pipeline_shape *shape, unsigned stage, unsigned replica)
{
    return replica * shape->stages + stage;
}

static inline unsigned pipeline_rank_of(const struct pipeline_shape *shape, unsigned stage, unsigned replica)
{
    return pipeline_device_of(shape, stage, replica) / shape->devices;
}

/* The examples of one micro-batch. */
struct pipeline_piece {
    int64_t offset, count, first; /* position in the share's batch, number, position in the global batch */
};

struct pipeline_batch {
    bool filled;
    int64_t data_epoch, position; /* of the global batch */
    void *inputs, *targets;
};

/* The part of one replica that this process has, and its logical shards. Each shard is a micro-batch. */
struct pipeline_share {
    unsigned replica;
    unsigned first, end; /* shards */
    bool reads;          /* a stage here reads the inputs or the targets */
    bool begins;         /* the first part is here */
    struct reduction_subtree cover[REDUCTION_COVER_MAX];
    unsigned cover_count;
    float *host_gradients
        [REDUCTION_COVER_MAX]; /* what is sent to other processes, in the layout of all stages of this process */
    struct loss_sums *sums;    /* by micro-batch; filled by the stage that computes the loss */
    struct pipeline_batch batches[2];
    unsigned current;
    int64_t *indices;
    int64_t max_examples;
    struct pipeline_piece *pieces; /* of the run under way */
    unsigned piece_count, piece_capacity;
    const struct pipeline_batch *batch;
    struct pipeline_unit **units;        /* by part; NULL: in another process */
    struct pipeline_timetable timetable; /* of the run under way */
};

/* The gradients of the stages that share one memory, and the part of the state that holds their parameters. On CPUs and with a single
 * GPU, all lanes of a share use one store, and all shares use the parameters of the first. With several GPUs, each lane has its own store
 * and its own part of the state. */
struct pipeline_store {
    struct pipeline_share *share;
    unsigned part; /* of the state */
    struct device *device;
    struct device_stream *stream; /* for the update and for copies */
    bool holds[STAGES_MAX];       /* which stages */
    const struct parameter_layout *layout;
    float *gradients[REDUCTION_COVER_MAX];
    float *partial[REDUCTION_DEPTH_MAX]; /* partial sums above slot 0 */
};

/* Progress of a crossing in this run: the number of micro-batches that its maker has written, and that its reader has taken. */
struct pipeline_passage {
    unsigned posted, taken;
};

/* A part of a stage of one replica. */
struct pipeline_unit {
    struct pipeline *pipeline;
    const struct pipeline_lane *lane;
    struct pipeline_share *share;
    struct pipeline_store *store;
    unsigned part, stage;
    struct device *device;
    struct device_stream *stream; /* the lane's */
    struct graph *graph;
    struct graph_bucket *ranges; /* of its parameters, in the store's layout */
    unsigned range_count;
    unsigned slots;
    struct pipeline_passage *values_out, *gradients_out; /* by crossing */
    const void **values, **gradients;                    /* by crossing: the incoming data */
    /* By crossing, values first: memory for data from other processes, and for other GPUs' gradients that are added to own ones. */
    void **arrivals;
    struct transfer *departures; /* by crossing and slot, values first: sends to other processes */
    void **outgoing; /* the data of each, copied to where the host can read it; NULL: the host reads the original */
};

/* A device of this process and its thread, which runs the actions of one stage of one replica in the timetable's order. */
struct pipeline_lane {
    struct pipeline *pipeline;
    struct pipeline_share *share;
    struct pipeline_store *store;
    unsigned stage;
    struct device *device;
    struct device_stream *stream;
    struct crew_communicator *devices; /* this device's view of the crew's; NULL: everything goes through the host */
    struct pipeline_direct *direct;    /* crossings to and from other processes; NULL: through the host */
    struct device_sums *sums; /* sums of its stage's gradients; NULL: through the host, or there is one replica */
    struct pipeline_span *spans;
    unsigned span_count;
    int64_t computed_ns; /* when the device finished the current action */
    pthread_t thread;
    bool has_thread;
    struct error error; /* of the last run */
};

/* A step that this process is about to apply: its gradients are reduced here, and only the last exchange or the update is missing. A
 * process that has completed the last exchange knows that all processes have come this far. If the crew is then lost, and others turn out
 * to have applied the step, this process applies it, too, so that no stage is a step behind the others. */
struct pipeline_verge {
    int64_t step;          /* 0: none */
    int64_t measured_step; /* the step to which `norm` belongs; 0: none */
    double learning_rate, norm;
};

struct pipeline {
    struct strategy base;
    struct pipeline_shape shape;
    struct graph_partition partition;
    bool plan_only;  /* for a memory plan: lanes, units, stores and shares have no memory */
    unsigned shards; /* in a crew: the logical shards for which the units were made */
    struct pipeline_unit *units;
    unsigned unit_count;
    struct pipeline_lane *lanes;
    unsigned lane_count;
    struct pipeline_share *shares;
    unsigned share_count;
    struct pipeline_store *stores; /* one for each share; with several GPUs, one for each lane */
    unsigned store_count;
    struct graph *held; /* with several GPUs: the layout of all stages of this process; else NULL */
    const struct graph_crossing *values, *gradients; /* the same in all units' graphs */
    unsigned value_count, gradient_count;
    struct reduction_plan *plan;
    int64_t examples;                  /* in the global batch of this step */
    int64_t read_ns;                   /* time for reading in this step */
    struct collective *group;          /* NULL: a crew of one */
    struct crew_communicator *devices; /* NULL: everything goes through the host */
    struct pipeline_blocks *blocks;    /* of the gradient's norm */
    struct pipeline_verge verge;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t run;     /* number of the current run; lanes begin when it rises */
    unsigned working; /* lanes that are not done */
    bool evaluates;   /* forward only */
    bool failed;      /* a lane has failed, so all lanes end the run */
    bool over;        /* the threads must end */
    float scale;
};

/* Returns whether each lane has memory of its own (several GPUs). Data that crosses between them is then copied, and the state is in
 * parts. */
static inline bool pipeline_is_parted(const struct pipeline *pipeline)
{
    return pipeline->shape.devices > 1 && !device_memory_is_shared(pipeline->base.options.device);
}

/* ---- pipeline_share.c */

/* Plans a share's micro-batches, its part of the tree and what it reads, once its units exist. pipeline_share_init then allocates its
 * memory, after the stores'. */
void pipeline_share_measure(const struct pipeline *pipeline, struct pipeline_share *share, unsigned replica);
/* Returns how many partial sums are needed beside those of the cover. */
unsigned pipeline_share_partial_sums(const struct pipeline_share *share);
/* Returns whether gradients are copied to memory that the host can read, because other processes or replicas need them. */
bool pipeline_copies_gradients(const struct pipeline *pipeline);
int pipeline_share_init(struct pipeline *pipeline, struct pipeline_share *share, struct error *error);
void pipeline_share_release(struct pipeline *pipeline, struct pipeline_share *share);
int64_t pipeline_batch_size(const struct pipeline *pipeline, int64_t position);
void pipeline_next_position(const struct pipeline *pipeline, int64_t *data_epoch, int64_t *position);
/* Returns the number of targets in the current global batch, by which its loss is divided. */
double pipeline_target_count(const struct pipeline *pipeline);
/* Reads the batch at a position, unless it was read ahead. `ahead`: reads it for the next step. */
int pipeline_share_read(struct pipeline *pipeline, struct pipeline_share *share, bool ahead, int64_t data_epoch,
                        int64_t position, struct error *error);
/* Cuts the current batch into micro-batches. */
void pipeline_share_cut(struct pipeline *pipeline, struct pipeline_share *share);
/* Cuts `examples` examples into pieces of up to `most`. */
void pipeline_share_cut_evenly(struct pipeline_share *share, int64_t examples, int64_t most);
struct pipeline_course pipeline_course_of(const struct pipeline *pipeline);
/* Plans the timetable of a run through the share's pieces. */
void pipeline_share_plan(const struct pipeline *pipeline, struct pipeline_share *share, bool evaluates);
/* Sums losses and right predictions over each subtree of the cover, in the order in which gradients are summed. */
void pipeline_share_controls(const struct pipeline_share *share, float (*ret_controls)[CONTROL_VOTES]);

/* ---- pipeline_store.c */

/* Allocates a store, once its units exist and its share is measured. */
int pipeline_store_init(struct pipeline_store *store, struct error *error);
void pipeline_store_release(struct pipeline_store *store);
/* pipeline_stores_to_host copies all gradients to host_gradients. pipeline_stores_from_host copies the first share's first host gradient
 * back to the stores that update parameters. */
int pipeline_stores_to_host(struct pipeline *pipeline, struct error *error);
int pipeline_stores_from_host(struct pipeline *pipeline, struct error *error);
/* Copy only tied embeddings, in the first share's first gradient: the tables that other layers borrow, to the host; and the copies of these
 * tables, back to the stores. */
int pipeline_stores_tables_to_host(struct pipeline *pipeline, struct error *error);
int pipeline_stores_tables_from_host(struct pipeline *pipeline, struct error *error);
/* Copies the summed gradients of borrowed tables to the stores of this process that have copies of the tables. */
int pipeline_stores_give_tables(struct pipeline *pipeline, struct error *error);
/* Returns how many of the stores, the first ones, update parameters. */
unsigned pipeline_updating_store_count(const struct pipeline *pipeline);
/* Waits for everything on the stores' streams. */
int pipeline_stores_synchronise(struct pipeline *pipeline, struct error *error);

/* ---- pipeline_unit.c */

int pipeline_unit_init(struct pipeline *pipeline, struct pipeline_unit *unit, const struct pipeline_lane *lane,
                       unsigned part, struct error *error);
void pipeline_unit_release(struct pipeline_unit *unit);
/* Queues the action's pass on the lane's stream. */
int pipeline_unit_launch(struct pipeline_unit *unit, struct pipeline_action action, struct error *error);

/* ---- pipeline_lane.c */

int pipeline_lane_init(struct pipeline *pipeline, struct pipeline_lane *lane, unsigned stage,
                       struct pipeline_store *store, struct device *device, struct error *error);
/* Starts the lane's thread, once the units exist. */
int pipeline_lane_start(struct pipeline_lane *lane, struct error *error);
/* Joins the thread. Set `over` and broadcast `changed` before. */
void pipeline_lane_stop(struct pipeline_lane *lane);
void pipeline_lane_release(struct pipeline_lane *lane);
/* Starts a run: all lanes work through their shares' pieces. The caller may do other work before pipeline_await. */
void pipeline_start(struct pipeline *pipeline, bool evaluates, float scale);
int pipeline_await(struct pipeline *pipeline, struct error *error);
/* Returns how long this process worked on the last run without waiting for others: the time of its busiest lane, or of reading. */
int64_t pipeline_own_ns(const struct pipeline *pipeline);

/* ---- pipeline_passing.c */

/* Returns the most bytes that a crossing has. */
size_t pipeline_passing_bytes(const struct pipeline *pipeline, const struct graph_crossing *crossing);
/* Returns whether a crossing (by its number, values first) from another unit of this process is copied to the unit's own memory before
 * the pass, because the pass adds it to a gradient on another GPU. Data that a pass only copies is read where it was made. */
bool pipeline_passing_has_arrival(const struct pipeline_unit *unit, const struct pipeline_unit *maker, unsigned number);
/* Called on the lane's thread around each action. _before waits until the action's inputs exist and the data that it overwrites was taken.
 * _behind queues copies for the host, if it needs them, behind the pass. _after passes the results on. */
int pipeline_passing_before(struct pipeline_unit *unit, struct pipeline_action action, struct error *error);
int pipeline_passing_behind(struct pipeline_unit *unit, struct pipeline_action action, struct error *error);
void pipeline_passing_after(struct pipeline_unit *unit, struct pipeline_action action);
void pipeline_passing_reset(struct pipeline_unit *unit);
void pipeline_passing_init(struct pipeline_unit *unit);
/* Allocates memory for data from other units of this process, once all units exist. A later allocation might wait for NCCL's operations
 * under way, and so for a lost peer, forever. */
int pipeline_passing_open(struct pipeline *pipeline, struct error *error);
void pipeline_passing_release(struct pipeline_unit *unit);
/* Waits for the last sends of a run. */
int pipeline_passing_finish(struct pipeline_unit *unit, struct error *error);

/* ---- pipeline_direct.c
 *
 * Moves data that crosses between processes on GPUs, by NCCL, on a stream of its own. Each lane is a rank of NCCL's, and its thread makes
 * all its calls. (Data for another lane of this process is copied instead, by pipeline_passing.c.)
 *
 * All lanes of a replica use the same timetable. What a lane sends and receives in one tick is one NCCL group. Each lane queues its groups
 * tick by tick, and queues all earlier groups before it waits for a later one, so that no lane waits for a group that its peer cannot
 * reach. The host waits for received data before it launches the pass that reads it; a GPU's passes are never queued behind a peer. */

int pipeline_direct_new(struct pipeline_lane *lane, struct error *error);
/* NULL is allowed. */
void pipeline_direct_free(struct pipeline_direct *direct);
/* Waits for the stream, after the communicator was ended. NULL is allowed. */
int pipeline_direct_settle(struct pipeline_direct *direct, struct error *error);
/* Call it before each run. */
void pipeline_direct_begin(struct pipeline_direct *direct);
/* Queues the groups of all ticks before this one, behind the work on the lane's stream. Call it on the lane's thread. */
int pipeline_direct_exchange(struct pipeline_direct *direct, unsigned tick, struct error *error);
/* Waits until a micro-batch of a crossing (values first) has been received or sent. */
int pipeline_direct_await(struct pipeline_direct *direct, unsigned crossing, unsigned micro_batch, struct error *error);
/* Returns where a received micro-batch is. */
const void *pipeline_direct_arrival(const struct pipeline_direct *direct, unsigned crossing, unsigned micro_batch);
/* Queues the rest of the run and waits for all of it. */
int pipeline_direct_finish(struct pipeline_direct *direct, struct error *error);

/* ---- pipeline.c */

/* Returns the most micro-batches that a replica has in a step. */
unsigned pipeline_most_micro_batches(const struct pipeline *pipeline);
/* Checks that this process has memory for its stages, once they are known. */
int pipeline_check_room(const struct pipeline *pipeline, struct error *error);
/* Creates lanes, units, stores and shares, and a fresh state if pipeline_makes_state. */
int pipeline_open_units(struct pipeline *pipeline, struct error *error);
void pipeline_close_units(struct pipeline *pipeline);
/* Returns the layout of all stages of this process. Requires units. */
const struct parameter_layout *pipeline_layout(const struct pipeline *pipeline);
/* Returns whether the pipeline creates the state (strategy_makes_state). */
bool pipeline_makes_state(const struct pipeline *pipeline);
int pipeline_make_state(const struct pipeline *pipeline, struct error *error);
/* Creates a pipeline without units, outside a crew. partition.stage_of is NULL unless the layers or a checkpoint name the stages. */
int pipeline_new(const struct strategy_options *options, struct pipeline **ret_pipeline, struct error *error);
void pipeline_free(struct pipeline *pipeline);
/* Creates the lanes, units, stores and shares of pipeline_open_units without memory. */
int pipeline_outline(struct pipeline *pipeline, struct error *error);
/* Cuts the model into stages by the layers' measured costs on this device. In a crew, call it only after the crew has agreed on the
 * arithmetic, because measuring fixes that of the process's library. */
int pipeline_measure_partition(struct pipeline *pipeline, struct error *error);

/* ---- pipeline_crew.c */

int pipeline_form(struct pipeline *pipeline, struct error *error);
/* Makes everything go through the host from now on. */
void pipeline_forget_devices(struct pipeline *pipeline);
/* Returns whether lanes sum their replicas' gradients from device to device, at the end of each run. */
bool pipeline_sums_on_devices(const struct pipeline *pipeline);
/* Leaves the crew. Unless it fails, nothing is under way afterwards. */
int pipeline_disband(struct pipeline *pipeline, struct error *error);

/* ---- pipeline_exchange.c */

/* Sums the gradients of the processes that hold the same stages into the first share's first host gradient. */
int pipeline_exchange_gradients(struct pipeline *pipeline, struct error *error);
/* Returns the rank that has a part's stage in this process's replica or replicas. */
unsigned pipeline_rank_with(const struct pipeline *pipeline, unsigned part);
/* Sends the summed gradients of borrowed tables to the processes that have copies of the tables. */
int pipeline_exchange_tables(struct pipeline *pipeline, struct error *error);
/* Exchanges the control words of all covers, the words of all processes (strategy_vote_word) and the sums of squares of the norm's
 * blocks. `ret_words` has one entry for each process. A single process exchanges nothing. */
int pipeline_exchange_controls(struct pipeline *pipeline, unsigned word, float (*ret_controls)[CONTROL_VOTES],
                               float *ret_words, double *ret_norm, struct error *error);
int pipeline_exchange_sum(struct pipeline *pipeline, double *values, unsigned count, struct error *error);
int pipeline_exchange_gather(struct pipeline *pipeline, float *whole, struct error *error);
int pipeline_blocks_new(const struct pipeline *pipeline, struct pipeline_blocks **ret_blocks, struct error *error);
void pipeline_blocks_free(const struct pipeline *pipeline, struct pipeline_blocks *blocks);
/* Adds in the order of ranks; for collective_reduction.combine. `context` is the shape. */
void pipeline_add_ranks(const void *context, const float *const *inputs, float *result, size_t elements);

/* ---- pipeline_report.c, for strategy_operations.describe */

int pipeline_describe(struct strategy *base, struct buffer *text, struct error *error);

/* ---- pipeline_memory.c, for strategy_operations.memory_plan */

void pipeline_memory_plan(const struct strategy_options *options, struct memory_plans *plans);

/* ---- pipeline_update.c */

/* Brings a newly formed crew to one step: a process that was about to apply a step that others have applied applies it now. All ranks
 * call it with the new world. It clears `receives` of the ranks that could catch up. */
int pipeline_catch_up(struct pipeline *pipeline, struct world *world, struct error *error);
/* Reduces the gradients of all replicas to one, in each updating store's first gradient. */
int pipeline_reduce(struct pipeline *pipeline, struct error *error);
int pipeline_apply(struct pipeline *pipeline, double learning_rate, unsigned votes, struct strategy_result *ret_result,
                   struct error *error);

#endif
