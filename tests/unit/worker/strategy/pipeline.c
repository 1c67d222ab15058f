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
    options.stages = trial->stages;
    options.recompute = trial->recompute;
    options.restore = fresh_state;
    return strategy_open(&options, &run->learner.strategy, &run->error);
}

static int evaluate_lone(struct run *run, int64_t count, struct loss_sums *sums)
{
    struct device_stream *stream;
    struct device *device = run->learner.devices[0].device;
    cr_assert_eq(device_stream_new(device, &stream, NULL), 0);
    int result = evaluation_run(run->learner.graph, device, stream, run->learner.state.parameters, run->learner.dataset,
                                3, count, sums, &run->error);
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

/* On one device, and as a pipeline. */
static void expect_same_by_rows(const char *model, unsigned devices, unsigned stages, unsigned shards, bool recompute,
                                int64_t logit_rows)
{
    struct trial trial = {.model = model, .shards = shards, .steps = 6, .clip = 0.3, .logit_rows = logit_rows};
    trial.type = STRATEGY_ONE_DEVICE;
    trial.devices = 1;
    struct outcome lone = train(&trial);
    trial.type = STRATEGY_PIPELINE;
    trial.devices = devices;
    trial.stages = stages;
    trial.recompute = recompute;
    struct outcome staged = train(&trial);
    cr_expect_eq(staged.digest, lone.digest, "%u devices, %u stages, %u micro-batches: other bits", devices, stages,
                 shards);
    cr_expect_eq(staged.loss, lone.loss, "%.17g %.17g", staged.loss, lone.loss);
    cr_expect_eq(staged.norm, lone.norm, "%.17g %.17g", staged.norm, lone.norm);
    cr_expect_eq(staged.sums.loss, lone.sums.loss, "%.17g %.17g", staged.sums.loss, lone.sums.loss);
    cr_expect(staged.sums.correct == lone.sums.correct && staged.sums.count == lone.sums.count);
}

static void expect_same(const char *model, unsigned devices, unsigned stages, unsigned shards, bool recompute)
{
    expect_same_by_rows(model, devices, stages, shards, recompute, 0);
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

Test(pipeline, a_product_on_device_0_and_a_sum_on_device_1)
{
    expect_same(textbook, 2, 2, 1, false);
    expect_same(textbook, 2, 2, 4, false);
    expect_same(two_products, 2, 2, 4, false);
}

/* Devices 0 and 1 take the first half of X, 2 and 3 the second. */
Test(pipeline, the_same_twice_with_X_split_over_both)
{
    expect_same(textbook, 4, 2, 2, false);
    expect_same(textbook, 4, 2, 7, false);
    expect_same(two_products, 4, 2, 7, false);
}

static const char lenet[] = "{\"preset\":\"lenet\"}";
static const char gpt[] = "{\"preset\":\"gpt-bytes\",\"width\":16,\"depth\":3,\"heads\":2,\"context\":12}";

/* Clipping is by the gradient without its scale. */
Test(pipeline, losses_that_are_scaled_have_the_norm_of_one_device)
{
    struct trial trial = {.model = "{\"preset\":\"mlp\",\"width\":20,\"depth\":3}",
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

Test(pipeline, stages_of_measured_cost_have_the_bits_of_one_device)
{
    expect_same("{\"preset\":\"mlp\",\"width\":20,\"depth\":3}", 3, 3, 5, false);
    expect_same(lenet, 2, 2, 4, false);
    expect_same(gpt, 4, 4, 8, false);
}

/* Running statistics are summed in the tree like gradients; a dropout's choice is that of the example. */
static const char normalised[] =
    "{\"inputShape\":[8,8,2],\"layers\":[{\"type\":\"Conv2D\",\"filters\":4,\"kernel\":3,\"padding\":1},"
    "{\"type\":\"BatchNorm\"},{\"type\":\"ReLU\"},{\"type\":\"Dropout\",\"rate\":\"0.2\"},"
    "{\"type\":\"Conv2D\",\"filters\":4,\"kernel\":3,\"padding\":1},{\"type\":\"BatchNorm\"},{\"type\":\"ReLU\"},"
    "{\"type\":\"Dropout\",\"rate\":\"0.3\"},{\"type\":\"Flatten\"},{\"type\":\"Dense\",\"units\":10}]}";

Test(pipeline, normalisation_and_dropout_have_the_bits_of_one_device)
{
    expect_same(normalised, 3, 3, 5, false);
    expect_same(normalised, 4, 2, 6, true);
    expect_same("{\"preset\":\"resnet20\",\"width\":4,\"depth\":1,\"inputShape\":[8,8,2]}", 4, 4, 6, false);
}

Test(pipeline, recomputation_has_the_same_bits)
{
    expect_same(lenet, 2, 2, 4, true);
    expect_same(gpt, 4, 2, 6, true);
}

/* Two branches of unequal length between a fork and a join. */
static const char branches[] =
    "{\"inputShape\":[12],\"layers\":[" DENSE("stem", 16, "", 0) ",{\"type\":\"ReLU\",\"name\":\"fork\"}," DENSE(
        "left1", 16, FROM("fork"),
        1) ",{\"type\":\"Tanh\",\"name\":\"left2\"}," DENSE("right", 16, FROM("fork"),
                                                            2) ",{\"type\":\"Add\",\"name\":\"join\",\"inputs\":["
                                                               "\"left2\",\"right\"],"
                                                               "\"device\":3}," DENSE("head", 10, "", 3) "]}";

Test(pipeline, branches_run_side_by_side_on_devices_of_their_own)
{
    expect_same(branches, 4, 4, 6, false);
    expect_same(branches, 8, 4, 6, true);
}

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

Test(pipeline, layers_come_back_to_a_device)
{
    expect_same(there_and_back, 2, 2, 5, false);
    expect_same(there_and_back, 4, 2, 6, true);
    expect_same(to_and_fro, 3, 3, 7, false);
    expect_same(to_and_fro, 3, 3, 7, true);
}

Test(pipeline, a_branch_rejoins_the_device_it_left)
{
    expect_same(rejoined, 2, 2, 1, false);
    expect_same(rejoined, 2, 2, 6, true);
    expect_same(rejoined, 6, 2, 7, false);
}

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

Test(pipeline, a_value_with_many_readers_has_its_gradient_added_in_one_order)
{
    expect_same(many_readers, 3, 3, 5, false);
    expect_same(many_readers, 3, 3, 5, true);
    expect_same(many_readers, 6, 3, 4, false);
}

/* GPT-2's output multiplies by the table of its embedding, which is on the first device. */
static const char tied[] =
    "{\"preset\":\"gpt2-124m\",\"width\":16,\"depth\":3,\"heads\":2,\"context\":12,\"vocabulary\":90}";

Test(pipeline, a_table_is_shared_by_layers_of_two_devices)
{
    expect_same(tied, 2, 2, 5, false);
    expect_same(tied, 4, 4, 8, true);
    expect_same(tied, 6, 3, 7, false);
}

/* The last stage's logits by parts (graph_head.c). */
Test(pipeline, logits_by_parts_have_the_bits_of_one_device)
{
    expect_same_by_rows(tied, 2, 2, 5, false, 17);
    expect_same_by_rows(tied, 4, 4, 8, true, 17);
    expect_same_by_rows(gpt, 4, 2, 6, false, 5);
    expect_same_by_rows(gpt, 4, 4, 6, true, 60);
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
    expect_same(LATER_LARGE(OVER("0,1")), 2, 2, 5, false);
    expect_same(LATER_LARGE(OVER("0,1,2")), 6, 3, 7, true);
    struct outcome whole = train_whole(LATER_LARGE(""), 1), split = train_split(LATER_LARGE(OVER("1,0")), 2, 1);
    cr_expect_eq(split.loss, whole.loss, "%.17g %.17g", split.loss, whole.loss);
    cr_expect_float_eq(split.norm, whole.norm, 1e-6 * whole.norm, "%.17g %.17g", split.norm, whole.norm);
    whole = train_whole(LATER_LARGE(""), 30);
    split = train_split(LATER_LARGE(OVER("1,0")), 2, 30);
    cr_expect_float_eq(split.loss, whole.loss, 1e-4 * whole.loss, "%.17g %.17g", split.loss, whole.loss);
}

#define RESNET_LAYERS 70
#define RESNET_STAGES 10

struct listing {
    struct buffer text;
    unsigned layers, stages;
};

/* One more layer, on the device of its group. */
static void list_layer(struct listing *listing, const char *layer)
{
    buffer_format(&listing->text, "%s{%s,\"device\":%u}", listing->layers ? "," : "", layer,
                  listing->layers * listing->stages / RESNET_LAYERS);
    listing->layers++;
}

#define LIST(listing, ...)                                                                                             \
    do {                                                                                                               \
        SCOPED_FREE char *layer_ = memory_format(__VA_ARGS__);                                                         \
        list_layer(listing, layer_);                                                                                   \
    } while (0)

static void list_conv(struct listing *listing, const char *from, int filters, int stride)
{
    LIST(listing, "\"type\":\"Conv2D\",\"filters\":%d,\"kernel\":3,\"padding\":1,\"stride\":%d,\"bias\":false%s%s%s",
         filters, stride, from ? ",\"inputs\":[\"" : "", from ? from : "", from ? "\"]" : "");
}

static void list_block(struct listing *listing, int block, int filters, int stride)
{
    SCOPED_FREE char *before = memory_format("out%d", block - 1);
    list_conv(listing, before, filters, stride);
    LIST(listing, "\"type\":\"BatchNorm\"");
    LIST(listing, "\"type\":\"ReLU\"");
    list_conv(listing, NULL, filters, 1);
    LIST(listing, "\"type\":\"BatchNorm\",\"name\":\"branch%d\"", block);
    if (stride > 1)
        LIST(listing, "\"type\":\"Shortcut\",\"name\":\"past%d\",\"filters\":%d,\"stride\":%d,\"inputs\":[\"%s\"]",
             block, filters, stride, before);
    LIST(listing, "\"type\":\"Add\",\"inputs\":[\"%s%d\",\"branch%d\"]", stride > 1 ? "past" : "out",
         stride > 1 ? block : block - 1, block);
    LIST(listing, "\"type\":\"ReLU\",\"name\":\"out%d\"", block);
}

/* ResNet-20 (He et al. 2016), narrow: the stem, three groups of three blocks, the head; 70 layers in ten groups of seven. */
static char *resnet_in_groups(unsigned stages)
{
    struct listing listing = {.stages = stages};
    buffer_init(&listing.text, 1 << 16);
    buffer_format(&listing.text, "{\"inputShape\":[8,8,2],\"layers\":[");
    list_conv(&listing, NULL, 4, 1);
    LIST(&listing, "\"type\":\"BatchNorm\"");
    LIST(&listing, "\"type\":\"ReLU\",\"name\":\"out0\"");
    for (int block = 1; block <= 9; block++)
        list_block(&listing, block, 4 << (block - 1) / 3, block == 4 || block == 7 ? 2 : 1);
    LIST(&listing, "\"type\":\"GlobalAveragePool\"");
    LIST(&listing, "\"type\":\"Dense\",\"units\":10");
    cr_assert_eq(listing.layers, RESNET_LAYERS);
    buffer_format(&listing.text, "]}");
    return buffer_take(&listing.text);
}

Test(pipeline, a_resnet_in_equal_groups_of_layers_over_ten_devices)
{
    SCOPED_FREE char *model = resnet_in_groups(RESNET_STAGES);
    expect_same(model, RESNET_STAGES, RESNET_STAGES, 12, false);
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
