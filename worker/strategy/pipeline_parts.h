/* SPDX-License-Identifier: Apache-2.0
 *
 * A pipeline's inside, for the files that make it: pipeline.c (the strategy),
 * pipeline_lane.c (a device at work), pipeline_unit.c (a part of a stage of one
 * replica), pipeline_passing.c (what goes from part to part), pipeline_direct.c
 * (the same between processes, from GPU to GPU), pipeline_share.c (what the parts
 * of a replica have in common), pipeline_store.c (parameters and gradients, in the
 * memory that they share), pipeline_update.c (gradients of the whole crew, and the
 * step), pipeline_memory.c (what all of that will take). Only they include it.
 *
 * Devices are counted replica by replica, stage by stage: device d has stage d
 * mod S of replica d / S, and process p has the devices [p D, (p + 1) D), where D
 * is their number in each. A lane is such a device with its thread.
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

/* Processes that hold a whole replica between them; those whose ranks differ by a multiple of it hold the same stages. */
static inline unsigned pipeline_span_of(const struct pipeline_shape *shape)
{
    return shape->stages > shape->devices ? shape->stages / shape->devices : 1;
}

/* Channels of transfers; those of values and gradients are below. */
enum pipeline_channel {
    CHANNEL_STATE = 65000,
    CHANNEL_CONTRIBUTION,
    CHANNEL_RESULT,
    CHANNEL_GATHER,
    CHANNEL_TABLE,
};

/* The device that has a stage of a replica, and its process. */
static inline unsigned pipeline_device_of(const struct pipeline_shape *shape, unsigned stage, unsigned replica)
{
    return replica * shape->stages + stage;
}

static inline unsigned pipeline_rank_of(const struct pipeline_shape *shape, unsigned stage, unsigned replica)
{
    return pipeline_device_of(shape, stage, replica) / shape->devices;
}

/* Examples of one micro-batch: where they lie in the share's batch, and in the crew's. */
struct pipeline_piece {
    int64_t offset, count, first;
};

struct pipeline_batch {
    bool filled;
    int64_t data_epoch, position; /* of the global batch */
    void *inputs, *targets;
};

/* One replica, as far as it is in this process: its logical shards, each a micro-batch, and their gradients. */
struct pipeline_share {
    unsigned replica;
    unsigned first, end; /* shards */
    bool reads;          /* a stage here needs the batch */
    bool begins;         /* the first stage is here, which takes the examples in */
    struct reduction_subtree cover[REDUCTION_COVER_MAX];
    unsigned cover_count;
    float *host_gradients[REDUCTION_COVER_MAX]; /* in the layout of what the process holds: what others are told */
    struct loss_sums *sums;                     /* by micro-batch; filled by the stage with the loss */
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

/* What lanes of a share have in one memory: their stages' gradients, and the place of their parameters in the state. All lanes of a
 * share have one between them, and all shares the parameters of one; of several GPUs each has its own store, and its own part of the
 * state. */
struct pipeline_store {
    struct pipeline_share *share;
    unsigned part; /* of the state */
    struct device *device;
    struct device_stream *stream; /* of the update, and of copies */
    bool holds[STAGES_MAX];       /* stages in it */
    const struct parameter_layout *layout;
    float *gradients[REDUCTION_COVER_MAX];
    float *partial[REDUCTION_DEPTH_MAX]; /* partial sums above slot 0 */
};

/* How far a crossing has come in this run: micro-batches that its maker has left there, and that its reader has copied. */
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
    const void **values, **gradients;                    /* by crossing: where what comes in lies */
    void *
        *arrivals; /* by crossing, values first: of what comes from other processes, and of what other GPUs' is added */
    struct transfer *departures; /* by crossing and slot, values first: what goes there */
    void **outgoing;             /* likewise, where the host cannot read the device's memory: a copy that it can */
};

/* A device of this process, and its thread: a stage of one replica, part by part as the timetable says. */
struct pipeline_lane {
    struct pipeline *pipeline;
    struct pipeline_share *share;
    struct pipeline_store *store;
    unsigned stage;
    struct device *device;
    struct device_stream *stream;
    struct crew_communicator
        *devices; /* the crew's, of which it calls its own; NULL: all goes through the host, like the next */
    struct pipeline_direct *direct; /* what crosses to and from other processes */
    struct device_sums *sums;       /* of its stage's gradients; NULL also where there is one replica */
    struct pipeline_span *spans;
    unsigned span_count;
    int64_t computed_ns; /* when the action under way was, by the stream */
    pthread_t thread;
    bool has_thread;
    struct error error; /* of the last run */
};

/* A step whose gradients are all reduced here: only its last exchange is missing, or the update. A process that has ended that
 * exchange knows that all have come this far. So if others turn out to have applied the step, a process that was about to apply it
 * does so too, and no stage is left a step behind the others. */
struct pipeline_verge {
    int64_t step;          /* 0: none */
    int64_t measured_step; /* whose norm we know; 0: none */
    double learning_rate, norm;
};

struct pipeline {
    struct strategy base;
    struct pipeline_shape shape;
    struct graph_partition partition;
    bool plan_only;  /* pipeline_memory.c's, with lanes, units, stores and shares that have no memory */
    unsigned shards; /* of the world that the units were made for; crews only */
    struct pipeline_unit *units;
    unsigned unit_count;
    struct pipeline_lane *lanes;
    unsigned lane_count;
    struct pipeline_share *shares;
    unsigned share_count;
    struct pipeline_store *stores; /* by share; of several GPUs by lane */
    unsigned store_count;
    struct graph *held; /* the layout of all stages here, where stores have stages of their own; else NULL */
    const struct graph_crossing *values, *gradients; /* the same in all units' graphs */
    unsigned value_count, gradient_count;
    struct reduction_plan *plan;
    int64_t examples;                  /* in the global batch of this step */
    int64_t read_ns;                   /* what reading took in it */
    struct collective *group;          /* NULL: a crew of one */
    struct crew_communicator *devices; /* NULL: what crosses goes through the host, whatever others have */
    struct pipeline_blocks *blocks;    /* of the gradient's norm */
    float *controls;                   /* the last exchange */
    struct pipeline_verge verge;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t run;      /* counts runs; lanes begin when it rises */
    unsigned working;  /* lanes that are not done */
    bool evaluates;    /* forward only */
    bool failed, over; /* a lane has failed: all end; the threads are to end */
    float scale;
};

/* Whether each lane has memory of its own, a GPU's: then what crosses between them is copied, and the state lies in parts. */
static inline bool pipeline_is_parted(const struct pipeline *pipeline)
{
    return pipeline->shape.devices > 1 && !device_memory_is_shared(pipeline->base.options.device);
}

/* pipeline_update.c. All call it after forming, `world` as named; it clears `receives` of those that could catch up. */
int pipeline_catch_up(struct pipeline *pipeline, struct world *world, struct error *error);

/* pipeline_share.c */
/* Its micro-batches, its part of the tree and what it reads, once its units are there; and then its memory, behind the stores'. */
void pipeline_share_measure(const struct pipeline *pipeline, struct pipeline_share *share, unsigned replica);
/* How many partial sums it keeps beside those of its cover. */
unsigned pipeline_share_partial_sums(const struct pipeline_share *share);
/* Whether gradients are copied for the host to tell others, in other processes or on other GPUs. */
bool pipeline_copies_gradients(const struct pipeline *pipeline);
int pipeline_share_init(struct pipeline *pipeline, struct pipeline_share *share, struct error *error);
void pipeline_share_release(struct pipeline *pipeline, struct pipeline_share *share);
int64_t pipeline_batch_size(const struct pipeline *pipeline, int64_t position);
void pipeline_next_position(const struct pipeline *pipeline, int64_t *data_epoch, int64_t *position);
/* By which the loss of the batch under way is divided. */
double pipeline_target_count(const struct pipeline *pipeline);
/* The batch at a position, unless it is there; and the cutting of the current one into micro-batches. */
int pipeline_share_read(struct pipeline *pipeline, struct pipeline_share *share, bool ahead, int64_t data_epoch,
                        int64_t position, struct error *error);
void pipeline_share_cut(struct pipeline *pipeline, struct pipeline_share *share);
/* Pieces of up to `most` examples each. */
void pipeline_share_cut_evenly(struct pipeline_share *share, int64_t examples, int64_t most);
struct pipeline_course pipeline_course_of(const struct pipeline *pipeline);
/* The timetable of a run through the share's pieces. */
void pipeline_share_plan(const struct pipeline *pipeline, struct pipeline_share *share, bool evaluates);
/* Loss and hits, summed over each subtree of the cover as gradients are. */
void pipeline_share_controls(const struct pipeline_share *share, float (*ret_controls)[CONTROL_VOTES]);

/* pipeline_store.c */
/* Once its units are there and its share is measured. */
int pipeline_store_init(struct pipeline_store *store, struct error *error);
void pipeline_store_release(struct pipeline_store *store);
/* All gradients as the host is to see them; and the first share's first back again, to whatever updates parameters. */
int pipeline_stores_to_host(struct pipeline *pipeline, struct error *error);
int pipeline_stores_from_host(struct pipeline *pipeline, struct error *error);
/* Likewise, of the first share's first gradient: the tables that are lent; and then the copies of tables back again. */
int pipeline_stores_tables_to_host(struct pipeline *pipeline, struct error *error);
int pipeline_stores_tables_from_host(struct pipeline *pipeline, struct error *error);
/* Gives the sums of borrowed tables to the stores with copies of them, from others of this process. */
int pipeline_stores_give_tables(struct pipeline *pipeline, struct error *error);
/* How many stores, the first, update parameters of their own. */
unsigned pipeline_updating_store_count(const struct pipeline *pipeline);
/* Waits for the updates, or for what else is on their streams. */
int pipeline_stores_synchronise(struct pipeline *pipeline, struct error *error);

/* pipeline_unit.c */
int pipeline_unit_init(struct pipeline *pipeline, struct pipeline_unit *unit, const struct pipeline_lane *lane,
                       unsigned part, struct error *error);
void pipeline_unit_release(struct pipeline_unit *unit);
/* Enqueues what the action asks for, on the lane's stream. */
int pipeline_unit_launch(struct pipeline_unit *unit, struct pipeline_action action, struct error *error);

/* pipeline_lane.c */
int pipeline_lane_init(struct pipeline *pipeline, struct pipeline_lane *lane, unsigned stage,
                       struct pipeline_store *store, struct device *device, struct error *error);
/* Once the units are made. */
int pipeline_lane_start(struct pipeline_lane *lane, struct error *error);
/* After `over` is set and told. */
void pipeline_lane_stop(struct pipeline_lane *lane);
void pipeline_lane_release(struct pipeline_lane *lane);
/* Makes all lanes run through their shares' pieces; the caller may do something else meanwhile. */
void pipeline_start(struct pipeline *pipeline, bool evaluates, float scale);
int pipeline_await(struct pipeline *pipeline, struct error *error);
/* How long this process has worked on the last run, waiting for nobody: its busiest lane, or the reading. */
int64_t pipeline_own_ns(const struct pipeline *pipeline);

/* pipeline_passing.c. Of a crossing, at most. */
size_t pipeline_passing_bytes(const struct pipeline *pipeline, const struct graph_crossing *crossing);
/* Whether a crossing (by its number, values first) from another unit of this process is copied to a place of its own first: a GPU
 * computes with its own memory. What a pass does nothing with but copy it, it takes from where it has been made. */
bool pipeline_passing_has_arrival(const struct pipeline_unit *unit, const struct pipeline_unit *maker, unsigned number);
/* On a lane's thread. Before an action: wait until what it reads is there and what it overwrites was taken.
 * Behind it on the stream: copies for the host, if it needs them. After it: hand on. */
int pipeline_passing_before(struct pipeline_unit *unit, struct pipeline_action action, struct error *error);
int pipeline_passing_behind(struct pipeline_unit *unit, struct pipeline_action action, struct error *error);
void pipeline_passing_after(struct pipeline_unit *unit, struct pipeline_action action);
void pipeline_passing_reset(struct pipeline_unit *unit);
void pipeline_passing_init(struct pipeline_unit *unit);
/* Once all units are there: their arrivals from each other. Behind what is under way by NCCL an allocation may wait, and that for a lost
 * peer, for ever. */
int pipeline_passing_open(struct pipeline *pipeline, struct error *error);
void pipeline_passing_release(struct pipeline_unit *unit);

/* The run's last sends. */
int pipeline_passing_finish(struct pipeline_unit *unit, struct error *error);

/* pipeline_direct.c: what crosses between processes on GPUs, by NCCL, on a stream of its own. Each lane is a rank, whose calls are its
 * thread's, as if it were a process of its own; what crosses to another lane here is copied (pipeline_passing.c). All lanes of a
 * replica play the same timetable. What a lane gives and takes in a tick goes in one group, and each lane queues its groups tick by
 * tick, before it waits for anything of a later one: so none waits for one that a peer cannot come to. The host waits for what has
 * come before it launches what reads it; a GPU's passes never stand behind a peer. */
int pipeline_direct_new(struct pipeline_lane *lane, struct error *error);
/* Fine for NULL. */
void pipeline_direct_free(struct pipeline_direct *direct);
/* Once the communicator is ended; fine for NULL. */
int pipeline_direct_settle(struct pipeline_direct *direct, struct error *error);
/* Before each run. */
void pipeline_direct_begin(struct pipeline_direct *direct);
/* On the lane's thread: queues the groups of all ticks before this one, behind what is on the lane's stream. */
int pipeline_direct_exchange(struct pipeline_direct *direct, unsigned tick, struct error *error);
/* Until a micro-batch of a crossing (values first) has come, or has been given away; where it lies then. */
int pipeline_direct_await(struct pipeline_direct *direct, unsigned crossing, unsigned micro_batch, struct error *error);
const void *pipeline_direct_arrival(const struct pipeline_direct *direct, unsigned crossing, unsigned micro_batch);
/* Queues what is left of the run, and waits for all of it. */
int pipeline_direct_finish(struct pipeline_direct *direct, struct error *error);

/* pipeline.c */
/* Of a replica in a step. */
unsigned pipeline_most_micro_batches(const struct pipeline *pipeline);
/* Once the stages are cut, and then: */
int pipeline_check_room(const struct pipeline *pipeline, struct error *error);
int pipeline_open_units(struct pipeline *pipeline, struct error *error);
void pipeline_close_units(struct pipeline *pipeline);
/* Of all stages of this process, once there are units. */
const struct parameter_layout *pipeline_layout(const struct pipeline *pipeline);
/* Whether the strategy makes it (strategy_makes_state); and then a fresh one. */
bool pipeline_makes_state(const struct pipeline *pipeline);
int pipeline_make_state(const struct pipeline *pipeline, struct error *error);
/* Not in a crew, and without units; partition.stage_of is NULL unless the layers or a checkpoint have said where they run. */
int pipeline_new(const struct strategy_options *options, struct pipeline **ret_pipeline, struct error *error);
void pipeline_free(struct pipeline *pipeline);
/* As pipeline_open_units would make them, without memory: lanes, units, stores and shares. */
int pipeline_outline(struct pipeline *pipeline, struct error *error);
/* By the layers' costs on this device, which fixes the arithmetic of the process's library: in a crew not before it has agreed. */
int pipeline_measure_partition(struct pipeline *pipeline, struct error *error);

/* pipeline_crew.c */
int pipeline_form(struct pipeline *pipeline, struct error *error);
/* From now on all goes through the host. */
void pipeline_forget_devices(struct pipeline *pipeline);
/* Whether lanes sum their replicas' gradients from device to device, each at the end of its run. */
bool pipeline_sums_on_devices(const struct pipeline *pipeline);
/* Afterwards nothing is under way any more, unless it fails. */
int pipeline_disband(struct pipeline *pipeline, struct error *error);

/* pipeline_exchange.c: what processes tell each other in a step. */
/* Sums the gradients of the processes that hold the same stages; the result lies in the first share's first gradient. */
int pipeline_exchange_gradients(struct pipeline *pipeline, struct error *error);
/* The rank that has a part's stage of our replica (or replicas). */
unsigned pipeline_rank_with(const struct pipeline *pipeline, unsigned part);
/* Then gives the sums of borrowed tables to the processes that have copies of them. */
int pipeline_exchange_tables(struct pipeline *pipeline, struct error *error);
/* All covers' controls, all words (strategy_vote_word) and the sums of squares of all the norm's blocks. `ret_words` has one entry
 * a process. Nobody is asked where there is but one. */
int pipeline_exchange_controls(struct pipeline *pipeline, unsigned word, float (*ret_controls)[CONTROL_VOTES],
                               float *ret_words, double *ret_norm, struct error *error);
int pipeline_exchange_sum(struct pipeline *pipeline, double *values, unsigned count, struct error *error);
int pipeline_exchange_gather(struct pipeline *pipeline, float *whole, struct error *error);
int pipeline_blocks_new(const struct pipeline *pipeline, struct pipeline_blocks **ret_blocks, struct error *error);
void pipeline_blocks_free(const struct pipeline *pipeline, struct pipeline_blocks *blocks);
/* For collective_reduction.combine: rank by rank; `context` is the shape. */
void pipeline_add_ranks(const void *context, const float *const *inputs, float *result, size_t elements);

/* pipeline_report.c. For strategy_operations.describe. */
int pipeline_describe(struct strategy *base, struct buffer *text, struct error *error);

/* pipeline_memory.c. For strategy_operations.memory_plan. */
void pipeline_memory_plan(const struct strategy_options *options, struct memory_plans *plans);

/* pipeline_update.c */
int pipeline_reduce(struct pipeline *pipeline, struct error *error);
int pipeline_apply(struct pipeline *pipeline, double learning_rate, unsigned votes, struct strategy_result *ret_result,
                   struct error *error);

#endif
