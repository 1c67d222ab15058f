/* SPDX-License-Identifier: Apache-2.0
 *
 * Describes the layers of a graph as JSON, for coxswain-worker --describe-model:
 *
 *   {"input": "28x28x1", "parameters": 225034,
 *    "layers": [{"name": "conv1", "type": "Conv2D", "inputs": [-1], "output": "28x28x32", "parameters": 320}]}
 *
 * Shapes are those of one example. `inputs` are places in the list; -1 is the model's input. The parameters of a layer that uses another
 * layer's (weightsOf) are counted at that other layer.
 */
#ifndef COXSWAIN_MODEL_GRAPH_DESCRIBE_H
#define COXSWAIN_MODEL_GRAPH_DESCRIBE_H

#include "common/json.h"
#include "worker/model/graph.h"

/* The graph must be one of layers, not of a program. Free the result with json_free. */
struct json *graph_describe(const struct graph *graph);

#endif
