/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix: every synchronous arrangement of workers and devices ends with the
 * bits of OneDevice, for 1 to 4 workers or devices, even and uneven batches, and
 * each optimizer; and each goes on from the state of any other. A new strategy
 * is a line in `arrangements`.
 *
 * The workers of a crew are threads of the test, with devices, state and sockets
 * of their own.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/json.h"
#include "common/lock.h"
#include "common/memory.h"
#include "tests/unit/sanitized.h"
#include "worker/data/dataset.h"
#include "worker/data/dataset_format.h"
#include "worker/data/sampler.h"
#include "worker/device/shard_exchange.h"
#include "worker/model/graph.h"
#include "worker/optimizer/training_state.h"
#include "worker/parameter_server/recovery.h"
#include "worker/parameter_server/server.h"
#include "worker/strategy/local_rounds.h"
#include "worker/strategy/replica.h"
#include "worker/strategy/sharded_optimizer.h"
#include "worker/strategy/strategy.h"
#include "worker/train/ps_share.h"
#include "worker/train/ps_worker.h"

#define COUNT_MAX 4 /* of workers or devices, or of replicas of two workers */
#define WORKERS_MAX (2 * COUNT_MAX)
#define PORT 2222
#define SHARDS 12 /* for all, so that the bits can be equal */
#define STEPS 6
#define RATE 0.02

/* One test runs every arrangement once; that is enough for its races. */
#ifdef __SANITIZE_THREAD__
#define SKIP_WHERE_IT_TAKES_TOO_LONG() cr_skip_test("the whole matrix takes too long under the thread sanitizer")
#else
#define SKIP_WHERE_IT_TAKES_TOO_LONG() ((void)0)
#endif

/* Tells whether a cell of the matrix runs here. Under the address sanitizer every pair of batches, count and optimizer does, but not every
 * combination of the three. */
static bool runs_here(unsigned batching, unsigned count, unsigned optimizer)
{
    return !IS_SANITIZED || (batching + count + optimizer) % 2 == 0;
}

#define COUNT_STAGES 99

/* How a strategy arranges `count` workers or devices. */
static const struct arrangement {
    const char *name;
    enum strategy_type type;
    bool counts_workers;     /* `count` workers; else one worker of `count` devices */
    unsigned worker_devices; /* of each of those workers */
    enum collective_type collective;
    unsigned stages, pods; /* Pipeline: of the model, COUNT_STAGES: `count`; workers a replica, 0: one */
    bool sharded;          /* the optimizer's slots */
} arrangements[] = {
    {"Mirrored", STRATEGY_MIRRORED, false, 0, COLLECTIVE_AUTO, 0, 0, false},
    {"Mirrored, ReduceToOne", STRATEGY_MIRRORED, false, 0, COLLECTIVE_REDUCE_TO_ONE, 0, 0, false},
    {"Mirrored, Hierarchical", STRATEGY_MIRRORED, false, 0, COLLECTIVE_HIERARCHICAL, 0, 0, false},
    {"CentralStorage", STRATEGY_CENTRAL_STORAGE, false, 0, COLLECTIVE_AUTO, 0, 0, false},
    {"CentralStorage, ReduceToOne", STRATEGY_CENTRAL_STORAGE, false, 0, COLLECTIVE_REDUCE_TO_ONE, 0, 0, false},
    {"MultiWorkerMirrored", STRATEGY_MULTI_WORKER_MIRRORED, true, 1, COLLECTIVE_AUTO, 0, 0, false},
    {"MultiWorkerMirrored of two devices", STRATEGY_MULTI_WORKER_MIRRORED, true, 2, COLLECTIVE_AUTO, 0, 0, false},
    {"MultiWorkerMirrored, ReduceToOne", STRATEGY_MULTI_WORKER_MIRRORED, true, 1, COLLECTIVE_REDUCE_TO_ONE, 0, 0,
     false},
    {"MultiWorkerMirrored, Hierarchical", STRATEGY_MULTI_WORKER_MIRRORED, true, 1, COLLECTIVE_HIERARCHICAL, 0, 0,
     false},
    {"Pipeline of devices", STRATEGY_PIPELINE, false, 0, COLLECTIVE_AUTO, COUNT_STAGES, 0, false},
    {"Pipeline of workers", STRATEGY_PIPELINE, true, 1, COLLECTIVE_AUTO, COUNT_STAGES, 0, false},
    {"Pipeline, replicas of two devices", STRATEGY_PIPELINE, true, 2, COLLECTIVE_AUTO, 2, 0, false},
    {"Pipeline, replicas of two workers", STRATEGY_PIPELINE, true, 1, COLLECTIVE_AUTO, 2, 2, false},
    {"MultiWorkerMirrored, sharded optimizer", STRATEGY_MULTI_WORKER_MIRRORED, true, 1, COLLECTIVE_AUTO, 0, 0, true},
    {"MultiWorkerMirrored of two devices, sharded optimizer", STRATEGY_MULTI_WORKER_MIRRORED, true, 2, COLLECTIVE_AUTO,
     0, 0, true},
};
#define ARRANGEMENTS (sizeof(arrangements) / sizeof(*arrangements))

/* Arrangements in which the order of additions depends on the crew's size. */
static const struct arrangement rings[] = {
    {"Mirrored, Ring", STRATEGY_MIRRORED, false, 0, COLLECTIVE_RING, 0, 0, false},
    {"CentralStorage, Ring", STRATEGY_CENTRAL_STORAGE, false, 0, COLLECTIVE_RING, 0, 0, false},
    {"MultiWorkerMirrored, Ring", STRATEGY_MULTI_WORKER_MIRRORED, true, 1, COLLECTIVE_RING, 0, 0, false},
    {"MultiWorkerMirrored of two devices, Ring", STRATEGY_MULTI_WORKER_MIRRORED, true, 2, COLLECTIVE_RING, 0, 0, false},
};
#define RINGS (sizeof(rings) / sizeof(*rings))

static const struct arrangement one_device = {"OneDevice", STRATEGY_ONE_DEVICE, false, 0, COLLECTIVE_AUTO, 0, 0, false};

static const struct batching {
    const char *name;
    int batch, examples;
} batchings[] = {
    {"even", 24, 96},
    {"uneven", 26, 90},    /* shards differ by one, and the last batch of an epoch has 12 examples */
    {"tiny tail", 26, 57}, /* it has 5: most shards are empty */
};
#define BATCHINGS (sizeof(batchings) / sizeof(*batchings))

static const char *const optimizers[] = {
    "{\"type\":\"SGD\",\"learningRate\":\"0.02\",\"momentum\":\"0.9\"}",
    "{\"type\":\"AdamW\",\"learningRate\":\"1e-3\",\"weightDecay\":\"0.1\"}",
};
#define OPTIMIZERS (sizeof(optimizers) / sizeof(*optimizers))

/* A state's bytes, as the spans have them. */
struct snapshot {
    size_t length;
    unsigned char *bytes;
};

/* Where a rank stops: before its third step, before it changes its parameters in it, or before the word in the end. */
enum freeze_at { FREEZE_AT_STEP, FREEZE_AT_CHANGE, FREEZE_AT_END };

/* A rank that stops after two steps until all ranks that wait for it have named it. */
struct freeze {
    unsigned victim, witnesses;
    enum freeze_at at;
    const char *operation; /* that its name comes with; NULL: any */
    pthread_mutex_t lock;
    pthread_cond_t named;
    bool stands_still; /* before that, slow ranks may be named as well */
    bool has_named[WORKERS_MAX];
    char words[WORKERS_MAX][512];
};

struct cell {
    const struct arrangement *arrangement;
    unsigned count;
    const struct batching *batching;
    const char *optimizer;
    double clip;
    int64_t until;               /* step */
    const struct snapshot *from; /* NULL: from fresh parameters */
    struct freeze *freeze;       /* NULL: nobody stops */
    bool global;                 /* batch statistics: of all shards */
    unsigned shards;             /* 0: SHARDS */
    unsigned norms;              /* further blocks with a batch normalisation each */
    int64_t local_steps;         /* 0: all are shared */
    int spoilt;                  /* the number of an example with a target that no model knows; 0: none */
    unsigned units;              /* of the first dense layer; 0: 128 */
    int64_t taken_back;          /* a step that all ranks but 0 have summed and not taken when the crew forms anew */
    unsigned workers, devices;
    struct crew_seat seats[WORKERS_MAX];
    char hosts[WORKERS_MAX][32];
};

/* What other cells are compared with. */
static struct cell lone_cell(const struct batching *batching, const char *optimizer, int64_t until)
{
    return (struct cell){
        .arrangement = &one_device, .count = 1, .batching = batching, .optimizer = optimizer, .until = until};
}

static int shards_of(const struct cell *cell)
{
    return cell->shards > 0 ? (int)cell->shards : SHARDS;
}

static int64_t largest_shard(const struct cell *cell)
{
    return (cell->batching->batch + shards_of(cell) - 1) / shards_of(cell);
}

/* A lone worker has whole slots. */
static bool is_sharded(const struct cell *cell)
{
    return cell->arrangement->sharded && cell->workers > 1;
}

/* One worker of a cell. */
struct worker {
    const struct cell *cell;
    unsigned rank;
    pthread_t thread;
    struct job_document job;
    struct storage_map *storage;
    struct strategy_device devices[2 * COUNT_MAX];
    unsigned device_count;
    struct dataset *dataset;
    struct sampler sampler;
    struct training_state state;
    struct endpoint *endpoint;
    struct member *member;
    struct strategy *strategy;
    struct ps_worker *strategy_of_servers; /* instead */
    struct error error;
    unsigned restores;
    bool failed;
    double loss, first_norm; /* of the last step; of the first one's gradient */
};

/* ---------------------------------------------------------------- snapshots */

static void snapshot_take(struct snapshot *snapshot, struct training_state *state)
{
    struct state_span spans[TRAINING_STATE_SPANS_MAX];
    unsigned count = training_state_spans(state, spans);
    snapshot->length = 0;
    for (unsigned i = 0; i < count; i++) {
        snapshot->bytes = memory_resize(snapshot->bytes, snapshot->length + spans[i].length, 1);
        memcpy(snapshot->bytes + snapshot->length, spans[i].bytes, spans[i].length);
        snapshot->length += spans[i].length;
    }
}

static void snapshot_put(const struct snapshot *snapshot, struct training_state *state)
{
    struct state_span spans[TRAINING_STATE_SPANS_MAX];
    unsigned count = training_state_spans(state, spans);
    const unsigned char *at = snapshot->bytes;
    for (unsigned i = 0; i < count; at += spans[i].length, i++)
        memcpy(spans[i].bytes, at, spans[i].length);
}

static int restore(void *context, struct error *error)
{
    struct worker *worker = context;
    const struct snapshot *snapshot = worker->cell->from;
    struct state_span spans[TRAINING_STATE_SPANS_MAX];
    unsigned count = training_state_spans(&worker->state, spans);
    if (snapshot == NULL)
        return 0;
    const unsigned char *at = snapshot->bytes;
    for (unsigned i = 0; i < count; at += spans[i].length, i++)
        memcpy(spans[i].bytes, at, spans[i].length);
    return training_state_to_device(&worker->state, error);
}

/* The state of the whole model, from those of the workers: some hold a part of it, some hold the same. */
static const struct parameter_tensor *tensor_of(const struct parameter_layout *layout, unsigned number)
{
    for (unsigned t = 0; t < layout->tensor_count; t++)
        if (layout->tensors[t].number == number)
            return &layout->tensors[t];
    return NULL;
}

static int64_t row_shift(const struct parameter_tensor *here)
{
    return here->first_row * (here->elements / here->shape[0]);
}

/* Ranks that hold the same tensor must have the same bits of it. */
static bool bring(float *to, const float *from, int64_t elements, bool first)
{
    if (first)
        memcpy(to, from, (size_t)elements * sizeof(*to));
    return memcmp(to, from, (size_t)elements * sizeof(*to)) == 0;
}

static bool add_part(struct training_state *whole, const struct training_state *part, bool *brought)
{
    bool same = true;
    for (unsigned t = 0; t < part->layout.tensor_count; t++) {
        const struct parameter_tensor *here = &part->layout.tensors[t],
                                      *there = tensor_of(&whole->layout, here->number);
        int64_t place = there->offset + row_shift(here);
        bool first = !brought[place];
        same &= bring(whole->parameters + place, part->parameters + here->offset, here->elements, first);
        for (unsigned s = 0; s < whole->slot_count; s++)
            same &= bring(whole->slots[s] + place, part->slots[s] + here->offset, here->elements, first);
        brought[place] = true;
    }
    return same;
}

static void take_part(struct training_state *part, const struct parameter_layout *layout, const float *flat)
{
    for (unsigned t = 0; t < part->layout.tensor_count; t++) {
        const struct parameter_tensor *here = &part->layout.tensors[t], *there = tensor_of(layout, here->number);
        for (unsigned s = 0; s <= part->slot_count; s++)
            memcpy((s ? part->slots[s - 1] : part->parameters) + here->offset,
                   flat + (int64_t)s * layout->elements + (there->offset + row_shift(here)),
                   (size_t)here->elements * sizeof(*flat));
    }
}

/* ---------------------------------------------------------------- shards */

/* One of a state's two shards, in `slot`: copied to or from where it is among whole slots, or compared (returns false). */
enum shard_move { SHARD_PUT, SHARD_TAKE, SHARD_COMPARE };

static bool shard_move(struct training_state *state, unsigned owner, int64_t at, unsigned slot, float *whole,
                       enum shard_move move)
{
    bool same = true;
    for (int64_t i = 0; i < shard_stripes(&state->shards, owner); i++) {
        struct shard_stripe stripe = shard_stripe(&state->shards, owner, i);
        float *here = state->slots[slot] + at + stripe.slot, *there = whole + stripe.first;
        size_t bytes = (size_t)stripe.elements * sizeof(float);
        if (move == SHARD_COMPARE)
            same &= memcmp(here, there, bytes) == 0;
        else
            memcpy(move == SHARD_PUT ? there : here, move == SHARD_PUT ? here : there, bytes);
    }
    return same;
}

/* Own ones are put or taken, those that are mirrored taken or compared. */
static bool shards_move(struct training_state *state, struct training_state *whole, bool mirrored, enum shard_move move)
{
    unsigned own = state->shard_rank, owner = mirrored ? shard_mirrored(&state->shards, own) : own;
    int64_t at = mirrored ? shard_elements(&state->shards, own) : 0;
    bool same = true;
    for (unsigned slot = 0; slot < state->slot_count; slot++)
        same &= shard_move(state, owner, at, slot, whole->slots[slot], move);
    return same;
}

/* A state as a rank alone would have it. */
static void whole_init(struct worker *worker, struct training_state *ret_whole)
{
    struct error error = ERROR_INIT;
    cr_assert_eq(training_state_init(ret_whole, worker->devices[0].device, graph_layout(worker->devices[0].graph),
                                     &worker->job.training.optimizer, 5, &error),
                 0);
}

/* From whole slots: both shards. */
static void take_shards(struct worker *worker, const struct snapshot *snapshot)
{
    struct training_state whole;
    whole_init(worker, &whole);
    snapshot_put(snapshot, &whole);
    shards_move(&worker->state, &whole, false, SHARD_TAKE);
    shards_move(&worker->state, &whole, true, SHARD_TAKE);
    memcpy(worker->state.parameters, whole.parameters, (size_t)whole.layout.elements * sizeof(float));
    worker->state.progress = whole.progress;
    training_state_release(&whole);
}

/* Assembles the whole state from the ranks' shards, each of which two ranks hold. */
static struct training_state assemble(struct worker *workers, unsigned count)
{
    struct training_state whole;
    size_t bytes = (size_t)workers[0].state.layout.elements * sizeof(float);
    whole_init(&workers[0], &whole);
    for (unsigned rank = 0; rank < count; rank++) {
        shards_move(&workers[rank].state, &whole, false, SHARD_PUT);
        cr_assert_arr_eq(workers[rank].state.parameters, workers[0].state.parameters, bytes);
        cr_assert_eq(workers[rank].state.progress.step, workers[0].state.progress.step);
    }
    for (unsigned rank = 0; rank < count; rank++)
        cr_assert(shards_move(&workers[rank].state, &whole, true, SHARD_COMPARE), "the mirror of rank %u", rank);
    memcpy(whole.parameters, workers[0].state.parameters, bytes);
    whole.progress = workers[0].state.progress;
    return whole;
}

/* A snapshot begins with the progress; parameters and slots follow. */
static int restore_part(void *context, bool chooses, char base[STRATEGY_BASE_MAX], struct error *error)
{
    struct worker *worker = context;
    const struct snapshot *snapshot = worker->cell->from;
    (void)chooses, (void)error;
    base[0] = '\0';
    worker->restores++;
    if (snapshot != NULL && is_sharded(worker->cell))
        take_shards(worker, snapshot);
    if (snapshot == NULL || is_sharded(worker->cell))
        return 0;
    memcpy(&worker->state.progress, snapshot->bytes, sizeof(worker->state.progress));
    const struct parameter_layout *layout = graph_layout(worker->devices[0].graph);
    size_t bytes = (size_t)layout->elements * (1 + worker->state.slot_count) * sizeof(float);
    SCOPED_FREE float *flat = memory_allocate(bytes, 1);
    memcpy(flat, snapshot->bytes + sizeof(worker->state.progress), bytes);
    take_part(&worker->state, layout, flat);
    return 0;
}

/* ---------------------------------------------------------------- a rank that stops */

static unsigned count_witnesses(const struct freeze *freeze)
{
    unsigned count = 0;
    for (unsigned rank = 0; rank < WORKERS_MAX; rank++)
        count += freeze->has_named[rank];
    return count;
}

static void maybe_freeze(struct worker *worker, enum freeze_at at)
{
    struct freeze *freeze = worker->cell->freeze;
    bool due = at == FREEZE_AT_END || worker->state.progress.step == 2;
    if (freeze == NULL || worker->rank != freeze->victim || freeze->at != at || !due)
        return;
    SCOPED_LOCK(&freeze->lock);
    freeze->stands_still = true;
    while (count_witnesses(freeze) < freeze->witnesses)
        pthread_cond_wait(&freeze->named, &freeze->lock);
}

/* By rank, role and address, among others perhaps. */
static void hear_stall(void *context, const char *text)
{
    struct worker *worker = context;
    struct freeze *freeze = worker->cell->freeze;
    char name[64];
    if (freeze == NULL)
        return;
    snprintf(name, sizeof(name), "rank %u (worker %u, %s:", freeze->victim, freeze->victim,
             worker->cell->hosts[freeze->victim]);
    const char *names = strstr(text, " for ");
    bool named = names && strstr(names, name) && (freeze->operation == NULL || strstr(text, freeze->operation));
    SCOPED_LOCK(&freeze->lock);
    named &= freeze->stands_still;
    if (named || !freeze->has_named[worker->rank])
        snprintf(freeze->words[worker->rank], sizeof(freeze->words[worker->rank]), "%s", text);
    freeze->has_named[worker->rank] |= named;
    pthread_cond_broadcast(&freeze->named);
}

/* ---------------------------------------------------------------- a worker */

#define JOB_MAX 32768

static int open_job(struct worker *worker, struct error *error)
{
    const struct cell *cell = worker->cell;
    SCOPED_BUFFER blocks = BUFFER_INIT(JOB_MAX), text = BUFFER_INIT(JOB_MAX);
    for (unsigned i = 0; i < cell->norms; i++)
        buffer_format(&blocks, "{\"type\":\"Conv2D\",\"filters\":2,\"kernel\":1},"
                               "{\"type\":\"BatchNorm\",\"statistics\":\"Global\"},");
    buffer_format(
        &text,
        "{\"name\":\"test\",\"strategy\":{\"type\":\"%s\"%s},\"workers\":{\"replicas\":%u},\"devices\":{\"count\":%u},"
        "\"model\":{\"inputShape\":[12,12,1],\"layers\":[%s{\"type\":\"Conv2D\",\"filters\":4,\"kernel\":3},{\"type\":"
        "\"BatchNorm\",\"statistics\":\"%s\"},{\"type\":"
        "\"ReLU\"},{\"type\":\"Flatten\"},{\"type\":\"Dense\",\"units\":%u},{\"type\":\"ReLU\"},{\"type\":\"Dropout\","
        "\"rate\":\"0.25\"},{\"type\":\"Dense\","
        "\"units\":10}],\"loss\":\"SoftmaxCrossEntropy\"},"
        "\"data\":{\"format\":\"Synthetic\",\"examples\":%d},\"training\":{\"steps\":%d,\"batchSize\":%d,"
        "\"logicalShards\":%d,\"seed\":5,\"optimizer\":%s}}",
        strategy_type_name(cell->arrangement->type), cell->local_steps > 0 ? ",\"localSteps\":2" : "", cell->workers,
        cell->devices, buffer_text(&blocks), cell->global ? "Global" : "Shard", cell->units > 0 ? cell->units : 128,
        cell->batching->examples, STEPS, cell->batching->batch, shards_of(cell), cell->optimizer);
    SCOPED_JSON *json = NULL;
    if (json_parse(buffer_text(&text), text.length, JOB_MAX, &json, error) < 0)
        return -1;
    return job_document_parse(json, &worker->job, error);
}

static int open_devices(struct worker *worker, struct error *error)
{
    for (unsigned i = 0; i < worker->cell->devices; i++, worker->device_count++) {
        struct strategy_device *device = &worker->devices[i];
        if (device_open(&(struct device_options){.index = (int)i, .threads = 1}, &device->device, error) < 0)
            return -1;
        struct graph_options options = {
            .device = device->device, .model = &worker->job.model, .max_examples = largest_shard(worker->cell)};
        if (graph_new(&options, &device->graph, error) < 0)
            return -1;
    }
    return 0;
}

/* ---- a target that no model knows */

static struct dataset_kind spoilt_kind;
static int spoilt_example;

static int read_spoilt(const struct dataset *dataset, int64_t index, void *input, void *target, struct error *error)
{
    if (dataset_synthetic.read(dataset, index, input, target, error) < 0)
        return -1;
    if (index == spoilt_example)
        *(int32_t *)target = 99;
    return 0;
}

/* Call it before workers are started, since all read these. */
static void prepare_spoilt(int example)
{
    spoilt_kind = dataset_synthetic;
    spoilt_kind.read = read_spoilt;
    spoilt_example = example;
}

static void maybe_spoil(struct worker *worker)
{
    if (worker->cell->spoilt > 0)
        worker->dataset->kind = &spoilt_kind;
}

static int open_model(struct worker *worker, struct error *error)
{
    if (storage_map_parse(NULL, &worker->storage, error) < 0 || open_job(worker, error) < 0 ||
        open_devices(worker, error) < 0 ||
        dataset_open(&worker->job.data, worker->storage, SPLIT_TRAIN, graph_example_format(worker->devices[0].graph),
                     &worker->dataset, error) < 0)
        return -1;
    maybe_spoil(worker);
    worker->sampler = (struct sampler){.seed = 5, .count = dataset_count(worker->dataset)};
    if (is_sharded(worker->cell))
        return sharded_optimizer_init_state(&worker->state, worker->devices, worker->cell->devices,
                                            &worker->job.training.optimizer, 5, worker->rank, worker->cell->workers,
                                            error);
    if (training_state_init(&worker->state, worker->devices[0].device, graph_layout(worker->devices[0].graph),
                            &worker->job.training.optimizer, 5, error) < 0)
        return -1;
    return worker->cell->local_steps > 0 ? training_state_add_slot(&worker->state, LOCAL_ROUNDS_SLOT, error) : 0;
}

static int open_crew(struct worker *worker, struct error *error)
{
    const struct cell *cell = worker->cell;
    if (cell->workers == 1)
        return 0;
    if (endpoint_open(cell->hosts[worker->rank], 0, &worker->endpoint, error) < 0)
        return -1;
    struct member_options options = {.job_uid = "uid",
                                     .attempt = 1,
                                     .incarnation = 1,
                                     .rank = worker->rank,
                                     .size = cell->workers,
                                     .seats = cell->seats,
                                     .listen_address = cell->hosts[worker->rank],
                                     .data_port = endpoint_port(worker->endpoint),
                                     .logical_shards = (unsigned)shards_of(cell)};
    return member_start(&options, &worker->member, error);
}

static void freeze_at_change(void *context)
{
    maybe_freeze(context, FREEZE_AT_CHANGE);
}

static double the_rate(void *context, int64_t step)
{
    (void)context, (void)step;
    return RATE;
}

static unsigned no_votes(void *context)
{
    (void)context;
    return 0;
}

static struct strategy_options options_of(struct worker *worker)
{
    const struct cell *cell = worker->cell;
    unsigned stages = cell->arrangement->stages;
    return (struct strategy_options){.type = cell->arrangement->type,
                                     .crew.collective = cell->arrangement->collective,
                                     .device = worker->devices[0].device,
                                     .graph = worker->devices[0].graph,
                                     .devices = worker->devices,
                                     .device_count = worker->device_count,
                                     .dataset = worker->dataset,
                                     .sampler = &worker->sampler,
                                     .optimizer = &worker->job.training.optimizer,
                                     .state = &worker->state,
                                     .global_batch = cell->batching->batch,
                                     .logical_shards = (unsigned)shards_of(cell),
                                     .gradient_clip_norm = cell->clip,
                                     .crew.member = worker->member,
                                     .crew.endpoint = worker->endpoint,
                                     .crew.job_uid = "uid",
                                     .crew.machine = 1 + worker->rank * 2 % 3, /* ranks 0 and 3 are near */
                                     .pipeline.model = &worker->job.model,
                                     .pipeline.stages = stages == COUNT_STAGES ? cell->count : stages,
                                     .pipeline.recompute = cell->arrangement->pods > 1,
                                     .crew.size = cell->workers,
                                     .crew.rank = worker->rank,
                                     .crew.stall_ms = cell->freeze ? 100 : 0,
                                     .calls.on_stall = hear_stall,
                                     .calls.before_change = freeze_at_change,
                                     .spec = cell->local_steps > 0 ? &worker->job.strategy : NULL,
                                     .total_steps = cell->local_steps > 0 ? &cell->until : NULL,
                                     .calls.learning_rate = the_rate,
                                     .calls.votes = no_votes,
                                     .calls.restore = restore,
                                     .calls.restore_part = restore_part,
                                     .calls.context = worker};
}

static int open_strategy(struct worker *worker, struct error *error)
{
    struct strategy_options options = options_of(worker);
    return strategy_open(&options, &worker->strategy, error);
}

/* As if the crew had been lost after this rank's sums were there and before it knew everybody's norm. */
static int take_back(struct worker *worker, struct snapshot *before, struct error *error)
{
    if (worker->rank > 0)
        snapshot_put(before, &worker->state);
    free(before->bytes);
    return strategy_reform(worker->strategy, error);
}

/* Evaluates and gathers the model for an export, which no rank does alone if each has only a part of the model. */
static int finish_as_a_crew(struct worker *worker, struct error *error)
{
    struct loss_sums sums;
    SCOPED_FREE float *whole =
        memory_allocate((size_t)graph_layout(worker->devices[0].graph)->elements, sizeof(*whole));
    if (strategy_evaluates(worker->strategy) &&
        strategy_evaluate(worker->strategy, worker->dataset, 0, worker->cell->batching->batch, &sums, error) < 0)
        return -1;
    return strategy_has_gathered_model(worker->strategy)
               ? 0
               : strategy_gather(worker->strategy, worker->rank == 0 ? whole : NULL, error);
}

static int train(struct worker *worker, struct error *error)
{
    double done = 1;
    if (open_model(worker, error) < 0 || open_crew(worker, error) < 0 || open_strategy(worker, error) < 0 ||
        strategy_reform(worker->strategy, error) < 0)
        return -1;
    while (worker->state.progress.step < worker->cell->until) {
        struct strategy_result result;
        struct snapshot before = {0};
        bool taken_back = worker->state.progress.step + 1 == worker->cell->taken_back;
        maybe_freeze(worker, FREEZE_AT_STEP);
        if (taken_back)
            snapshot_take(&before, &worker->state);
        if (strategy_step(worker->strategy, RATE, taken_back ? STRATEGY_VOTE_REFORM : 0, &result, error) < 0 ||
            (taken_back && take_back(worker, &before, error) < 0))
            return -1;
        worker->loss = result.loss;
        worker->first_norm = result.step == 1 ? result.gradient_norm : worker->first_norm;
    }
    maybe_freeze(worker, FREEZE_AT_END);
    if (worker->cell->freeze && finish_as_a_crew(worker, error) < 0)
        return -1;
    return strategy_sum(worker->strategy, &done, 1, error);
}

/* The others would wait for one that is gone, in silence: the case ends with the first that fails. */
_Noreturn static void end_case(const struct worker *worker)
{
    fprintf(stderr, "%s of %u: rank %u fails after step %lld: %s\n", worker->cell->arrangement->name,
            worker->cell->count, worker->rank, (long long)worker->state.progress.step, worker->error.message);
    _exit(EXIT_FAILURE);
}

static void *worker_main(void *context)
{
    struct worker *worker = context;
    worker->failed = train(worker, &worker->error) < 0;
    if (worker->failed && worker->cell->spoilt == 0)
        end_case(worker);
    if (worker->failed) { /* its process ends */
        strategy_close(worker->strategy);
        worker->strategy = NULL;
    }
    return NULL;
}

static void worker_close(struct worker *worker)
{
    strategy_close(worker->strategy);
    member_free(worker->member);
    endpoint_free(worker->endpoint);
    training_state_release(&worker->state);
    dataset_free(worker->dataset);
    for (unsigned i = 0; i < worker->cell->devices; i++) {
        graph_free(worker->devices[i].graph);
        device_close(worker->devices[i].device);
    }
    storage_map_free(worker->storage);
    job_document_release(&worker->job);
}

/* ---------------------------------------------------------------- a cell */

static void name_crew(struct cell *cell)
{
    static unsigned used;
    unsigned pid = (unsigned)getpid();
    bool counts_workers = cell->arrangement->counts_workers;
    unsigned pods = cell->arrangement->pods ? cell->arrangement->pods : 1;
    cell->workers = counts_workers ? cell->count * pods : 1;
    cell->devices = counts_workers ? cell->arrangement->worker_devices : cell->count;
    for (unsigned rank = 0; rank < cell->workers; rank++, used++) {
        snprintf(cell->hosts[rank], sizeof(cell->hosts[rank]), "127.%u.%u.%u", 1 + (pid >> 8) % 250,
                 (pid + used / 250) & 0xff, 1 + used % 250);
        cell->seats[rank] = (struct crew_seat){"worker", rank, cell->hosts[rank], PORT};
    }
}

/* The results, which all workers of a cell must have alike. */
struct outcome {
    uint32_t digest;
    double loss, first_norm;
};

/* Where each tensor lies in the flat arrays; the same in every cell but those with further blocks. */
#define TENSORS_MAX 64
static struct {
    unsigned count;
    int64_t elements, offsets[TENSORS_MAX], lengths[TENSORS_MAX];
} tensors;

static void note_tensors(const struct parameter_layout *layout)
{
    tensors.elements = layout->elements;
    tensors.count = layout->tensor_count < TENSORS_MAX ? layout->tensor_count : TENSORS_MAX;
    for (unsigned t = 0; t < tensors.count; t++) {
        tensors.offsets[t] = layout->tensors[t].offset;
        tensors.lengths[t] = layout->tensors[t].elements;
    }
}

static struct training_state whole_state(struct worker *workers, unsigned count)
{
    struct training_state whole;
    const struct parameter_layout *layout = graph_layout(workers[0].devices[0].graph);
    SCOPED_FREE bool *brought = memory_allocate((size_t)layout->elements, sizeof(*brought));
    cr_assert_eq(
        training_state_init(&whole, workers[0].devices[0].device, layout, &workers[0].job.training.optimizer, 5, NULL),
        0);
    whole.progress = workers[0].state.progress;
    for (unsigned rank = 0; rank < count; rank++) {
        cr_assert_eq(memcmp(&workers[rank].state.progress, &whole.progress, sizeof(whole.progress)), 0);
        cr_assert(add_part(&whole, &workers[rank].state, brought), "rank %u of %u has other bits", rank, count);
    }
    for (unsigned t = 0; t < layout->tensor_count; t++)
        cr_assert(brought[layout->tensors[t].offset]);
    return whole;
}

static struct outcome run_whole_cell(struct cell cell, struct snapshot *ret_snapshot)
{
    static struct worker workers[WORKERS_MAX];
    memset(workers, 0, sizeof(workers));
    name_crew(&cell);
    for (unsigned rank = 0; rank < cell.workers; rank++) {
        workers[rank].cell = &cell;
        workers[rank].rank = rank;
        cr_assert_eq(pthread_create(&workers[rank].thread, NULL, worker_main, &workers[rank]), 0);
    }
    for (unsigned rank = 0; rank < cell.workers; rank++)
        pthread_join(workers[rank].thread, NULL);
    for (unsigned rank = 0; rank < cell.workers; rank++) {
        cr_assert(!workers[rank].failed, "%s of %u, rank %u: %s", cell.arrangement->name, cell.count, rank,
                  workers[rank].error.message);
        cr_assert_eq(workers[rank].loss, workers[0].loss);
        cr_assert(workers[rank].restores <= 1);
    }
    struct training_state whole =
        is_sharded(&cell) ? assemble(workers, cell.workers) : whole_state(workers, cell.workers);
    struct outcome outcome = {training_state_digest(&whole), workers[0].loss, workers[0].first_norm};
    if (ret_snapshot != NULL)
        snapshot_take(ret_snapshot, &whole);
    note_tensors(&whole.layout);
    training_state_release(&whole);
    for (unsigned rank = cell.workers; rank-- > 0;)
        worker_close(&workers[rank]);
    return outcome;
}

static uint32_t run_cell(struct cell cell, struct snapshot *ret_snapshot)
{
    return run_whole_cell(cell, ret_snapshot).digest;
}

static void expect_bits_of_one_device(const struct arrangement *arrangement)
{
    SKIP_WHERE_IT_TAKES_TOO_LONG();
    for (unsigned b = 0; b < BATCHINGS; b++) {
        for (unsigned o = 0; o < OPTIMIZERS; o++) {
            struct cell cell = lone_cell(&batchings[b], optimizers[o], STEPS);
            cell.clip = o == 0 ? 0.5 : 0;
            uint32_t reference = run_cell(cell, NULL);
            cell.arrangement = arrangement;
            for (cell.count = 1; cell.count <= COUNT_MAX; cell.count++)
                if (runs_here(b, cell.count, o))
                    cr_expect_eq(run_cell(cell, NULL), reference, "%s of %u, %s batches, optimizer %s",
                                 arrangement->name, cell.count, batchings[b].name, optimizers[o]);
        }
    }
}

/* A test each, so that they run side by side and one that fails is named. */
#define MATRIX(number, name)                                                                                           \
    Test(synchronous, name, .timeout = 240)                                                                            \
    {                                                                                                                  \
        expect_bits_of_one_device(&arrangements[number]);                                                              \
    }
MATRIX(0, mirrored)
MATRIX(1, mirrored_reduce_to_one)
MATRIX(2, mirrored_hierarchical)
MATRIX(3, central_storage)
MATRIX(4, central_storage_reduce_to_one)
MATRIX(5, multi_worker_mirrored)
MATRIX(6, multi_worker_mirrored_of_two_devices)
MATRIX(7, multi_worker_mirrored_reduce_to_one)
MATRIX(8, multi_worker_mirrored_hierarchical)
MATRIX(9, pipeline_of_devices)
MATRIX(10, pipeline_of_workers)
MATRIX(11, pipeline_replicas_of_two_devices)
MATRIX(12, pipeline_replicas_of_two_workers)
MATRIX(13, multi_worker_mirrored_sharded)
MATRIX(14, multi_worker_mirrored_of_two_devices_sharded)

/* ---------------------------------------------------------------- parameter servers */

#define SERVERS_MAX 2
#define UNITS_OF_TWO_SERVERS 256 /* a matrix of 400 KiB: cut over all servers */

static const struct arrangement parameter_server = {
    "ParameterServer", STRATEGY_PARAMETER_SERVER, true, 1, COLLECTIVE_AUTO, 0, 0, false};
static const struct arrangement parameter_server_of_two_devices = {
    "ParameterServer of two devices", STRATEGY_PARAMETER_SERVER, true, 2, COLLECTIVE_AUTO, 0, 0, false};
static const struct arrangement parameter_server_of_three_devices = {
    "ParameterServer of three devices", STRATEGY_PARAMETER_SERVER, true, 3, COLLECTIVE_AUTO, 0, 0, false};

struct server_crew {
    const struct cell *cell;
    unsigned server_count, shares; /* of a batch: a logical shard for each device of a worker */
    struct worker workers[COUNT_MAX];
    struct trainer trainers[COUNT_MAX];
    struct crew_seat seats[COUNT_MAX], server_seats[SERVERS_MAX];
    struct placement placement;
    struct device *devices[SERVERS_MAX];
    struct ps_server *servers[SERVERS_MAX];
    struct dispatcher *dispatcher;
    struct training_state whole; /* what they have saved */
};

static const struct identity a_worker = {.job_uid = "uid", .attempt = 1, .incarnation = 1};

static int load_fresh(void *context, const char *checkpoint, struct variables *variables, struct error *error)
{
    const struct worker *worker = &((struct server_crew *)context)->workers[0];
    const struct optimizer_spec none = {.type = OPTIMIZER_SGD};
    const struct ticket_set nothing = {0};
    struct training_state state;
    (void)checkpoint;
    if (training_state_init(&state, worker->devices[0].device, graph_layout(worker->devices[0].graph), &none, 5,
                            error) < 0)
        return -1;
    variables_start(variables, state.host.parameters, &nothing, 0);
    training_state_release(&state);
    return 0;
}

static int store_in_whole(void *context, const char *directory, const struct variables *copy, char ret_name[64],
                          int64_t *ret_bytes, uint32_t *ret_crc, struct error *error)
{
    struct server_crew *crew = context;
    (void)directory, (void)ret_name, (void)ret_bytes, (void)ret_crc, (void)error;
    placement_unpack(&crew->placement, copy->options.server, copy->parameters, crew->whole.parameters);
    for (unsigned s = 0; s < copy->slot_count; s++)
        placement_unpack(&crew->placement, copy->options.server, copy->slots[s], crew->whole.slots[s]);
    return 0;
}

static void open_servers(struct server_crew *crew)
{
    const struct parameter_layout *layout = graph_layout(crew->workers[0].devices[0].graph);
    struct error error = ERROR_INIT;
    placement_init(&crew->placement, layout, crew->server_count);
    for (unsigned i = 0; i < crew->server_count; i++) {
        crew->server_seats[i] = (struct crew_seat){"ps", i, crew->cell->hosts[crew->cell->workers + i], 0};
        cr_assert_eq(device_open(&(struct device_options){.threads = 1}, &crew->devices[i], NULL), 0);
    }
    for (unsigned i = 0; i < crew->server_count; i++) {
        const struct ps_server_options options = {
            .job_uid = "uid",
            .generation = {.attempt = 1, .incarnation = 1},
            .listen_address = crew->server_seats[i].host,
            .port = PORT,
            .variables = {.device = crew->devices[i],
                          .optimizer = &crew->workers[0].job.training.optimizer,
                          .placement = &crew->placement,
                          .server = i,
                          .shares = crew->shares},
            .digest = parameter_layout_digest(layout),
            .load = load_fresh,
            .store = store_in_whole,
            .context = crew,
        };
        crew->server_seats[i].port = PORT;
        cr_assert_eq(ps_server_start(&options, &crew->servers[i], &error), 0, "%s", error.message);
    }
}

static double same_rate(void *context, int64_t step)
{
    (void)context, (void)step;
    return 0.02;
}

static void open_dispatcher(struct server_crew *crew)
{
    struct error error = ERROR_INIT;
    const struct dispatcher_options options = {
        .job_uid = "uid",
        .generation = {.attempt = 1, .incarnation = 1},
        .listen_address = crew->cell->hosts[0],
        .servers = crew->server_seats,
        .server_count = crew->server_count,
        .digest = parameter_layout_digest(graph_layout(crew->workers[0].devices[0].graph)),
        .scheduler = {.mode = PARAMETER_SERVER_SYNCHRONOUS,
                      .tickets_per_step = crew->shares,
                      .end = crew->cell->until * crew->shares},
        .gradient_clip_norm = crew->cell->clip,
        .rate = same_rate,
    };
    cr_assert_eq(dispatcher_start(&options, &crew->dispatcher, &error), 0, "%s", error.message);
}

static void *hand_main(void *context)
{
    struct worker *worker = context;
    worker->failed = ps_worker_work(worker->strategy_of_servers, &worker->error) < 0;
    return NULL;
}

static void start_hand(struct server_crew *crew, unsigned rank)
{
    struct worker *worker = &crew->workers[rank];
    struct trainer *trainer = &crew->trainers[rank];
    worker->job.strategy.mode = PARAMETER_SERVER_SYNCHRONOUS;
    *trainer = (struct trainer){
        .identity = &a_worker,
        .job = &worker->job,
        .crew = {.seats = crew->seats,
                 .size = crew->cell->workers,
                 .part = CREW_TRAINS,
                 .rank = rank,
                 .servers = crew->server_seats,
                 .server_count = crew->server_count},
        .plan = {.global_batch = crew->cell->batching->batch,
                 .total_steps = crew->cell->until,
                 .learning_rate_factor = 1},
        .device_count = worker->device_count,
        .device = worker->devices[0].device,
        .graph = worker->devices[0].graph,
        .training = worker->dataset,
        .sampler = worker->sampler,
    };
    memcpy(trainer->devices, worker->devices, sizeof(worker->devices));
    cr_assert_eq(device_stream_new(trainer->device, &trainer->stream, NULL), 0);
    cr_assert_eq(ps_worker_new(trainer, &worker->strategy_of_servers, &worker->error), 0, "%s", worker->error.message);
    cr_assert_eq(pthread_create(&worker->thread, NULL, hand_main, worker), 0);
}

static void open_server_crew(struct server_crew *crew)
{
    unsigned count = crew->cell->workers;
    for (unsigned rank = 0; rank < count; rank++) {
        crew->workers[rank].cell = crew->cell;
        crew->workers[rank].rank = rank;
        cr_assert_eq(open_model(&crew->workers[rank], &crew->workers[rank].error), 0, "%s",
                     crew->workers[rank].error.message);
    }
    whole_init(&crew->workers[0], &crew->whole);
    open_servers(crew);
    open_dispatcher(crew);
    for (unsigned rank = 0; rank < count; rank++)
        crew->seats[rank] = (struct crew_seat){"worker", rank, crew->cell->hosts[0], dispatcher_port(crew->dispatcher)};
    for (unsigned rank = 0; rank < count; rank++)
        start_hand(crew, rank);
}

static void begin_afresh(struct server_crew *crew)
{
    const struct recovery_options options = {.mode = PARAMETER_SERVER_SYNCHRONOUS,
                                             .server_count = crew->server_count,
                                             .per_step = crew->shares,
                                             .chief_incarnation = 1};
    struct server_standing standings[PS_SERVERS_MAX];
    SCOPED_FREE struct server_start *starts = memory_allocate(PS_SERVERS_MAX, sizeof(*starts));
    struct recovery_source nothing = {.path = memory_copy_string("")};
    struct dispatcher_plan plan;
    int64_t lost;
    cr_assert_eq(dispatcher_await_servers(crew->dispatcher, standings, NULL), 0);
    recovery_plan(&options, recovery_choose(&options, standings), standings, &nothing, starts, &plan);
    cr_assert_eq(dispatcher_begin(crew->dispatcher, &plan, &lost, NULL), 0);
    for (unsigned i = 0; i < crew->server_count; i++)
        server_standing_release(&standings[i]);
    recovery_plan_release(&plan, starts);
    recovery_source_release(&nothing);
}

static void follow_to_the_end(struct server_crew *crew)
{
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    struct dispatcher_event event = {.kind = EVENT_NONE};
    struct error error = ERROR_INIT;
    while (event.kind != EVENT_OVER) {
        cr_assert_eq(dispatcher_next_event(crew->dispatcher, 1000, &event, &error), 0, "%s", error.message);
        cr_assert_neq(event.kind, EVENT_SERVER_LOST);
    }
    cr_assert_eq(dispatcher_save(crew->dispatcher, "nowhere", false, saved, &error), 0, "%s", error.message);
    for (unsigned i = 0; i < crew->server_count; i++) {
        cr_assert_eq(saved[i].updates, crew->cell->until);
        ticket_set_release(&saved[i].tickets);
    }
}

static void close_servers(struct server_crew *crew)
{
    for (unsigned i = 0; i < crew->server_count; i++)
        ps_server_free(crew->servers[i]);
}

static void close_server_crew(struct server_crew *crew)
{
    dispatcher_finish(crew->dispatcher);
    for (unsigned rank = 0; rank < crew->cell->workers; rank++) {
        pthread_join(crew->workers[rank].thread, NULL);
        cr_assert(!crew->workers[rank].failed, "%s", crew->workers[rank].error.message);
        ps_worker_free(crew->workers[rank].strategy_of_servers);
        device_stream_free(crew->trainers[rank].stream);
    }
    dispatcher_free(crew->dispatcher);
    placement_release(&crew->placement);
    training_state_release(&crew->whole);
    for (unsigned i = 0; i < crew->server_count; i++)
        device_close(crew->devices[i]);
    for (unsigned rank = 0; rank < crew->cell->workers; rank++)
        worker_close(&crew->workers[rank]);
}

/* Where the examples stand after the last step, as a checkpoint of servers says it. */
static void fill_progress(struct server_crew *crew)
{
    struct training_progress *progress = &crew->whole.progress;
    const struct ticket_grant base = {.per_step = crew->shares};
    progress->step = crew->cell->until;
    ps_share_position(&crew->trainers[0], &base, progress->step, &progress->data_epoch, &progress->examples_consumed);
}

static uint32_t run_servers(struct cell cell, unsigned servers)
{
    static struct server_crew crew;
    unsigned count = cell.count;
    cell.count += servers; /* the servers have the last names */
    name_crew(&cell);
    cell.count = cell.workers = count;
    memset(&crew, 0, sizeof(crew));
    crew.cell = &cell;
    crew.server_count = servers;
    crew.shares = (unsigned)shards_of(&cell) / cell.devices;
    open_server_crew(&crew);
    begin_afresh(&crew);
    follow_to_the_end(&crew);
    close_servers(&crew);
    fill_progress(&crew);
    uint32_t digest = training_state_digest(&crew.whole);
    close_server_crew(&crew);
    return digest;
}

static void expect_bits_of_servers(const struct arrangement *arrangement, unsigned shards,
                                   const struct batching *batching, unsigned servers)
{
    SKIP_WHERE_IT_TAKES_TOO_LONG();
    for (unsigned o = 0; o < OPTIMIZERS; o++) {
        struct cell cell = lone_cell(batching, optimizers[o], STEPS);
        cell.clip = o == 0 ? 0.5 : 0;
        cell.shards = shards;
        cell.units = servers > 1 ? UNITS_OF_TWO_SERVERS : 0;
        uint32_t reference = run_cell(cell, NULL);
        cell.arrangement = arrangement;
        for (cell.count = 1; cell.count <= COUNT_MAX; cell.count++)
            if (runs_here((unsigned)(batching - batchings), cell.count, o))
                cr_expect_eq(run_servers(cell, servers), reference, "%s, %u workers, %u servers, %s batches, %s",
                             arrangement->name, cell.count, servers, batching->name, optimizers[o]);
    }
}

/* A worker may come to the servers after the run is over and they have gone, because another has computed its share. */
Test(synchronous, a_worker_that_is_late_does_not_wait_for_servers_that_have_gone, .timeout = 240)
{
    static struct server_crew crew;
    struct cell cell = {
        .arrangement = &parameter_server, .count = 2, .batching = &batchings[0], .optimizer = optimizers[0]};
    struct dispatcher_event event = {.kind = EVENT_NONE};
    cell.until = 100000;
    name_crew(&cell);
    cell.count = cell.workers = 1;
    crew.cell = &cell;
    crew.server_count = 1;
    crew.shares = SHARDS;
    open_server_crew(&crew);
    begin_afresh(&crew);
    while (event.kind != EVENT_STEP)
        cr_assert_eq(dispatcher_next_event(crew.dispatcher, 1000, &event, NULL), 0);
    close_servers(&crew);
    close_server_crew(&crew);
}

#define SERVERS_MATRIX(name, batching, servers)                                                                        \
    Test(synchronous, name, .timeout = 240)                                                                            \
    {                                                                                                                  \
        expect_bits_of_servers(&parameter_server, 0, &batchings[batching], servers);                                   \
    }
SERVERS_MATRIX(parameter_server_even, 0, 1)
SERVERS_MATRIX(parameter_server_uneven, 1, 1)
SERVERS_MATRIX(parameter_server_tiny_tail, 2, 1)
SERVERS_MATRIX(parameter_servers_even, 0, 2)
SERVERS_MATRIX(parameter_servers_uneven, 1, 2)
SERVERS_MATRIX(parameter_servers_tiny_tail, 2, 2)

/* Four shares of a batch each time. */
Test(synchronous, parameter_server_of_several_devices, .timeout = 240)
{
    for (size_t i = 0; i < BATCHINGS; i++) {
        expect_bits_of_servers(&parameter_server_of_two_devices, 8, &batchings[i], 1);
        expect_bits_of_servers(&parameter_server_of_three_devices, 12, &batchings[i], 1);
    }
}

/* Those that compute all shards of a batch at once. */
static bool can_be_global(const struct arrangement *arrangement)
{
    return arrangement->type != STRATEGY_PIPELINE;
}

static void expect_global_bits(const struct batching *batching)
{
    struct cell cell = lone_cell(batching, optimizers[0], STEPS);
    cell.global = true;
    uint32_t reference = run_cell(cell, NULL);
    for (unsigned a = 0; a < ARRANGEMENTS; a++) {
        if (!can_be_global(&arrangements[a]))
            continue;
        cell.arrangement = &arrangements[a];
        for (cell.count = 2; cell.count <= COUNT_MAX; cell.count++)
            cr_expect_eq(run_cell(cell, NULL), reference, "%s of %u, %s batches", arrangements[a].name, cell.count,
                         batching->name);
    }
}

#define GLOBAL_MATRIX(name, batching)                                                                                  \
    Test(synchronous, global_statistics_##name, .timeout = 240)                                                        \
    {                                                                                                                  \
        SKIP_WHERE_IT_TAKES_TOO_LONG();                                                                                \
        expect_global_bits(&batchings[batching]);                                                                      \
    }
GLOBAL_MATRIX(even, 0)
GLOBAL_MATRIX(uneven, 1)
GLOBAL_MATRIX(tiny, 2)

static void expect_near(double value, double reference, double tolerance, const char *what, const struct cell *cell)
{
    cr_expect(fabs(value - reference) <= tolerance * fabs(reference), "%s of %u, %s batches, %s: %.9g, not %.9g",
              cell->arrangement->name, cell->count, cell->batching->name, what, value, reference);
}

/* Returns an array of a snapshot, after its progress: the parameters, then each slot. */
static const float *flat_array(const struct snapshot *snapshot, unsigned number)
{
    size_t elements = (size_t)tensors.elements;
    cr_assert_geq(snapshot->length, sizeof(struct training_progress) + (number + 1) * elements * sizeof(float));
    return (const float *)(snapshot->bytes + sizeof(struct training_progress)) + number * elements;
}

static double largest_of(const float *values, int64_t count)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)values[i]));
    return largest;
}

/* Compares component by component, relative to the largest of its tensor, because a sum that almost cancels has no correct digits.
 * Neither has the bias of a convolution before a normalisation, which removes the mean: its gradient is only rounding. */
static void expect_near_components(const float *values, const float *reference, double tolerance, const char *what,
                                   const struct cell *cell)
{
    double nothing = 1e-5 * largest_of(reference, tensors.elements);
    unsigned compared = 0;
    for (unsigned t = 0; t < tensors.count; t++) {
        int64_t first = tensors.offsets[t], worst = first;
        double largest = largest_of(reference + first, tensors.lengths[t]);
        for (int64_t i = first; i < first + tensors.lengths[t]; i++)
            if (!(fabs((double)values[i] - reference[i]) <= fabs((double)values[worst] - reference[worst])))
                worst = i;
        double tolerated = largest > nothing ? tolerance * largest : nothing;
        compared += largest > nothing;
        cr_expect(fabs((double)values[worst] - reference[worst]) <= tolerated,
                  "%s of %u, %s batches, %s: component %lld of tensor %u is %.9g, not %.9g (of at most %g)",
                  cell->arrangement->name, cell->count, cell->batching->name, what, (long long)(worst - first), t,
                  (double)values[worst], (double)reference[worst], largest);
    }
    cr_expect_geq(compared, 6, "too few tensors had anything to compare: %u of %u", compared, tensors.count);
}

struct ring_bound {
    int64_t steps;
    double parameters, loss;
};

/* Returns the relative distance of the parameters, except for tensors with a first gradient that is only rounding, because AdamW takes
 * whole steps with those. Norms are compared, since AdamW does the same with single components whose gradient crosses zero. */
static double distance_of_parameters(const float *values, const float *reference, const float *gradient)
{
    double nothing = 1e-5 * largest_of(gradient, tensors.elements), apart = 0, whole = 0;
    for (unsigned t = 0; t < tensors.count; t++) {
        int64_t first = tensors.offsets[t], length = tensors.lengths[t];
        if (largest_of(gradient + first, length) <= nothing)
            continue;
        for (int64_t i = first; i < first + length; i++) {
            apart += pow((double)values[i] - reference[i], 2);
            whole += pow(reference[i], 2);
        }
    }
    return sqrt(apart / whole);
}

/* OneDevice's run of a cell, which all rings are held against; after its first step the first slot is the gradient, or (AdamW) a
 * tenth of it. */
struct ring_reference {
    struct outcome outcome;
    struct snapshot state, first_step;
};

static void make_reference(struct cell cell, int64_t steps, struct ring_reference *reference)
{
    cell.arrangement = &one_device;
    cell.count = 1;
    cell.until = 1;
    run_whole_cell(cell, &reference->first_step);
    cell.until = steps;
    reference->outcome = run_whole_cell(cell, &reference->state);
}

static void expect_to_stay_near(struct cell cell, const struct ring_bound *bound,
                                const struct ring_reference *reference)
{
    struct snapshot ring = {0};
    cell.until = bound->steps;
    struct outcome outcome = run_whole_cell(cell, &ring);
    if (bound->steps == 10 && cell.count == 3)
        cr_expect_eq(run_cell(cell, NULL), outcome.digest, "%s of %u, twice", cell.arrangement->name, cell.count);
    const float *gradient = flat_array(&reference->first_step, 1);
    const float *parameters = flat_array(&ring, 0), *lone = flat_array(&reference->state, 0);
    if (bound->steps == 1)
        expect_near_components(flat_array(&ring, 1), gradient, 1e-6, "gradient of step 1", &cell);
    if (cell.optimizer == optimizers[0])
        expect_near_components(parameters, lone, bound->parameters, "parameters", &cell);
    double distance = distance_of_parameters(parameters, lone, gradient);
    cr_expect(distance <= bound->parameters, "%s of %u, %s batches, %s: parameters are %g apart after %lld steps",
              cell.arrangement->name, cell.count, cell.batching->name, cell.optimizer, distance,
              (long long)bound->steps);
    expect_near(outcome.first_norm, reference->outcome.first_norm, 1e-6, "norm of step 1", &cell);
    expect_near(outcome.loss, reference->outcome.loss, bound->loss, "loss", &cell);
    free(ring.bytes);
}

/* Every ring of two, three and four, with each optimizer. */
static void expect_rings_to_stay_near(const struct ring_bound *bound, unsigned batchings_from, unsigned batchings_to)
{
    SKIP_WHERE_IT_TAKES_TOO_LONG();
    for (unsigned b = batchings_from; b < batchings_to; b++) {
        for (unsigned o = 0; o < OPTIMIZERS; o++) {
            struct cell cell = {.batching = &batchings[b], .optimizer = optimizers[o]};
            struct ring_reference reference = {0};
            make_reference(cell, bound->steps, &reference);
            for (unsigned r = 0; r < RINGS; r++)
                for (cell.count = 2; cell.count <= COUNT_MAX; cell.count++) {
                    cell.arrangement = &rings[r];
                    bool is_short =
                        bound->steps < 100 || cell.count == 3 || o == 0; /* long cells: not every combination */
                    if (is_short && runs_here(b, cell.count, o))
                        expect_to_stay_near(cell, bound, &reference);
                }
            free(reference.state.bytes);
            free(reference.first_step.bytes);
        }
    }
}

Test(synchronous, a_ring_has_the_gradients_of_one_device, .timeout = 240)
{
    expect_rings_to_stay_near(&(struct ring_bound){1, 1e-6, 1e-6}, 0, BATCHINGS);
}

Test(synchronous, a_ring_stays_near_for_10_steps_and_repeats_itself, .timeout = 600)
{
    expect_rings_to_stay_near(&(struct ring_bound){10, 1e-5, 1e-5}, 0, BATCHINGS);
}

/* A sanitizer sees nothing in a hundred steps that it has not seen in the ten of the case above. */
static void expect_rings_to_stay_near_for_100_steps(unsigned batching)
{
    if (IS_SANITIZED)
        cr_skip_test("ten steps show a sanitizer all that a hundred do");
    expect_rings_to_stay_near(&(struct ring_bound){100, 1e-3, 1e-3}, batching, batching + 1);
}

/* Two cases, since each takes its time. */
Test(synchronous, a_ring_stays_near_for_100_steps_of_even_batches, .timeout = 600)
{
    expect_rings_to_stay_near_for_100_steps(0);
}

Test(synchronous, a_ring_stays_near_for_100_steps_of_uneven_batches, .timeout = 600)
{
    expect_rings_to_stay_near_for_100_steps(1);
}

/* Twelve shards that exchange values compute the same as one shard; twelve that do not compute something else. */
Test(synchronous, global_statistics_are_those_of_one_shard, .timeout = 240)
{
    for (unsigned b = 0; b < BATCHINGS; b++) {
        struct cell cell = lone_cell(&batchings[b], optimizers[0], STEPS);
        cell.global = true;
        struct outcome shards = run_whole_cell(cell, NULL);
        cell.global = false;
        struct outcome apart = run_whole_cell(cell, NULL);
        cell.shards = 1;
        struct outcome whole = run_whole_cell(cell, NULL);
        expect_near(shards.first_norm, whole.first_norm, 1e-5, "gradient of step 1", &cell);
        expect_near(shards.loss, whole.loss, 1e-4, "loss", &cell);
        cr_expect(fabs(apart.first_norm - whole.first_norm) > 1e-3 * whole.first_norm);
    }
}

/* Many launches lie between the first place where shards wait for each other and the end of a shard's passes. */
Test(synchronous, global_statistics_of_many_layers, .timeout = 240)
{
    struct cell cell = lone_cell(&batchings[0], optimizers[0], 2);
    cell.global = true;
    cell.shards = 2;
    cell.norms = 60;
    uint32_t reference = run_cell(cell, NULL);
    static const unsigned others[] = {0, 5}; /* one shard a device, one a worker */
    cell.count = 2;
    for (unsigned i = 0; i < sizeof(others) / sizeof(*others); i++) {
        cell.arrangement = &arrangements[others[i]];
        cr_expect_eq(run_cell(cell, NULL), reference, "%s", cell.arrangement->name);
    }
}

/* A rank with one shard has gradients to send before its passes are over, a rank with two has not: those of the dense layers, which are a
 * bucket of their own. */
Test(synchronous, global_statistics_of_uneven_crews, .timeout = 240)
{
    const unsigned units = 512, inputs = 10 * 10 * 4;
    cr_assert_geq(inputs * units * sizeof(float), GRAPH_BUCKET_BYTES / 2, "all gradients are one bucket");
    struct cell cell = lone_cell(&batchings[0], optimizers[0], STEPS);
    cell.global = true;
    cell.shards = 3;
    cell.norms = 3;
    cell.units = units;
    uint32_t reference = run_cell(cell, NULL);
    cell.arrangement = &arrangements[5];
    cell.count = 2;
    cr_expect_eq(run_cell(cell, NULL), reference);
}

Test(synchronous, global_statistics_of_many_shards, .timeout = 240)
{
    static const struct batching many = {"many", 300, 300};
    struct cell cell = lone_cell(&many, optimizers[0], 2);
    cell.global = true;
    cell.shards = 300;
    (void)run_cell(cell, NULL);
}

/* ---------------------------------------------------------------- shards that do not hear from each other */

static const double *share_nothing(struct shard_exchange *exchange, unsigned shard, unsigned point, const double *own,
                                   size_t count)
{
    (void)exchange, (void)shard, (void)point, (void)own, (void)count;
    return NULL;
}

static int say_broken(struct shard_exchange *exchange, struct error *error)
{
    (void)exchange;
    return error_set(error, ERROR_TIMEOUT, "nobody has answered");
}

/* The shards [0, end) in a replica of their own. */
static int run_unheard(struct worker *worker, unsigned end, struct error *error)
{
    struct shard_exchange exchange = {.shards = SHARDS, .share = share_nothing, .check = say_broken};
    struct replica *replica = NULL;
    int64_t examples;
    int result = open_model(worker, error);
    struct strategy_options options = options_of(worker);
    if (result == 0)
        result = replica_new(&options, SHARDS, 0, end, &replica, error);
    if (result == 0)
        result = replica_use_exchange(replica, &exchange, error);
    if (result == 0)
        result = replica_start_passes(replica, &examples, error);
    if (result == 0)
        result = replica_finish_passes(replica, 0, 0, error);
    replica_free(replica);
    return result;
}

static void expect_step_refused(unsigned end)
{
    static struct worker worker;
    struct cell cell = lone_cell(&batchings[0], optimizers[0], 0);
    cell.global = true;
    struct error error = ERROR_INIT;
    memset(&worker, 0, sizeof(worker));
    name_crew(&cell);
    worker.cell = &cell;
    int result = run_unheard(&worker, end, &error);
    worker_close(&worker);
    cr_expect(result == -1 && error.kind == ERROR_TIMEOUT && strcmp(error.message, "nobody has answered") == 0, "%d %s",
              result, error.message);
}

/* Its sums are made of each shard's own statistics. */
Test(synchronous, global_statistics_that_are_missing_end_the_step, .timeout = 240)
{
    expect_step_refused(SHARDS);
    expect_step_refused(1);
}

Test(synchronous, a_rank_that_has_only_summed_a_step_takes_it, .timeout = 240)
{
    for (unsigned o = 0; o < OPTIMIZERS; o++) {
        struct cell cell = lone_cell(&batchings[1], optimizers[o], STEPS);
        cell.clip = 0.5;
        uint32_t reference = run_cell(cell, NULL);
        cell.arrangement = &arrangements[13 + o];
        cell.count = 3;
        cell.taken_back = 3;
        cr_expect_eq(run_cell(cell, NULL), reference, "%s", cell.arrangement->name);
    }
}

/* One run, handed from each arrangement to the next after two steps. */
Test(synchronous, each_goes_on_from_the_state_of_any_other, .timeout = 240)
{
    struct snapshot snapshot = {0};
    struct cell cell = {.batching = &batchings[1], .optimizer = optimizers[1], .count = 3};
    uint32_t digest = 0;
    for (unsigned i = 0; i < ARRANGEMENTS; i++) {
        cell.arrangement = &arrangements[i];
        cell.until += 2;
        digest = run_cell(cell, &snapshot);
        cell.from = &snapshot;
    }
    cell.from = NULL;
    cell.arrangement = &one_device;
    cell.count = 1;
    cr_expect_eq(run_cell(cell, NULL), digest);
    free(snapshot.bytes);
}

static void freeze_one(struct cell *cell, struct freeze *freeze)
{
    pthread_mutex_init(&freeze->lock, NULL);
    pthread_cond_init(&freeze->named, NULL);
    cell->freeze = freeze;
    (void)run_cell(*cell, NULL);
    cell->freeze = NULL;
    pthread_cond_destroy(&freeze->named);
    pthread_mutex_destroy(&freeze->lock);
}

/* The crew goes on once somebody has named the one that stood still: a test that hangs is one where nobody has. */
static void expect_its_name(struct cell cell, unsigned victim, enum freeze_at at, const char *operation)
{
    struct freeze freeze = {.victim = victim, .witnesses = 1, .at = at, .operation = operation};
    cell.count = cell.count > 0 ? cell.count : 3;
    cell.batching = &batchings[0];
    cell.optimizer = optimizers[0];
    cell.until = 4;
    freeze_one(&cell, &freeze);
    cr_expect_gt(count_witnesses(&freeze), 0, "%s", cell.arrangement->name);
}

static void expect_a_name(struct cell cell, enum freeze_at at, const char *operation)
{
    expect_its_name(cell, 1, at, operation);
}

/* Each way of an all-reduce, with several devices too; the words after the last step. */
Test(synchronous, a_frozen_rank_of_a_mirrored_crew_is_named, .timeout = 240)
{
    static const unsigned crews[] = {5, 6, 7, 8};
    for (unsigned i = 0; i < sizeof(crews) / sizeof(*crews); i++)
        expect_a_name((struct cell){.arrangement = &arrangements[crews[i]]}, FREEZE_AT_STEP, "all-reduce, step 3");
    expect_a_name((struct cell){.arrangement = &rings[2]}, FREEZE_AT_STEP, "all-reduce, step 3");
    expect_a_name((struct cell){.arrangement = &arrangements[5], .count = 4}, FREEZE_AT_STEP, "all-reduce, step 3");
    expect_a_name((struct cell){.arrangement = &arrangements[5]}, FREEZE_AT_END, "all-reduce");
}

Test(synchronous, a_rank_that_freezes_with_a_sharded_optimizer_is_named, .timeout = 240)
{
    expect_a_name((struct cell){.arrangement = &arrangements[13]}, FREEZE_AT_STEP, "reduce-scatter, step 3");
    expect_a_name((struct cell){.arrangement = &arrangements[13]}, FREEZE_AT_CHANGE, "step 3");
}

Test(synchronous, a_rank_that_freezes_in_a_round_of_local_steps_is_named, .timeout = 240)
{
    expect_a_name((struct cell){.arrangement = &arrangements[5], .local_steps = 2}, FREEZE_AT_STEP, "all-reduce");
}

/* The others wait in the middle of their passes. */
Test(synchronous, a_rank_that_freezes_with_global_statistics_is_named, .timeout = 240)
{
    expect_a_name((struct cell){.arrangement = &arrangements[5], .global = true}, FREEZE_AT_STEP, "on channel");
    expect_a_name((struct cell){.arrangement = &arrangements[6], .global = true}, FREEZE_AT_STEP, "on channel");
}

/* The first stage's process, which the others wait for in an evaluation. */
Test(synchronous, a_rank_that_freezes_in_a_pipelines_evaluation_is_named, .timeout = 240)
{
    expect_its_name((struct cell){.arrangement = &arrangements[10], .count = 2}, 0, FREEZE_AT_END, "on channel");
    expect_its_name((struct cell){.arrangement = &arrangements[12], .count = 2}, 0, FREEZE_AT_END, "on channel");
}

/* ---------------------------------------------------------------- a pass that fails */

/* Stages 0 and 1 in one worker, 2 and 3 in the other. */
static const struct arrangement two_by_two = {
    "Pipeline, 4 stages in two workers", STRATEGY_PIPELINE, true, 2, COLLECTIVE_AUTO, 4, 2, false};

/* Runs a cell in which a target is wrong: the rank that computes its shard must report it, and the others must not wait for that rank. */
static void expect_failure(struct cell cell)
{
    static struct worker workers[WORKERS_MAX];
    unsigned said = 0, lost = 0;
    memset(workers, 0, sizeof(workers));
    cell.batching = &batchings[0];
    cell.optimizer = optimizers[0];
    cell.until = 4;
    cell.spoilt = 17;
    prepare_spoilt(cell.spoilt);
    name_crew(&cell);
    for (unsigned rank = 0; rank < cell.workers; rank++) {
        workers[rank].cell = &cell;
        workers[rank].rank = rank;
        cr_assert_eq(pthread_create(&workers[rank].thread, NULL, worker_main, &workers[rank]), 0);
    }
    for (unsigned rank = 0; rank < cell.workers; rank++)
        pthread_join(workers[rank].thread, NULL);
    for (unsigned rank = 0; rank < cell.workers; rank++) {
        const struct error *error = &workers[rank].error;
        cr_expect(workers[rank].failed);
        said += error->kind == ERROR_INVALID && strstr(error->message, "target 99 is outside") != NULL;
        lost += error->kind == ERROR_UNAVAILABLE;
    }
    cr_expect(said == 1 && said + lost == cell.workers, "%s%s: %s", cell.arrangement->name,
              cell.global ? ", global" : "", workers[0].error.message);
    for (unsigned rank = cell.workers; rank-- > 0;)
        worker_close(&workers[rank]);
}

/* The failed shard skips the exchange that others wait for, with the rest of its pass. Their patience would be minutes. */
Test(synchronous, a_pass_that_fails_ends_the_step_at_once, .timeout = 240)
{
    static const unsigned others[] = {0, 3, 5, 6, 13};
    expect_failure((struct cell){.arrangement = &one_device, .count = 1, .global = true});
    for (unsigned i = 0; i < sizeof(others) / sizeof(*others); i++)
        expect_failure((struct cell){.arrangement = &arrangements[others[i]], .count = 3, .global = true});
}

/* Not that another of its stages had to end for it: then the crew would form anew, and the same would fail again. */
Test(synchronous, a_stage_that_fails_says_why, .timeout = 240)
{
    expect_failure((struct cell){.arrangement = &arrangements[9], .count = 4});
    expect_failure((struct cell){.arrangement = &two_by_two, .count = 1});
}

/* In two replicas of two stages: the neighbour waits for values or gradients, the twin for contributions to the sum. */
Test(synchronous, a_frozen_rank_of_a_pipeline_is_named, .timeout = 240)
{
    struct cell cell = {.arrangement = &arrangements[12],
                        .count = 2,
                        .batching = &batchings[1],
                        .optimizer = optimizers[0],
                        .until = 4};
    uint32_t reference = run_cell(cell, NULL);
    for (unsigned victim = 0; victim < 4; victim++) {
        struct freeze freeze = {.victim = victim, .witnesses = 2};
        pthread_mutex_init(&freeze.lock, NULL);
        pthread_cond_init(&freeze.named, NULL);
        cell.freeze = &freeze;
        cr_expect_eq(run_cell(cell, NULL), reference);
        cr_expect(freeze.has_named[victim ^ 1] && freeze.has_named[victim ^ 2], "%s; %s", freeze.words[victim ^ 1],
                  freeze.words[victim ^ 2]);
        cr_expect(strstr(freeze.words[victim ^ 1], "step 3"), "%s", freeze.words[victim ^ 1]);
        pthread_cond_destroy(&freeze.named);
        pthread_mutex_destroy(&freeze.lock);
    }
}
