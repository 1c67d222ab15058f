/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory.h"
#include "common/scope.h"
#include "worker/model/graph_internal.h"

int graph_output_owner(const struct graph *graph, int node)
{
    while (node != MODEL_INPUT && graph->nodes[node].in_place)
        node = graph->nodes[node].inputs[0];
    return node;
}

/* Steps: layer i runs at step i, the loss at step N, layer i's backward at step 2N - i. */
static int backward_step(const struct graph *graph, unsigned node)
{
    return 2 * (int)graph->node_count - (int)node;
}

/* Larger than any machine's memory, but a plan of many such blocks does not overflow. */
#define BLOCK_BYTES_MAX ((int64_t)1 << 45)

static int add_block(struct graph *graph, int64_t elements, size_t element_bytes, int first, int last)
{
    if (elements <= 0)
        return NO_BLOCK;
    int64_t most = BLOCK_BYTES_MAX / (int64_t)element_bytes;
    graph->block_stays[graph->block_count] = false;
    graph->blocks[graph->block_count] = (struct memory_block){
        .bytes = (elements < most ? elements : most) * (int64_t)element_bytes, .first = first, .last = last};
    return (int)graph->block_count++;
}

/* Adds a block for activations: `elements` for each example. */
static int add_values(struct graph *graph, int64_t elements, int first, int last)
{
    return add_block(graph, graph->max_examples * elements, (size_t)stored_bytes(graph->stored), first, last);
}

static bool reads_output(const struct graph *graph, unsigned reader, unsigned node)
{
    for (unsigned k = 0; k < graph->nodes[reader].layer.input_count; k++)
        if (graph_output_owner(graph, graph->nodes[reader].inputs[k]) == (int)node)
            return true;
    return false;
}

unsigned graph_last_reader(const struct graph *graph, unsigned node)
{
    unsigned last = graph->node_count - 1;
    while (last > node && !reads_output(graph, last, node))
        last--;
    return last;
}

/* Returns whether an output is recomputed in the backward pass instead of kept: on CPUs, where
 * memory is scarcer than time. A layer that reads another layer of such a kind is kept. */
static bool repeats(const struct graph *graph, unsigned number)
{
    const struct graph_node *node = &graph->nodes[number];
    int before = node->layer.input_count > 0 ? graph_output_owner(graph, node->inputs[0]) : MODEL_INPUT;
    if (!node->layer.kind->repeats || graph->evaluation_only || graph->is_stage || node->recomputed ||
        node->layer.applies_relu || !device_memory_is_shared(graph->device))
        return false;
    return (before == MODEL_INPUT || !graph->nodes[before].layer.kind->repeats) &&
           graph_output_owner(graph, (int)graph->node_count - 1) != (int)number &&
           !graph_is_head(graph, graph_last_reader(graph, number));
}

/* Returns when a layer reads its inputs for the last time: in the forward pass, when it is
 * recomputed, or in its backward pass. */
static int last_read(const struct graph *graph, unsigned reader)
{
    const struct graph_node *node = &graph->nodes[reader];
    if (!graph->evaluation_only && !node->layer.kind->forgets_input)
        return backward_step(graph, reader);
    return node->recomputed ? backward_step(graph, node->segment_end) : (int)reader;
}

/* Returns when an output is read for the last time: by its consumers and the loss; in training
 * also by their backward pass and its own, unless their kind does not need it. Other parts of a
 * model may read a stage's outputs. */
static int last_use(const struct graph *graph, unsigned number)
{
    const struct layer *layer = &graph->nodes[number].layer;
    bool trains = !graph->evaluation_only;
    if (graph->nodes[number].recomputed)
        return (int)graph_last_reader(graph, number);
    if (trains && number > 0 && graph->nodes[number - 1].masks_sum)
        return backward_step(graph, number - 1);
    if (trains && (graph->is_stage || !layer->kind->forgets_output || (layer->applies_relu && !layer->masks_gradient)))
        return backward_step(graph, number);
    if (repeats(graph, number))
        return (int)graph_last_reader(graph, number);
    int last = graph_output_owner(graph, (int)graph->node_count - 1) == (int)number ? (int)graph->node_count : 0;
    for (unsigned i = graph->node_count; i-- > number;) {
        if (!reads_output(graph, i, number))
            continue;
        int read = last_read(graph, i);
        last = read > last ? read : last;
    }
    return last > (int)number ? last : (int)number;
}

/* Keeps a block of a stage for each micro-batch in flight, from its forward to its backward
 * pass. */
static void keep_block(struct graph *graph, int block)
{
    if (block != NO_BLOCK && graph->is_stage)
        graph->block_stays[block] = true;
}

/* Returns when the last layer and the loss have run if they are computed in parts: in an
 * evaluation after the forward pass, otherwise in the backward pass. */
static int head_end(const struct graph *graph)
{
    return graph->evaluation_only ? (int)graph->node_count : backward_step(graph, graph->node_count - 1);
}

/* Plans the logits of one part; their gradient uses the same memory. */
static void plan_logits(struct graph *graph, unsigned number)
{
    graph->nodes[number].output = add_block(graph, graph->head_rows * graph->head_row,
                                            (size_t)stored_bytes(graph->stored), (int)number, head_end(graph));
}

/* Plans blocks for recomputed values, from when the backward pass reaches their segment. */
static void plan_recomputed(struct graph *graph, unsigned number)
{
    struct graph_node *node = &graph->nodes[number];
    const struct layer *layer = &node->layer;
    const bool masks = number > 0 && graph->nodes[number - 1].masks_sum;
    int first = backward_step(graph, node->segment_end), last = backward_step(graph, masks ? number - 1 : number);
    if (!node->recomputed)
        return;
    if (node->fused_sum == NO_LAYER)
        node->repeated = add_values(graph, layer_shape_elements(&layer->output), first, last);
    if (layer->kind->kept)
        node->recomputed_kept =
            add_block(graph, layer->kind->kept(layer, graph->max_examples), sizeof(float), first, last);
}

static void plan_activations(struct graph *graph, unsigned number)
{
    struct graph_node *node = &graph->nodes[number];
    const struct layer *layer = &node->layer;
    int64_t n = graph->max_examples;
    if (!node->own)
        return;
    if (graph_is_head(graph, number)) {
        plan_logits(graph, number);
        return;
    }
    const int first = node->run_by != NO_LAYER ? node->run_by : (int)number;
    if (!node->in_place && node->fused_sum == NO_LAYER)
        node->output = add_values(graph, layer_shape_elements(&layer->output), first, last_use(graph, number));
    if (repeats(graph, number))
        node->repeated =
            add_values(graph, layer_shape_elements(&layer->output),
                       backward_step(graph, graph_last_reader(graph, number)), backward_step(graph, number));
    if (layer->kind->kept)
        node->kept = add_block(graph, layer->kind->kept(layer, n), sizeof(float), first,
                               graph->evaluation_only || node->recomputed ? (int)number : backward_step(graph, number));
    plan_recomputed(graph, number);
    if (!graph->recompute) {
        keep_block(graph, node->output);
        keep_block(graph, node->kept);
    }
}

/* Plans blocks for values from other stages, as if their layers had run here. Values that other
 * stages read are kept until those have run. */
static void plan_values(struct graph *graph)
{
    for (unsigned i = 0; i < graph->value_count; i++) {
        struct graph_node *node = &graph->nodes[graph->values[i].layer];
        if (graph->values[i].to == graph->part)
            node->output = add_values(graph, graph->values[i].elements, 0, backward_step(graph, 0));
        if (graph->values[i].to == graph->part || graph->values[i].from == graph->part)
            keep_block(graph, node->output);
    }
}

/* Returns the last of the layers whose only consumer is this sum: it takes over the sum's
 * gradient. (The other inputs get copies. In a stage, gradients from other parts come between.)
 * MODEL_INPUT: none. */
static int sum_heir(const struct graph *graph, const struct graph_node *sum)
{
    if (!sum->layer.kind->gradient_passes || sum->layer.input_count < 2 || !sum->own || graph->is_stage)
        return MODEL_INPUT;
    for (unsigned k = sum->layer.input_count; k-- > 0;) {
        int input = sum->inputs[k];
        if (input != MODEL_INPUT && graph->nodes[input].consumers == 1 && graph->nodes[input].needs_gradient)
            return input;
    }
    return MODEL_INPUT;
}

/* Returns the layer that takes over the memory of a layer's gradient after its backward pass;
 * MODEL_INPUT: none. */
static int gradient_heir(const struct graph *graph, int number)
{
    const struct graph_node *node = &graph->nodes[number];
    return node->gradient_in_place ? node->inputs[0] : sum_heir(graph, node);
}

static bool reads(const struct graph_node *node, unsigned number)
{
    for (unsigned k = 0; k < node->layer.input_count; k++)
        if (node->inputs[k] == (int)number)
            return true;
    return false;
}

/* Returns whether all readers of `input`, except the sum, come before `heir`. */
static bool is_read_before(const struct graph *graph, int input, const struct graph_node *sum, int heir)
{
    for (unsigned i = (unsigned)heir; i < graph->node_count; i++)
        if (&graph->nodes[i] != sum && reads(&graph->nodes[i], (unsigned)input))
            return false;
    return true;
}

/* Returns whether the layer's backward pass leaves its gradient unchanged, for others. */
static bool only_reads_gradient(const struct graph_node *node)
{
    return !node->gradient_in_place && !node->layer.kind->gradient_passes;
}

/* Returns the second input of a sum of two, if it can share the sum's gradient with the heir:
 * the layer whose backward pass comes first only reads the gradient, and if others read the
 * second input, the branch's last layer is done before they add to it. MODEL_INPUT: the second
 * input gets a copy. */
static int second_heir(const struct graph *graph, int number)
{
    const struct graph_node *sum = &graph->nodes[number];
    const int heir = sum->gradient_in_place ? MODEL_INPUT : sum_heir(graph, sum);
    if (heir == MODEL_INPUT || sum->layer.input_count != 2 || sum->inputs[0] == sum->inputs[1])
        return MODEL_INPUT;
    const struct graph_node *branch = &graph->nodes[heir];
    const int other = sum->inputs[sum->inputs[0] == heir ? 1 : 0];
    if (other == MODEL_INPUT || !graph->nodes[other].needs_gradient)
        return MODEL_INPUT;
    if (graph->nodes[other].consumers == 1 && other > heir)
        return only_reads_gradient(&graph->nodes[other]) ? other : MODEL_INPUT;
    if (!only_reads_gradient(branch))
        return MODEL_INPUT;
    return is_read_before(graph, other, sum, heir) ? other : MODEL_INPUT;
}

/* Returns whether all inputs of a sum share its gradient, or need none. */
static bool shares_out(const struct graph *graph, unsigned sum)
{
    for (unsigned k = 0; k < 2; k++) {
        const int input = graph->nodes[sum].inputs[k];
        if (input != MODEL_INPUT && graph->nodes[input].needs_gradient &&
            sum_heir(graph, &graph->nodes[sum]) != input && second_heir(graph, (int)sum) != input)
            return false;
    }
    return true;
}

/* Returns whether layer `number` is the last to hand a gradient to the rectifier right before
 * it, and computes it separately. */
static bool hands_last(const struct graph *graph, unsigned number)
{
    const struct graph_node *node = &graph->nodes[number];
    return graph->nodes[number - 1].consumers > 1 && node->inputs[0] == (int)number - 1 &&
           node->layer.input_count == 1 && !node->layer.kind->gradient_passes && !node->gradient_in_place &&
           !node->layer.kind->adds_gradient && !graph_is_head(graph, number);
}

/* If a rectified sum is part of a batch norm's launch, the norm's backward launch, the first of
 * those of the sum's inputs, also masks by the rectifier, after adding the gradient from the
 * rectifier's first reader. */
static void mask_sums(struct graph *graph)
{
    for (unsigned i = 1; i + 1 < graph->node_count && device_finishes_products(graph->device); i++) {
        struct graph_node *norm = &graph->nodes[i - 1], *relu = &graph->nodes[i + 1];
        if (!graph_is_sum_of_norm(graph, i) || !graph->nodes[i].layer.applies_relu || relu->inputs[0] != (int)i ||
            relu->gradient_in_place || !shares_out(graph, i))
            continue;
        norm->masks_sum = relu->gradient_in_place = true;
        relu->waits = i + 2 < graph->node_count && hands_last(graph, i + 2);
    }
}

/* Returns the first of the layers that own a layer's gradient one after the other. */
static int last_owner(const struct graph *graph, int number)
{
    const int heirs[] = {gradient_heir(graph, number), second_heir(graph, number)};
    int last = number;
    for (unsigned i = 0; i < 2; i++)
        if (heirs[i] != MODEL_INPUT) {
            const int owner = last_owner(graph, heirs[i]);
            last = owner < last ? owner : last;
        }
    return last;
}

/* Plans a gradient. It is live from the backward pass of the layer's last consumer (or the loss)
 * to the layer's own; if an in-place layer passes it on, to that of the layer before. */
static void plan_gradient(struct graph *graph, unsigned number)
{
    struct graph_node *node = &graph->nodes[number];
    unsigned first_user = graph->node_count;
    for (unsigned i = graph->node_count; i-- > number + 1;)
        for (unsigned k = 0; k < graph->nodes[i].layer.input_count; k++)
            if (graph->nodes[i].inputs[k] == (int)number && first_user == graph->node_count)
                first_user = i;
    if (graph->is_stage) /* what other stages make of it comes first */
        first_user = graph->node_count;
    node->gradient = add_values(graph, layer_shape_elements(&node->layer.output), backward_step(graph, first_user),
                                backward_step(graph, (unsigned)last_owner(graph, (int)number)));
}

/* Returns whether a consumer of a layer, usually the only one, passes its own gradient's memory
 * on to it. */
static bool shares_gradient(const struct graph *graph, unsigned number)
{
    for (unsigned i = number + 1; i < graph->node_count; i++)
        if (reads(&graph->nodes[i], number) && second_heir(graph, (int)i) == (int)number)
            return true;
    if (graph->nodes[number].consumers != 1)
        return false;
    for (unsigned i = number + 1; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        if (sum_heir(graph, node) == (int)number)
            return true;
        if (node->inputs[0] == (int)number)
            return node->own && node->gradient_in_place;
    }
    return false;
}

/* Returns whether this graph has the layer's gradient: of its own layers, and those that it
 * computes for another part. */
static bool has_gradient_here(const struct graph *graph, unsigned number)
{
    bool here = graph->nodes[number].own;
    for (unsigned i = 0; i < graph->gradient_count; i++)
        here |= graph->gradients[i].layer == number && graph->gradients[i].from == graph->part &&
                !graph->gradients[i].table;
    return here && graph->nodes[number].needs_gradient;
}

static void keep_gradients(struct graph *graph)
{
    for (unsigned i = 0; i < graph->gradient_count; i++)
        if (graph->gradients[i].from == graph->part && !graph->gradients[i].table)
            keep_block(graph, graph->nodes[graph->gradients[i].layer].gradient);
}

/* Returns whether a layer that reads this one computes its gradient separately, because others
 * have written theirs before. */
static bool wants_spare(const struct graph *graph, unsigned number)
{
    for (unsigned i = number + 1; i < graph->node_count && graph->nodes[number].consumers > 1; i++) {
        const struct layer_kind *kind = graph->nodes[i].layer.kind;
        if (reads(&graph->nodes[i], number) && !kind->gradient_passes && !kind->adds_gradient)
            return true;
    }
    return false;
}

static void plan_gradients(struct graph *graph)
{
    int64_t spare = 0;
    for (unsigned i = graph->node_count; i-- > 0;) {
        struct graph_node *node = &graph->nodes[i];
        if (!has_gradient_here(graph, i) || graph_is_head(graph, i))
            continue;
        if (!shares_gradient(graph, i))
            plan_gradient(graph, i);
        int64_t elements = layer_shape_elements(&node->layer.output);
        if (elements > spare && wants_spare(graph, i))
            spare = elements;
    }
    for (unsigned i = graph->node_count; i-- > 0;) {
        struct graph_node *node = &graph->nodes[i];
        int heir = gradient_heir(graph, (int)i), second = second_heir(graph, (int)i);
        if (node->own && heir != MODEL_INPUT && graph->nodes[heir].consumers == 1 &&
            shares_gradient(graph, (unsigned)heir))
            graph->nodes[heir].gradient = node->gradient;
        if (node->own && second != MODEL_INPUT)
            graph->nodes[second].gradient = node->gradient;
    }
    graph->spare = add_values(graph, spare, (int)graph->node_count, backward_step(graph, 0));
}

/* Plans the gradient that a tensor's borrower computes before the lender adds its own: a
 * finished sum that an accumulating pass then adds at once. It lies in the lender's part; if the
 * borrower is in another part, also there, until the lender has it. */
static void plan_borrowed_gradient(struct graph *graph, unsigned number)
{
    struct graph_node *node = &graph->nodes[number], *lender = &graph->nodes[node->lender];
    const struct layer_parameter *table = &lender->layer.parameters[0];
    int64_t elements = table->shape[0] * table->shape[1];
    if (lender->own)
        lender->borrowed_gradient =
            add_block(graph, elements, sizeof(float), backward_step(graph, node->own ? number : graph->node_count),
                      backward_step(graph, (unsigned)node->lender));
    if (lender->own || !node->own)
        return;
    lender->lent_gradient =
        add_block(graph, elements, sizeof(float), backward_step(graph, number), backward_step(graph, 0));
    keep_block(graph, lender->lent_gradient);
}

static void plan_borrowed_gradients(struct graph *graph)
{
    for (unsigned i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].lender != NO_LAYER)
            plan_borrowed_gradient(graph, i);
}

/* Plans the gradient of the last layer's own parameters, which a pass in several parts finishes
 * before it adds it. */
static void plan_head_gradient(struct graph *graph)
{
    const struct graph_node *node = &graph->nodes[graph->node_count - 1];
    int64_t elements = 0, rows = graph->max_examples * graph_loss_rows(graph);
    for (unsigned p = 0; p < node->layer.parameter_count; p++)
        elements += layer_parameter_elements(&node->layer.parameters[p]);
    graph->head_gradient = graph->head_rows > 0 && rows > graph->head_rows && node->lender == NO_LAYER
                               ? add_block(graph, elements, sizeof(float), head_end(graph), head_end(graph))
                               : NO_BLOCK;
}

static int64_t workspace_floats(const struct graph *graph)
{
    int64_t most = 0;
    for (unsigned i = 0; i < graph->node_count; i++) {
        const struct layer *layer = &graph->nodes[i].layer;
        int64_t floats = layer->kind->workspace ? layer->kind->workspace(layer, graph->max_examples) : 0;
        if (!graph->nodes[i].own)
            continue;
        most = floats > most ? floats : most;
    }
    return most;
}

static bool reads_batch(const struct graph *graph)
{
    for (unsigned i = 0; i < graph->node_count; i++)
        for (unsigned k = 0; k < graph->nodes[i].layer.input_count; k++)
            if (graph->nodes[i].own && graph_output_owner(graph, graph->nodes[i].inputs[k]) == MODEL_INPUT)
                return true;
    return false;
}

/* Plans blocks for rounded copies of the caller's inputs and parameters. */
static void plan_rounded(struct graph *graph)
{
    int end = backward_step(graph, 0);
    graph->rounded_inputs = graph->rounded_parameters = NO_BLOCK;
    if (!graph_rounds(graph))
        return;
    graph->rounded_parameters = add_block(graph, graph->layout.elements, (size_t)stored_bytes(graph->stored), 0, end);
    if (graph->format.input_type == ELEMENT_FLOAT32 && reads_batch(graph))
        graph->rounded_inputs = add_values(graph, graph->format.input_elements, 0, end);
}

/* Plans blocks for the batch on the device: what a pass reads more than once is copied there
 * first. */
static void plan_batch(struct graph *graph)
{
    graph->batch_inputs = graph->batch_targets = NO_BLOCK;
    if (device_memory_is_shared(graph->device))
        return;
    /* A stage copies it again in the backward pass. */
    bool read_once = graph->rounded_inputs != NO_BLOCK && !graph->is_stage;
    int end = backward_step(graph, 0), last_read = read_once ? 0 : end;
    if (reads_batch(graph))
        graph->batch_inputs = add_block(graph, graph->max_examples, example_input_bytes(&graph->format), 0, last_read);
    if (graph->nodes[graph->node_count - 1].own)
        graph->batch_targets = add_block(graph, graph->max_examples, example_target_bytes(&graph->format), 0, end);
    keep_block(graph, graph->batch_inputs);
}

/* Places the blocks that stay, or the others, in an arena of their own; returns its size. */
static int64_t place_blocks(struct graph *graph, bool stays)
{
    SCOPED_FREE struct memory_block *blocks = memory_allocate(graph->block_count + 1, sizeof *blocks);
    unsigned count = 0;
    for (unsigned i = 0; i < graph->block_count; i++)
        if (graph->block_stays[i] == stays)
            blocks[count++] = graph->blocks[i];
    int64_t bytes = memory_planner_place(blocks, count);
    count = 0;
    for (unsigned i = 0; i < graph->block_count; i++)
        if (graph->block_stays[i] == stays)
            graph->blocks[i].offset = blocks[count++].offset;
    return bytes;
}

static int allocate_arenas(struct graph *graph, struct error *error)
{
    void *arena = NULL, *slot_arena = NULL;
    int64_t slots_bytes = graph->slot_bytes * graph->slots;
    if (device_allocate(graph->device, MEMORY_DEVICE, (size_t)graph->arena_bytes, &arena, error) < 0 ||
        (slots_bytes > 0 &&
         device_allocate(graph->device, MEMORY_DEVICE, (size_t)slots_bytes, &slot_arena, error) < 0)) {
        device_free(graph->device, arena);
        return error_wrap(error,
                          "the memory plan of a pass of %lld examples does not fit; set a smaller batch or more "
                          "logical shards",
                          (long long)graph->max_examples);
    }
    graph->arena = arena;
    graph->slot_arena = slot_arena;
    return 0;
}

static int64_t block_bytes(const struct graph *graph, int block)
{
    return block == NO_BLOCK ? 0 : graph->blocks[block].bytes;
}

int graph_plan_memory(struct graph *graph, struct error *error)
{
    size_t most = 7 * graph->node_count + 8;
    graph->blocks = memory_allocate(most, sizeof *graph->blocks);
    graph->block_stays = memory_allocate(most, sizeof *graph->block_stays);
    graph_plan_head(graph);
    if (graph_plan_recompute(graph, error) < 0)
        return -1;
    graph_fuse_gelus(graph);
    graph_fuse_norms(graph);
    graph_fuse_sums(graph);
    if (!graph->evaluation_only && !graph->is_stage)
        mask_sums(graph);
    plan_rounded(graph);
    plan_batch(graph);
    for (unsigned i = 0; i < graph->node_count; i++)
        plan_activations(graph, i);
    plan_values(graph);
    graph->spare = graph->head_gradient = NO_BLOCK;
    if (!graph->evaluation_only) {
        plan_gradients(graph);
        plan_borrowed_gradients(graph);
        plan_head_gradient(graph);
    }
    keep_gradients(graph);
    int end = backward_step(graph, 0), loss = (int)graph->node_count;
    int64_t rows = graph->nodes[graph->node_count - 1].own ? graph->max_examples * graph_loss_rows(graph) : 0;
    graph->workspace = add_block(graph, workspace_floats(graph), sizeof(float), 0, end);
    graph->loss_workspace = graph->head_rows > 0 ? add_block(graph, 2 * rows, sizeof(double), loss - 1, head_end(graph))
                                                 : add_block(graph, 2 * rows, sizeof(double), loss, loss);
    graph->arena_bytes = place_blocks(graph, false);
    graph->slot_bytes = place_blocks(graph, true);
    graph->workspace_bytes = block_bytes(graph, graph->workspace) + block_bytes(graph, graph->rounded_parameters);
    graph->activation_bytes = graph->arena_bytes - graph->workspace_bytes + graph->slot_bytes * graph->slots;
    return graph->plan_only ? 0 : allocate_arenas(graph, error);
}

/* Cuts the gradients [offset, end), which layer `number` makes final, into buckets of about
 * equal size. */
static void cut_range(struct graph *graph, int64_t offset, int64_t end, unsigned number)
{
    int64_t elements = end - offset, limit = GRAPH_BUCKET_BYTES / (int64_t)sizeof(float);
    int64_t pieces = (elements + limit - 1) / limit;
    for (int64_t p = pieces; p-- > 0;) {
        int64_t first = offset + elements * p / pieces;
        graph->buckets[graph->bucket_count] =
            (struct graph_bucket){first, offset + elements * (p + 1) / pieces - first};
        graph->bucket_layers[graph->bucket_count++] = number;
    }
}

/* Returns the layer's first own tensor, which its others follow, or -1. A split layer's tensors
 * count for its first slice, whose backward pass is last. */
static int first_own_tensor(const struct graph_node *node)
{
    for (unsigned p = 0; node->slice.index == 0 && p < node->layer.parameter_count; p++)
        if (!node->layer.parameters[p].borrowed && !node->layer.parameters[p].statistic)
            return (int)node->tensors[p];
    return -1;
}

int graph_plan_buckets(struct graph *graph, struct error *error)
{
    int64_t limit = GRAPH_BUCKET_BYTES / (int64_t)sizeof(float), end = graph->layout.elements;
    size_t most = graph->node_count + (size_t)(end / limit) + 1;
    graph->buckets = memory_allocate(most, sizeof *graph->buckets);
    graph->bucket_layers = memory_allocate(most, sizeof *graph->bucket_layers);
    graph->bucket_events = memory_allocate(most, sizeof(struct device_event *));
    if (graph->program != NULL)
        cut_range(graph, 0, end, 0);
    for (unsigned i = graph->node_count; i-- > 0;) {
        int own = first_own_tensor(&graph->nodes[i]);
        if (own < 0)
            continue;
        int64_t offset = graph->tensors[own].offset;
        if (offset == graph->layout.statistics) /* final after all backward passes, as running statistics are */
            offset = 0;
        if (end - offset >= limit / 2 || offset == 0) {
            cut_range(graph, offset, end, i);
            end = offset;
        }
    }
    for (unsigned b = 0; b < graph->bucket_count && !graph->plan_only; b++)
        if (device_event_new(graph->device, &graph->bucket_events[b], error) < 0)
            return -1;
    return 0;
}
