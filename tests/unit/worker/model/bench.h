/* SPDX-License-Identifier: Apache-2.0
 *
 * A model on a fresh CPU device with a batch of numbers drawn by philox, and what
 * one pass over it leaves: for tests of whole models.
 */
#ifndef COXSWAIN_TESTS_MODEL_BENCH_H
#define COXSWAIN_TESTS_MODEL_BENCH_H

#include "worker/model/graph.h"

struct bench {
    struct device *device;
    struct device_stream *stream;
    struct graph *graph;
    float *parameters, *gradients;
    void *inputs, *targets;
    struct loss_sums sums;
    int64_t examples;
    float scale; /* of a pass: 1 */
    float loss_scale;
};

/* Parameters as they begin, gradients of zero. */
struct bench bench_open(const struct model_spec *model, int64_t examples, int threads, enum precision precision);
/* Any graph; the device is the bench's. */
struct bench bench_open_graph(struct graph_options graph, int threads);
/* graph_options.logit_rows. */
struct bench bench_open_rows(const struct model_spec *model, int64_t examples, int threads, enum precision precision,
                             int64_t logit_rows);
void bench_close(struct bench *b);

/* In [-1, 1): the batch is made of such. */
float bench_number(uint32_t seed, int64_t i);

struct graph_pass bench_pass(struct bench *b);
/* A whole pass that learns; its gradients and sums are there when it returns. */
void bench_backward(struct bench *b, bool accumulate);

#endif
