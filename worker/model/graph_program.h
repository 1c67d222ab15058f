/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the parts of graph.h that differ for a graph whose model is a program (StableHLO
 * functions that XLA compiles, program.h) instead of a list of layers. Callers use graph.h for
 * both kinds; graph.c, graph_layout.c and graph_pass.c call these functions if the graph has a
 * program.
 */
#ifndef COXSWAIN_MODEL_GRAPH_PROGRAM_H
#define COXSWAIN_MODEL_GRAPH_PROGRAM_H

#include "worker/model/graph.h"

/* Does what graph_new does for layers. */
int graph_program_build(struct graph *graph, const struct graph_options *options, struct error *error);
unsigned graph_program_pieces(const struct graph *graph, struct parameter_piece *ret_pieces);
/* Enqueues a pass that graph_check_pass has checked. All buckets become final together, at its end. */
int graph_program_launch(struct graph *graph, struct device_stream *stream, const struct graph_pass *pass,
                         bool evaluation);

#endif
