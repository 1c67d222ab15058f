/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/cost/cost.h"
#include "worker/model/graph.h"

#define VALUE_BYTES 4.0
#define BACKWARD (2.0 / 3) /* of a step's computation */
#define PER_NODE 4
#define WORKERS_PER_SERVER 4
#define MICRO_BATCHES 4 /* for each stage */

/* Multiplications and additions count one each; there and back is three times the way there. */
const struct cost_model cost_model_mlp = {.name = "mlp", .parameters = 407050, .cut = 512 * 4, .stages = 2};
const struct cost_model cost_models[] = {
    {.name = "lenet",
     .parameters = 225034,
     .flops = 15.4e6,
     .batch = 2048,
     .gpu_share = 0.43,
     .cut = 14 * 14 * 32 * 4,
     .stages = 2},
    {.name = "resnet50",
     .parameters = 25557032,
     .flops = 24.6e9,
     .batch = 64,
     .cut = 14 * 14 * 1024 * 4,
     .stages = 8,
     .gpu_share = 1},
    {.name = "gpt2-124m",
     .parameters = 124439808,
     .flops = 0.88e12,
     .batch = 16,
     .cut = 1024 * 768 * 4,
     .stages = 8,
     .gpu_share = 1},
};
const size_t cost_model_count = sizeof(cost_models) / sizeof(*cost_models);

static double gradient_bytes(const struct cost_crew *crew)
{
    return crew->model->parameters * VALUE_BYTES;
}

static double longer(double a, double b)
{
    return a > b ? a : b;
}

/* A step waits for the slowest worker: approximately the largest of this many normally distributed times. */
static double computation_of_slowest(const struct cost_crew *crew)
{
    return crew->computation * (1 + crew->software->jitter * sqrt(2 * log(crew->workers)));
}

static struct cost_collective all_reduce_of(const struct cost_crew *crew, enum collective_algorithm algorithm,
                                            double bytes, unsigned ranks)
{
    (void)crew;
    return (struct cost_collective){.algorithm = algorithm, .ranks = ranks, .per_node = PER_NODE, .bytes = bytes};
}

static double reduce(const struct cost_crew *crew, enum collective_algorithm algorithm, double bytes, unsigned ranks)
{
    struct cost_collective collective = all_reduce_of(crew, algorithm, bytes, ranks);
    return cost_all_reduce(crew->software, crew->network, &collective);
}

/* Returns the computing time that is lost because the same processors move the bytes. */
static double taken(const struct cost_crew *crew, enum collective_algorithm algorithm, double bytes, unsigned ranks)
{
    struct cost_collective collective = all_reduce_of(crew, algorithm, bytes, ranks);
    return crew->on_processor ? cost_all_reduce_processor(crew->software, &collective) / crew->network->processors : 0;
}

/* Buckets go out while the rest of the way back is computed; the last one has nothing to hide behind. */
static double exposed(const struct cost_crew *crew, double bytes, double seconds, double last)
{
    double buckets = ceil(bytes / GRAPH_BUCKET_BYTES);
    return longer(last, seconds - BACKWARD * crew->computation * (1 - 1 / buckets));
}

static double overlapped(const struct cost_crew *crew, enum collective_algorithm algorithm)
{
    double bytes = gradient_bytes(crew), last = bytes < GRAPH_BUCKET_BYTES ? bytes : GRAPH_BUCKET_BYTES;
    return computation_of_slowest(crew) + taken(crew, algorithm, bytes, crew->workers) +
           exposed(crew, bytes, reduce(crew, algorithm, bytes, crew->workers),
                   reduce(crew, algorithm, last, crew->workers));
}

static double step_auto(const struct cost_crew *crew)
{
    return overlapped(crew, COLLECTIVE_ALGORITHM_AUTO);
}

static double step_ring(const struct cost_crew *crew)
{
    return overlapped(crew, COLLECTIVE_ALGORITHM_RING);
}

static double step_one(const struct cost_crew *crew)
{
    return overlapped(crew, COLLECTIVE_ALGORITHM_REDUCE_TO_ONE);
}

static double step_hierarchical(const struct cost_crew *crew)
{
    return overlapped(crew, COLLECTIVE_ALGORITHM_HIERARCHICAL);
}

/* The sums go out with the way back; the new values come after it: half of an all-reduce each. */
static double step_sharded(const struct cost_crew *crew)
{
    double bytes = gradient_bytes(crew), whole = reduce(crew, COLLECTIVE_ALGORITHM_AUTO, bytes, crew->workers);
    double last = bytes < GRAPH_BUCKET_BYTES ? bytes : GRAPH_BUCKET_BYTES;
    return computation_of_slowest(crew) + taken(crew, COLLECTIVE_ALGORITHM_AUTO, bytes, crew->workers) + whole / 2 +
           exposed(crew, bytes, whole / 2, reduce(crew, COLLECTIVE_ALGORITHM_AUTO, last, crew->workers) / 2);
}

/* A round sends the values and the optimizer's slots once. The slowest of a round is slow by less. */
static double step_local(const struct cost_crew *crew)
{
    double bytes = (1 + crew->slots) * gradient_bytes(crew);
    double slowest = 1 + crew->software->jitter * sqrt(2 * log(crew->workers) / crew->local_steps);
    return crew->computation * slowest + (taken(crew, COLLECTIVE_ALGORITHM_AUTO, bytes, crew->workers) +
                                          reduce(crew, COLLECTIVE_ALGORITHM_AUTO, bytes, crew->workers)) /
                                             crew->local_steps;
}

static double servers(const struct cost_crew *crew)
{
    return ceil((double)crew->workers / WORKERS_PER_SERVER);
}

/* Values come, gradients go: on the worker's link one after the other, on a server's both ways at once. */
static double step_servers_in_turn(const struct cost_crew *crew)
{
    double bytes = gradient_bytes(crew), share = crew->workers / servers(crew);
    double link = crew->network->byte, processor = 2 * crew->software->byte;
    double alone = crew->computation + 2 * (crew->network->latency + crew->software->wake) + 2 * bytes * link;
    return longer(alone, share * bytes * longer(link, processor));
}

/* All at once: the servers' links, or their additions, hold everybody up. */
static double step_servers_together(const struct cost_crew *crew)
{
    double bytes = gradient_bytes(crew), share = crew->workers / servers(crew);
    double server = crew->software->byte + crew->software->add / 2;
    return computation_of_slowest(crew) + 2 * (crew->network->latency + crew->software->wake) +
           2 * bytes * share * longer(crew->network->byte, server);
}

/* Nobody waits; the bytes cost a processor their time, and the loss comes down more slowly. */
static double step_peers(const struct cost_crew *crew)
{
    double work = 2 * gradient_bytes(crew) * (crew->software->byte + crew->software->add);
    return crew->computation + (crew->on_processor ? work / crew->network->processors : 0);
}

/* As many times the batch of one worker as there are stages goes through them; the replicas of a stage then sum its part. */
static double step_pipeline(const struct cost_crew *crew)
{
    double stages = crew->model->stages < crew->workers ? crew->model->stages : crew->workers;
    double micro_batches = MICRO_BATCHES * stages;
    double cut = 2 * crew->model->cut * crew->model->batch * stages / micro_batches * crew->network->byte;
    double pace = longer(crew->computation / micro_batches, cut);
    return (micro_batches + stages - 1) * pace + 2 * (stages - 1) * crew->network->latency +
           reduce(crew, COLLECTIVE_ALGORITHM_AUTO, gradient_bytes(crew) / stages, (unsigned)(crew->workers / stages));
}

const struct cost_strategy cost_strategies[] = {
    {"MultiWorkerMirrored, Auto", "#1f77b4", step_auto, false},
    {"Ring", "#ff7f0e", step_ring, false},
    {"Hierarchical, 4 a machine", "#2ca02c", step_hierarchical, false},
    {"ReduceToOne", "#d62728", step_one, false},
    {"sharded optimizer", "#17becf", step_sharded, false},
    {"localSteps", "#9467bd", step_local, false},
    {"ParameterServer, Synchronous", "#8c564b", step_servers_together, false},
    {"ParameterServer, Async", "#e377c2", step_servers_in_turn, false},
    {"PeerToPeer", "#7f7f7f", step_peers, true},
    {"Pipeline", "#bcbd22", step_pipeline, false},
};
const size_t cost_strategy_count = sizeof(cost_strategies) / sizeof(*cost_strategies);

double cost_efficiency(const struct cost_strategy *strategy, const struct cost_crew *crew)
{
    return crew->computation / strategy->step(crew);
}

double cost_send_to_all_age(const struct cost_crew *crew)
{
    return ceil((crew->workers - 1) * gradient_bytes(crew) * crew->network->byte / crew->computation);
}
