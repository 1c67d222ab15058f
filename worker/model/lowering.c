/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/lowering.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/model/lowering_internal.h"

/* Of one function's text. GPT-2 with 48 layers takes one megabyte. */
#define TEXT_MAX ((size_t)64 << 20)

static const struct layer_lowering *const lowerings[] = {
    [LAYER_DENSE] = &lowering_dense,
    [LAYER_CONV2D] = &lowering_conv2d,
    [LAYER_MAX_POOL] = &lowering_max_pool,
    [LAYER_AVERAGE_POOL] = &lowering_average_pool,
    [LAYER_GLOBAL_AVERAGE_POOL] = &lowering_global_average_pool,
    [LAYER_RELU] = &lowering_relu,
    [LAYER_GELU] = &lowering_gelu,
    [LAYER_TANH] = &lowering_tanh,
    [LAYER_FLATTEN] = &lowering_flatten,
    [LAYER_LAYER_NORM] = &lowering_layer_norm,
    [LAYER_EMBEDDING] = &lowering_embedding,
    [LAYER_ATTENTION] = &lowering_attention,
    [LAYER_ADD] = &lowering_add,
    [LAYER_BATCH_NORM] = &lowering_batch_norm,
    [LAYER_SHORTCUT] = &lowering_shortcut,
    [LAYER_DROPOUT] = &lowering_dropout,
    [LAYER_CONCAT] = &lowering_concat,
};

/* ---------------------------------------------------------------- what layers use */

static const struct graph_node *node_of(const struct lowering *l, unsigned number)
{
    return &l->graph->nodes[number];
}

static struct hlo_value sum(struct lowering *l, struct hlo_value before, struct hlo_value more)
{
    return before.id != 0 ? hlo_binary(&l->hlo, "add", before, more) : more;
}

struct hlo_value lowered_input(const struct lowering *l, unsigned number, unsigned input)
{
    int from = node_of(l, number)->inputs[input];
    return from == MODEL_INPUT ? l->input : l->layers[from].output;
}

struct hlo_value lowered_parameter(const struct lowering *l, unsigned number, unsigned p)
{
    return l->parameters[node_of(l, number)->tensors[p]];
}

bool lowering_wants_gradient(const struct lowering *l, unsigned number, unsigned input)
{
    int from = node_of(l, number)->inputs[input];
    return from != MODEL_INPUT && node_of(l, (unsigned)from)->needs_gradient;
}

void lowering_add_input_gradient(struct lowering *l, unsigned number, unsigned input, struct hlo_value dx)
{
    if (!lowering_wants_gradient(l, number, input))
        return;
    struct hlo_value *gradient = &l->layers[node_of(l, number)->inputs[input]].gradient;
    *gradient = lowering_rounded(l, sum(l, *gradient, dx));
}

void lowering_add_parameter_gradient(struct lowering *l, unsigned number, unsigned p, struct hlo_value gradient)
{
    struct hlo_value *all = &l->gradients[node_of(l, number)->tensors[p]];
    *all = sum(l, *all, gradient);
}

void lowering_set_statistic(struct lowering *l, unsigned number, unsigned p, struct hlo_value value)
{
    l->gradients[node_of(l, number)->tensors[p]] = value;
}

struct hlo_value lowering_rounded(struct lowering *l, struct hlo_value x)
{
    return l->rounds && x.type == HLO_FLOAT32 ? hlo_round_to_bfloat16(&l->hlo, x) : x;
}

struct hlo_shape lowering_shape(const struct lowering *l, const struct layer_shape *example)
{
    struct hlo_shape shape = {1 + example->rank, {l->batch}};
    memcpy(shape.dims + 1, example->dims, example->rank * sizeof *example->dims);
    return shape;
}

struct hlo_value lowering_rows(struct lowering *l, struct hlo_value x)
{
    int64_t rows = 1;
    unsigned last = x.shape.rank - 1;
    for (unsigned i = 0; i < last; i++)
        rows *= x.shape.dims[i];
    return last == 1 ? x : hlo_reshape(&l->hlo, x, HLO_SHAPE(rows, x.shape.dims[last]));
}

struct hlo_value lowering_along_last(struct lowering *l, struct hlo_value x, struct hlo_shape shape)
{
    return hlo_broadcast(&l->hlo, x, shape, HLO_DIMS(shape.rank - 1));
}

struct hlo_value lowering_sum_to_last(struct lowering *l, struct hlo_value x)
{
    struct hlo_dims dims = {.count = x.shape.rank - 1};
    for (unsigned i = 0; i < dims.count; i++)
        dims.at[i] = i;
    return hlo_reduce(&l->hlo, "add", x, dims);
}

/* ---------------------------------------------------------------- the loss */

/* The example's weight of each row of the loss: x[B] as [B * rows of an example]. */
static struct hlo_value weight_of_rows(struct lowering *l)
{
    int64_t rows = graph_loss_rows(l->graph);
    struct hlo_value all = hlo_broadcast(&l->hlo, l->weight, HLO_SHAPE(l->batch, rows), HLO_DIMS(0));
    return hlo_reshape(&l->hlo, all, HLO_SHAPE(l->batch * rows));
}

static struct hlo_value total(struct lowering *l, struct hlo_value rows, struct hlo_value weights)
{
    return hlo_reduce(&l->hlo, "add", hlo_binary(&l->hlo, "multiply", rows, weights), HLO_DIMS(0));
}

/* What a function gives first. */
struct loss {
    struct hlo_value sum, hits;
    struct hlo_value gradient; /* of the last layer's output; only in training */
};

/* Repeats x[R] along the columns of [R, C]. */
static struct hlo_value along_rows(struct lowering *l, struct hlo_value x, struct hlo_shape shape)
{
    return hlo_broadcast(&l->hlo, x, shape, HLO_DIMS(0));
}

/* Whether the first of the largest logits is the target, 1 or 0 for each row. */
static struct hlo_value hits_of(struct lowering *l, struct hlo_value logits, struct hlo_value largest,
                                struct hlo_value column, struct hlo_value target)
{
    struct hlo *h = &l->hlo;
    struct hlo_value none = hlo_constant(h, HLO_INT32, logits.shape, INT32_MAX);
    struct hlo_value is_largest = hlo_compare(h, "EQ", logits, along_rows(l, largest, logits.shape));
    struct hlo_value first = hlo_reduce(h, "minimum", hlo_select(h, is_largest, column, none), HLO_DIMS(1));
    return hlo_convert(h, hlo_compare(h, "EQ", first, target), HLO_FLOAT32);
}

static struct loss cross_entropy(struct lowering *l, struct hlo_value logits)
{
    struct hlo *h = &l->hlo;
    struct hlo_value weights = weight_of_rows(l);
    struct hlo_value target = hlo_reshape(h, l->target, weights.shape);
    struct hlo_value largest = hlo_reduce(h, "maximum", logits, HLO_DIMS(1));
    struct hlo_value distances = hlo_binary(h, "subtract", logits, along_rows(l, largest, logits.shape));
    struct hlo_value powers = hlo_unary(h, "exponential", distances);
    struct hlo_value powers_sum = hlo_reduce(h, "add", powers, HLO_DIMS(1));
    struct hlo_value column = hlo_iota(h, HLO_INT32, logits.shape, 1);
    struct hlo_value is_target = hlo_compare(h, "EQ", column, along_rows(l, target, logits.shape));
    struct hlo_value zero = hlo_constant(h, HLO_FLOAT32, logits.shape, 0);
    struct hlo_value picked = hlo_reduce(h, "add", hlo_select(h, is_target, distances, zero), HLO_DIMS(1));
    struct hlo_value losses = hlo_binary(h, "subtract", hlo_unary(h, "log", powers_sum), picked);
    struct loss loss = {.sum = total(l, losses, weights),
                        .hits = total(l, hits_of(l, logits, largest, column, target), weights)};
    if (l->evaluation)
        return loss;
    struct hlo_value softmax = hlo_binary(h, "divide", powers, along_rows(l, powers_sum, logits.shape));
    struct hlo_value difference = hlo_binary(h, "subtract", softmax, hlo_convert(h, is_target, HLO_FLOAT32));
    loss.gradient = hlo_binary(h, "multiply", difference, along_rows(l, weights, logits.shape));
    return loss;
}

/* A row's loss is the mean of its squared errors, an example's that of its rows. */
static struct loss mean_squared_error(struct lowering *l, struct hlo_value y)
{
    struct hlo *h = &l->hlo;
    double width = (double)y.shape.dims[1], rows = (double)graph_loss_rows(l->graph);
    struct hlo_value weights = weight_of_rows(l);
    struct hlo_value error = hlo_binary(h, "subtract", y, hlo_reshape(h, l->target, y.shape));
    struct hlo_value squares = hlo_reduce(h, "add", hlo_binary(h, "multiply", error, error), HLO_DIMS(1));
    struct loss loss = {.sum = hlo_binary_constant(h, "multiply", total(l, squares, weights), 1 / (width * rows)),
                        .hits = hlo_constant(h, HLO_FLOAT32, (struct hlo_shape){0}, 0)};
    if (l->evaluation)
        return loss;
    struct hlo_value slope = hlo_binary_constant(h, "multiply", weights, 2 / width);
    loss.gradient = hlo_binary(h, "multiply", error, along_rows(l, slope, y.shape));
    return loss;
}

/* ---------------------------------------------------------------- the function */

/* Takes parameters, then statistics, then the batch, in the order of docs/programs.md. */
static void take_arguments(struct lowering *l)
{
    const struct parameter_layout *layout = &l->graph->layout;
    const struct example_format *format = &l->graph->format;
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned t = 0; t < layout->tensor_count; t++) {
            const struct parameter_tensor *tensor = &layout->tensors[t];
            bool statistic = tensor->offset < layout->statistics;
            struct hlo_shape shape = {.rank = tensor->rank};
            memcpy(shape.dims, tensor->shape, tensor->rank * sizeof *tensor->shape);
            if (statistic == (pass == 1))
                l->parameters[t] = hlo_argument(&l->hlo, HLO_FLOAT32, shape);
        }
    l->input = hlo_argument(&l->hlo, format->input_type == ELEMENT_INT32 ? HLO_INT32 : HLO_FLOAT32,
                            lowering_shape(l, &l->graph->input));
    l->target = hlo_argument(&l->hlo, format->target_type == ELEMENT_INT32 ? HLO_INT32 : HLO_FLOAT32,
                             HLO_SHAPE(l->batch, format->target_elements));
    l->weight = hlo_argument(&l->hlo, HLO_FLOAT32, HLO_SHAPE(l->batch));
    if (!l->evaluation)
        l->seed = hlo_argument(&l->hlo, HLO_UINT32, HLO_SHAPE(LOWERING_SEED_WORDS));
    l->input = lowering_rounded(l, l->input);
}

static void write_forward(struct lowering *l)
{
    for (unsigned i = 0; i < l->graph->node_count; i++) {
        const struct layer_lowering *lowering = lowerings[lowered_layer(l, i)->kind->type];
        l->layers[i].output = lowering_rounded(l, lowering->forward(l, i));
    }
}

static void write_backward(struct lowering *l)
{
    for (unsigned i = l->graph->node_count; i-- > 0;) {
        const struct layer_lowering *lowering = lowerings[lowered_layer(l, i)->kind->type];
        if (node_of(l, i)->needs_gradient)
            lowering->backward(l, i, l->layers[i].gradient);
    }
}

/* Loss and hits, then the gradients, then the new statistics. */
static int finish(struct lowering *l, const struct loss *loss, struct buffer *text, struct error *error)
{
    const struct parameter_layout *layout = &l->graph->layout;
    SCOPED_FREE struct hlo_value *results = memory_allocate(layout->tensor_count + 2, sizeof *results);
    unsigned count = 0;
    results[count++] = loss->sum;
    results[count++] = loss->hits;
    for (unsigned pass = 0; pass < 2 && !l->evaluation; pass++)
        for (unsigned t = 0; t < layout->tensor_count; t++)
            if ((layout->tensors[t].offset < layout->statistics) == (pass == 1))
                results[count++] = l->gradients[t];
    return hlo_finish(&l->hlo, results, count, text, error);
}

static int write_function(struct lowering *l, struct buffer *text, struct error *error)
{
    struct lowered_layer *last = &l->layers[l->graph->node_count - 1];
    take_arguments(l);
    write_forward(l);
    struct hlo_value rows = lowering_rows(l, last->output);
    struct loss loss =
        l->graph->loss == LOSS_SOFTMAX_CROSS_ENTROPY ? cross_entropy(l, rows) : mean_squared_error(l, rows);
    if (!l->evaluation) {
        last->gradient = lowering_rounded(l, hlo_reshape(&l->hlo, loss.gradient, last->output.shape));
        write_backward(l);
    }
    return finish(l, &loss, text, error);
}

int lowering_write(const struct graph *graph, enum precision precision, int64_t batch, bool evaluation,
                   struct buffer *text, struct error *error)
{
    struct lowering l = {.graph = graph, .batch = batch, .evaluation = evaluation};
    if (precision == PRECISION_FLOAT16)
        return error_set(error, ERROR_UNSUPPORTED,
                         "training.precision: Float16 is for GPUs; take BFloat16 or Float32 with XLA");
    for (unsigned i = 0; i < graph->node_count; i++)
        if (graph->is_stage || graph->nodes[i].slice.count > 0)
            return error_set(
                error, ERROR_UNSUPPORTED,
                "XLA runs a model as a whole: leave out `devices` of the layers, and take another strategy "
                "than Pipeline");
    l.rounds = precision == PRECISION_BFLOAT16;
    hlo_init(&l.hlo, TEXT_MAX);
    l.hlo.exact = precision == PRECISION_FLOAT32;
    l.parameters = memory_allocate(graph->layout.tensor_count, sizeof *l.parameters);
    l.gradients = memory_allocate(graph->layout.tensor_count, sizeof *l.gradients);
    l.layers = memory_allocate(graph->node_count, sizeof *l.layers);
    int result = write_function(&l, text, error);
    free(l.layers);
    free(l.gradients);
    free(l.parameters);
    hlo_release(&l.hlo);
    return result;
}
