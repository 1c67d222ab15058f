/* SPDX-License-Identifier: Apache-2.0
 *
 * A cost model: predicts the time of a step with each strategy from a worker's speed,
 * its network, and the processor time of this worker's collectives. docs/performance.md
 * has the results. The formulas follow the algorithms as implemented
 * (worker/comm/schedule.h, worker/comm/operation.h): vectors are cut into operations
 * of OPERATION_BYTES, several of which run at the same time.
 *
 * Times are in seconds, lengths in bytes.
 *
 * A step of an algorithm takes the latency once, plus the longer of two times: of the
 * busiest link for its bytes in one direction, and of the processors for their work.
 */
#ifndef COXSWAIN_COST_H
#define COXSWAIN_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "worker/comm/collective.h"

/* Parameters that do not depend on the network. Fitted by `cost_model fit`. */
struct cost_software {
    double wake;                 /* from a frame's arrival until its receiver runs */
    double message;              /* a processor's time for a frame, at each end */
    double byte;                 /* a processor's time for a byte */
    double add;                  /* for a byte that is added */
    double near_wake, near_byte; /* between ranks of one machine, through shared memory */
    double processor_flops;      /* a second, of one processor, in training */
    double gpu_flops;            /* of one GPU */
    double jitter;               /* of a step's computation: standard deviation over mean */
};

int cost_software_read(const char *path, struct cost_software *ret_software);
void cost_software_print(const struct cost_software *software);

/* One rank's full-duplex link to a switch that is never the bottleneck. */
struct cost_network {
    double latency;    /* one way */
    double byte;       /* each way */
    double bucket;     /* bytes that a link which was idle takes at once (tc's token buckets) */
    double processors; /* that a rank has to itself; below 1 where several share one */
};

/* Returns the seconds for a byte on a link with this number of bits a second, with the overhead of TCP in frames of 9,000 bytes. */
double cost_link_byte(double bits);

/* An all-reduce; `per_node`: ranks of one machine, for HIERARCHICAL. */
struct cost_collective {
    enum collective_algorithm algorithm;
    unsigned ranks, per_node;
    double bytes;
};

double cost_all_reduce(const struct cost_software *software, const struct cost_network *network,
                       const struct cost_collective *collective);
/* Returns a processor's time for it at the busiest rank. */
double cost_all_reduce_processor(const struct cost_software *software, const struct cost_collective *collective);
/* Returns the algorithm that AUTO selects (worker/comm/operation.c): DIRECT, OWNED, DOUBLING or HALVING. */
enum collective_algorithm cost_auto(unsigned ranks, double bytes);
/* Whether pairs of ranks are possible. */
bool cost_has_pairs(unsigned ranks);
const char *cost_algorithm_name(enum collective_algorithm algorithm);
/* Returns false if there is no such name. */
bool cost_algorithm_find(const char *name, enum collective_algorithm *ret_algorithm);

struct cost_model {
    const char *name;
    double parameters;
    double flops;     /* of an example, there and back */
    double batch;     /* of a worker */
    double cut;       /* bytes that an example takes across a cut between two stages */
    unsigned stages;  /* of its pipeline */
    double gpu_share; /* of the GPU's rate that it reaches */
};

/* The MLP of tests/cost/check. */
extern const struct cost_model cost_model_mlp;
extern const struct cost_model cost_models[];
extern const size_t cost_model_count;

struct cost_crew {
    const struct cost_software *software;
    const struct cost_network *network;
    const struct cost_model *model;
    double computation; /* of a worker's step */
    bool on_processor;  /* computes on what also moves the bytes */
    unsigned workers;
    unsigned local_steps; /* a round's */
    double slots;         /* of the optimizer, vectors as long as the parameters */
};

struct cost_strategy {
    const char *name;
    const char *colour;
    double (*step)(const struct cost_crew *crew);
    bool is_for_processors; /* no GPU trains so */
};

extern const struct cost_strategy cost_strategies[];
extern const size_t cost_strategy_count;

/* Returns the computation's share of a step; with 1, the crew is as many times faster as it has workers. */
double cost_efficiency(const struct cost_strategy *strategy, const struct cost_crew *crew);
/* Returns the worker's steps until a change has reached all others, in PeerToPeer. */
double cost_send_to_all_age(const struct cost_crew *crew);

/* Failures. Rates are per second and worker. */
struct cost_failures {
    double rate;
    double recovery;   /* from the death to the next step */
    double step;       /* repeated */
    double save;       /* what a checkpoint takes from a step */
    double save_least; /* between two checkpoints: the one before must be written */
};

/* Returns the share of the time that goes into steps that are not repeated. */
double cost_goodput_in_place(const struct cost_failures *failures, unsigned workers);
double cost_goodput_restart(const struct cost_failures *failures, unsigned workers, double *ret_interval);

/* Parts of the program. */
int cost_fit(FILE *measured, double processors, const struct cost_software *start);
int cost_check(FILE *measured, const struct cost_software *software, const struct cost_network *network,
               double processors);
/* The same for whole steps of `model`, from lines "step|STRATEGY|WORKERS|SECONDS|COMPUTATION". */
int cost_check_steps(FILE *measured, const struct cost_crew *crew);
void cost_print_tables(const struct cost_software *software);
void cost_print_choice(const struct cost_software *software);
void cost_print_picture(const struct cost_software *software);

/* A line of `bench_allreduce --crew`; cost_line_read returns false at the end. */
struct cost_line {
    struct cost_collective collective;
    char name[16];
    double seconds; /* of the quickest chain */
};
bool cost_line_read(FILE *file, struct cost_line *ret_line);

#endif
