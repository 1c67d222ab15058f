/* SPDX-License-Identifier: Apache-2.0
 *
 * Pipelines of logical devices in one process against one device: the final state must have the same bits for any stages, replicas and
 * micro-batches.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/buffer.h"
#include "common/memory.h"
#include "tests/unit/worker/strategy/learner.h"
#include "tests/unit/worker/strategy/resnet_in_groups.h"
#include "worker/model/graph.h"
#include "worker/train/evaluation.h"

#define BATCH 26 /* not divisible: micro-batches differ in size, and the last batch of an epoch is short */
#define EXAMPLES 60
#define DEVICES_MAX LEARNER_DEVICES_MAX

struct trial {
    const char *model; /* JSON */
    enum strategy_type type;
    unsigned devices, stages, shards;
    bool recompute;
    int64_t steps;
    double clip;
    int64_t logit_rows;
    const char *precision; /* NULL: float32 */
};

struct outcome {
    uint32_t digest;
    double loss, norm;
    struct loss_sums sums; /* of an evaluation at the end */
};

struct run {
    const struct trial *trial;
    struct learner learner;
    struct error error;
};

static int fresh_state(void *context, struct error *error)
{
    (void)context, (void)error;
    return 0;
}

static void open_model(struct run *run)
{
    const struct trial *trial = run->trial;
    SCOPED_FREE char *text = memory_format(
        "{\"name\":\"test\",\"strategy\":{\"type\":\"Pipeline\"},\"devices\":{\"count\":%d},\"model\":%s,"
        "\"data\":{\"format\":\"Synthetic\",\"examples\":%d},\"training\":{\"steps\":9,\"batchSize\":%d,"
        "\"precision\":\"%s\",\"optimizer\":{\"type\":\"SGD\",\"learningRate\":\"0.02\","
        "\"momentum\":\"0.9\"}}}",
        DEVICES_MAX, trial->model, EXAMPLES, BATCH, trial->precision != NULL ? trial->precision : "Float32");
    int64_t most = (BATCH + trial->shards - 1) / trial->shards;
    bool staged = trial->type == STRATEGY_PIPELINE;
    run->learner.logit_rows = trial->logit_rows;
    cr_assert(learner_open_job(&run->learner, text, &run->error) == 0 &&
                  learner_open_model(&run->learner, trial->devices, most, staged, &run->error) == 0 &&
                  learner_open_state(&run->learner, &run->error) == 0,
              "%s", run->error.message);
}

static int open_strategy(struct run *run)
{
    const struct trial *trial = run->trial;
    struct strategy_options options = learner_options(&run->learner, trial->type);
    options.global_batch = BATCH;
    options.logical_shards = trial->shards;
    options.gradient_clip_norm = trial->clip;
    options.pipeline.stages = trial->stages;
    options.pipeline.recompute = trial->recompute;
    options.calls.restore = fresh_state;
    return strategy_open(&options, &run->learner.strategy, &run->error);
}

static int evaluate_lone(struct run *run, int64_t count, struct loss_sums *sums)
{
    const struct evaluation_examples examples = {.dataset = run->learner.dataset, .first = 3, .count = count};
    struct device_stream *stream;
    struct device *device = run->learner.devices[0].device;
    cr_assert_eq(device_stream_new(device, &stream, NULL), 0);
    int result =
        evaluation_run(run->learner.graph, device, stream, run->learner.state.parameters, &examples, sums, &run->error);
    device_stream_free(stream);
    return result;
}

static void evaluate(struct run *run, struct loss_sums *sums)
{
    int64_t count = EXAMPLES - 7;
    int result = strategy_evaluates(run->learner.strategy)
                     ? strategy_evaluate(run->learner.strategy, run->learner.dataset, 3, count, sums, &run->error)
                     : evaluate_lone(run, count, sums);
    cr_assert_eq(result, 0, "%s", run->error.message);
}

static void take_step(struct run *run, int64_t step, struct strategy_result *result)
{
    cr_assert_eq(strategy_step(run->learner.strategy, 0.02, 0, result, &run->error), 0, "%s", run->error.message);
    cr_assert_eq(result->step, step);
}

static struct outcome train(const struct trial *trial)
{
    struct run run = {.trial = trial, .error = ERROR_INIT};
    struct strategy_result result = {0};
    struct outcome outcome = {0};
    open_model(&run);
    cr_assert_eq(open_strategy(&run), 0, "%s", run.error.message);
    cr_assert_eq(strategy_reform(run.learner.strategy, &run.error), 0);
    for (int64_t step = 1; step <= trial->steps; step++)
        take_step(&run, step, &result);
    outcome.loss = result.loss;
    outcome.norm = result.gradient_norm;
    evaluate(&run, &outcome.sums);
    outcome.digest = training_state_digest(&run.learner.state);
    learner_close(&run.learner);
    return outcome;
}

struct pipeline_case {
    const char *name, *model;
    unsigned devices, stages, shards;
    bool recompute;
    int64_t logit_rows;
};

/* On one device, and as a pipeline. */
static void expect_same(const struct pipeline_case *row)
{
    struct trial trial = {
        .model = row->model, .shards = row->shards, .steps = 6, .clip = 0.3, .logit_rows = row->logit_rows};
    trial.type = STRATEGY_ONE_DEVICE;
    trial.devices = 1;
    struct outcome lone = train(&trial);
    trial.type = STRATEGY_PIPELINE;
    trial.devices = row->devices;
    trial.stages = row->stages;
    trial.recompute = row->recompute;
    struct outcome staged = train(&trial);
    cr_expect_eq(staged.digest, lone.digest, "%s: %u devices, %u stages, %u micro-batches: other bits", row->name,
                 row->devices, row->stages, row->shards);
    cr_expect_eq(staged.loss, lone.loss, "%s: %.17g %.17g", row->name, staged.loss, lone.loss);
    cr_expect_eq(staged.norm, lone.norm, "%s: %.17g %.17g", row->name, staged.norm, lone.norm);
    cr_expect_eq(staged.sums.loss, lone.sums.loss, "%s: %.17g %.17g", row->name, staged.sums.loss, lone.sums.loss);
    cr_expect(staged.sums.correct == lone.sums.correct && staged.sums.count == lone.sums.count, "%s", row->name);
}

#define DENSE(name, units, input, device)                                                                              \
    "{\"type\":\"Dense\",\"name\":\"" name "\",\"units\":" #units input ",\"device\":" #device "}"
#define FROM(input) ",\"inputs\":[\"" input "\"]"

/* X -> matmul on device 0 -> add on device 1, which adds X itself; then the loss there. */
static const char textbook[] = "{\"inputShape\":[12],\"layers\":[{\"type\":\"Flatten\",\"name\":\"X\",\"device\":0},"
                               "{\"type\":\"Dense\",\"name\":\"matmul\",\"units\":12,\"bias\":false,\"device\":0},"
                               "{\"type\":\"Add\",\"name\":\"add\",\"inputs\":[\"matmul\",\"X\"],\"device\":1}]}";

/* The same where device 1 adds a product of its own. */
static const char two_products[] = "{\"inputShape\":[12],\"layers\":[" DENSE("matmul", 10, "", 0) "," DENSE(
    "other", 10, "", 1) ",{\"type\":\"Add\",\"name\":\"sum\",\"inputs\":[\"matmul\",\"other\"],\"device\":1}]}";

static const char mlp[] = "{\"preset\":\"mlp\",\"width\":20,\"depth\":3}";
static const char resnet[] = "{\"preset\":\"resnet20\",\"width\":4,\"depth\":1,\"inputShape\":[8,8,2]}";
static const char lenet[] = "{\"preset\":\"lenet\"}";
static const char gpt[] = "{\"preset\":\"gpt-bytes\",\"width\":16,\"depth\":3,\"heads\":2,\"context\":12}";

/* Clipping is by the gradient without its scale. */
Test(pipeline, losses_that_are_scaled_have_the_norm_of_one_device)
{
    struct trial trial = {.model = mlp,
                          .type = STRATEGY_ONE_DEVICE,
                          .devices = 1,
                          .shards = 4,
                          .steps = 6,
                          .clip = 0.3,
                          .precision = "Float16"};
    struct outcome lone = train(&trial);
    trial.type = STRATEGY_PIPELINE;
    trial.devices = trial.stages = 2;
    struct outcome staged = train(&trial);
    cr_expect(lone.norm > trial.clip && lone.norm < 100, "%g", lone.norm);
    cr_expect_eq(staged.norm, lone.norm, "%.17g %.17g", staged.norm, lone.norm);
    cr_expect_eq(staged.digest, lone.digest);
}

/* Running statistics are summed in the tree like gradients; a dropout's choice is that of the example. */
static const char normalised[] =
    "{\"inputShape\":[8,8,2],\"layers\":[{\"type\":\"Conv2D\",\"filters\":4,\"kernel\":3,\"padding\":1},"
    "{\"type\":\"BatchNorm\"},{\"type\":\"ReLU\"},{\"type\":\"Dropout\",\"rate\":\"0.2\"},"
    "{\"type\":\"Conv2D\",\"filters\":4,\"kernel\":3,\"padding\":1},{\"type\":\"BatchNorm\"},{\"type\":\"ReLU\"},"
    "{\"type\":\"Dropout\",\"rate\":\"0.3\"},{\"type\":\"Flatten\"},{\"type\":\"Dense\",\"units\":10}]}";

/* Two branches of unequal length between a fork and a join. */
static const char branches[] =
    "{\"inputShape\":[12],\"layers\":[" DENSE("stem", 16, "", 0) ",{\"type\":\"ReLU\",\"name\":\"fork\"}," DENSE(
        "left1", 16, FROM("fork"),
        1) ",{\"type\":\"Tanh\",\"name\":\"left2\"}," DENSE("right", 16, FROM("fork"),
                                                            2) ",{\"type\":\"Add\",\"name\":\"join\",\"inputs\":["
                                                               "\"left2\",\"right\"],"
                                                               "\"device\":3}," DENSE("head", 10, "", 3) "]}";

/* There and back: the layers of device 0 read what device 1 makes of theirs. */
static const char there_and_back[] = "{\"inputShape\":[12],\"layers\":[" DENSE("a", 16, "", 0) "," DENSE(
    "b", 16, "", 1) ",{\"type\":\"Tanh\"}," DENSE("c", 10, "", 0) "]}";
static const char to_and_fro[] =
    "{\"inputShape\":[12],\"layers\":[" DENSE("a", 16, "", 0) "," DENSE("b", 16, "", 1) ",{\"type\":\"ReLU\"}," DENSE(
        "c", 16, "", 0) "," DENSE("d", 16, "", 2) "," DENSE("e", 10, "", 1) "]}";

/* X on device 0, a branch on device 1, and the sum on device 0 again. */
static const char rejoined[] =
    "{\"inputShape\":[12],\"layers\":[" DENSE("stem", 16, "", 0) ",{\"type\":\"ReLU\",\"name\":\"fork\"}," DENSE(
        "left", 16, FROM("fork"),
        1) ",{\"type\":\"Tanh\",\"name\":\"bent\"}," DENSE("right", 16, FROM("fork"),
                                                           0) ",{\"type\":\"Add\",\"name\":\"join\",\"inputs\":["
                                                              "\"bent\",\"right\"]},{\"type\":\"ReLU\"}," DENSE(
                                                                  "head", 10, "", 0) "]}";

/* A value with five readers on three devices: its gradient is added from the last to the first, as on one device. */
static const char many_readers[] =
    "{\"inputShape\":[12],\"layers\":[" DENSE("x", 16, "", 0) "," DENSE("a", 16, FROM("x"), 1) "," DENSE(
        "b", 16, FROM("x"),
        2) "," DENSE("c", 16, FROM("x"),
                     1) "," DENSE("d", 16, FROM("x"),
                                  0) "," DENSE("e", 16, FROM("x"),
                                               1) ","
                                                  "{\"type\":\"Add\",\"name\":\"ab\",\"inputs\":[\"a\",\"b\"],"
                                                  "\"device\":2},"
                                                  "{\"type\":\"Add\",\"name\":\"cd\",\"inputs\":[\"c\",\"d\"],"
                                                  "\"device\":1},"
                                                  "{\"type\":\"Add\",\"name\":\"cde\",\"inputs\":[\"cd\",\"e\"],"
                                                  "\"device\":0},"
                                                  "{\"type\":\"Add\",\"name\":\"all\",\"inputs\":[\"ab\",\"cde\"],"
                                                  "\"device\":1}," DENSE("head", 10, "", 2) "]}";

/* GPT-2's output multiplies by the table of its embedding, which is on the first device. */
static const char tied[] =
    "{\"preset\":\"gpt2-124m\",\"width\":16,\"depth\":3,\"heads\":2,\"context\":12,\"vocabulary\":90}";

static const struct pipeline_case cases[] = {
    {"product and sum", textbook, 2, 2, 1, false, 0},
    {"product and sum", textbook, 2, 2, 4, false, 0},
    {"product and sum", two_products, 2, 2, 4, false, 0},
    /* Devices 0 and 1 take the first half of X, 2 and 3 the second. */
    {"X split over both", textbook, 4, 2, 2, false, 0},
    {"X split over both", textbook, 4, 2, 7, false, 0},
    {"X split over both", two_products, 4, 2, 7, false, 0},
    {"measured cost", mlp, 3, 3, 5, false, 0},
    {"measured cost", lenet, 2, 2, 4, false, 0},
    {"measured cost", gpt, 4, 4, 8, false, 0},
    {"normalisation, dropout", normalised, 3, 3, 5, false, 0},
    {"normalisation, dropout", normalised, 4, 2, 6, true, 0},
    {"normalisation, dropout", resnet, 4, 4, 6, false, 0},
    {"recomputation", lenet, 2, 2, 4, true, 0},
    {"recomputation", gpt, 4, 2, 6, true, 0},
    {"branches side by side", branches, 4, 4, 6, false, 0},
    {"branches side by side", branches, 8, 4, 6, true, 0},
    {"layers come back", there_and_back, 2, 2, 5, false, 0},
    {"layers come back", there_and_back, 4, 2, 6, true, 0},
    {"layers come back", to_and_fro, 3, 3, 7, false, 0},
    {"layers come back", to_and_fro, 3, 3, 7, true, 0},
    {"a branch rejoins", rejoined, 2, 2, 1, false, 0},
    {"a branch rejoins", rejoined, 2, 2, 6, true, 0},
    {"a branch rejoins", rejoined, 6, 2, 7, false, 0},
    {"many readers", many_readers, 3, 3, 5, false, 0},
    {"many readers", many_readers, 3, 3, 5, true, 0},
    {"many readers", many_readers, 6, 3, 4, false, 0},
    {"a shared table", tied, 2, 2, 5, false, 0},
    {"a shared table", tied, 4, 4, 8, true, 0},
    {"a shared table", tied, 6, 3, 7, false, 0},
    /* The last stage's logits by parts (graph_head.c). */
    {"logits by parts", tied, 2, 2, 5, false, 17},
    {"logits by parts", tied, 4, 4, 8, true, 17},
    {"logits by parts", gpt, 4, 2, 6, false, 5},
    {"logits by parts", gpt, 4, 4, 6, true, 60},
};

Test(pipeline, has_the_bits_of_one_device, .timeout = 240)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        expect_same(&cases[i]);
}

/* One large layer over several devices; what it is with `devices`, and whole. */
#define SPLIT(units, devices) "{\"type\":\"Dense\",\"units\":" #units devices "}"
#define OVER(list) ",\"devices\":[" list "]"
#define FIRST_LARGE(devices)                                                                                           \
    "{\"inputShape\":[12],\"layers\":[" SPLIT(67,                                                                      \
                                              devices) ",{\"type\":\"ReLU\"},{\"type\":\"Dropout\",\"rate\":\"0.2\"}," \
                                                       "{\"type\":\"Dense\",\"units\":10}]}"
#define LATER_LARGE(devices)                                                                                           \
    "{\"inputShape\":[8,8,2],\"layers\":[{\"type\":\"Conv2D\",\"filters\":4,\"kernel\":3},{\"type\":\"ReLU\"},"        \
    "{\"type\":\"Flatten\"}," SPLIT(50, devices) ",{\"type\":\"ReLU\"},{\"type\":\"Dense\",\"units\":10}]}"

static struct outcome train_whole(const char *model, int64_t steps)
{
    return train(&(struct trial){
        .model = model, .type = STRATEGY_ONE_DEVICE, .devices = 1, .shards = 5, .steps = steps, .clip = 0.3});
}

static struct outcome train_split(const char *model, unsigned devices, int64_t steps)
{
    return train(&(struct trial){.model = model,
                                 .type = STRATEGY_PIPELINE,
                                 .devices = devices,
                                 .stages = devices,
                                 .shards = 5,
                                 .steps = steps,
                                 .clip = 0.3});
}

/* The bits of the whole layer on one device: each unit is the same product. */
Test(pipeline, a_first_layer_split_over_devices_has_the_bits_of_the_whole)
{
    struct outcome whole = train_whole(FIRST_LARGE(""), 6);
    cr_expect_eq(train_split(FIRST_LARGE(OVER("0,1")), 2, 6).digest, whole.digest);
    cr_expect_eq(train_split(FIRST_LARGE(OVER("1,0")), 2, 6).digest, whole.digest);
    cr_expect_eq(train_split(FIRST_LARGE(OVER("2,0,3,1")), 4, 6).digest, whole.digest);
}

/* A layer before it is handed the sum of as many parts as there are slices: the bits of the same slices on one device. */
Test(pipeline, a_later_layer_split_over_devices_has_the_bits_of_its_slices)
{
    expect_same(&(struct pipeline_case){"two slices", LATER_LARGE(OVER("0,1")), 2, 2, 5, false, 0});
    expect_same(&(struct pipeline_case){"three slices", LATER_LARGE(OVER("0,1,2")), 6, 3, 7, true, 0});
    struct outcome whole = train_whole(LATER_LARGE(""), 1), split = train_split(LATER_LARGE(OVER("1,0")), 2, 1);
    cr_expect_eq(split.loss, whole.loss, "%.17g %.17g", split.loss, whole.loss);
    cr_expect_float_eq(split.norm, whole.norm, 1e-6 * whole.norm, "%.17g %.17g", split.norm, whole.norm);
    whole = train_whole(LATER_LARGE(""), 30);
    split = train_split(LATER_LARGE(OVER("1,0")), 2, 30);
    cr_expect_float_eq(split.loss, whole.loss, 1e-4 * whole.loss, "%.17g %.17g", split.loss, whole.loss);
}

#define RESNET_STAGES 10

Test(pipeline, a_resnet_in_equal_groups_of_layers_over_ten_devices)
{
    SCOPED_FREE char *model = resnet_in_groups(RESNET_STAGES);
    expect_same(&(struct pipeline_case){"resnet", model, RESNET_STAGES, RESNET_STAGES, 12, false, 0});
}

static void expect_refused(const char *model, unsigned devices, unsigned stages, unsigned shards, const char *words)
{
    struct trial trial = {
        .model = model, .type = STRATEGY_PIPELINE, .devices = devices, .stages = stages, .shards = shards};
    struct run run = {.trial = &trial, .error = ERROR_INIT};
    open_model(&run);
    cr_expect_eq(open_strategy(&run), -1);
    cr_expect(strstr(run.error.message, words), "%s", run.error.message);
    learner_close(&run.learner);
}

Test(pipeline, what_cannot_be_cut_is_refused)
{
    expect_refused("{\"preset\":\"mlp\",\"width\":20}", 6, 6, 6, "too few for 6 stages");
    expect_refused(lenet, 4, 2, 1, "too few for 2 replicas");
    expect_refused("{\"inputShape\":[12],\"layers\":[" DENSE("a", 16, "", 0) "," DENSE("b", 10, "", 2) "]}", 3, 3, 3,
                   "stage 1 of 3 has no layer");
}
