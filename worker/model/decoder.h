/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a language model on a growing sequence of tokens, for text generation (coxswain-worker --generate).
 * Each token goes through the layers once; the queries, keys and values that attention reads again are cached
 * (a KV cache), so that the next token costs one position and not a pass over the whole context.
 *
 * All arithmetic is float32. The results equal those of graph_evaluate up to rounding: products of fewer rows
 * are summed in another order.
 *
 *     decoder_new -> feed … logits … rewind -> feed … -> free
 */
#ifndef COXSWAIN_MODEL_DECODER_H
#define COXSWAIN_MODEL_DECODER_H

#include "worker/model/graph.h"

struct decoder;

/* Creates a decoder. A graph with `layout_only` suffices. The graph, the stream and the
 * parameters (device memory) must outlive the decoder. ERROR_INVALID: a layer needs the whole
 * sequence (the message names it), or the model does not predict the next token. */
int decoder_new(const struct graph *graph, struct device *device, struct device_stream *stream, const float *parameters,
                struct decoder **ret_decoder, struct error *error);
void decoder_free(struct decoder *decoder);

/* Returns the most tokens that a sequence can have. */
int64_t decoder_context(const struct decoder *decoder);
/* Returns how many tokens have been fed since the start or the last rewind. */
int64_t decoder_position(const struct decoder *decoder);

/* Appends `count` tokens, at least one, to the sequence, and returns once the layers have
 * processed them. ERROR_INVALID: they do not fit the context, or one is not in the vocabulary. */
int decoder_feed(struct decoder *decoder, const int32_t *tokens, int64_t count, struct error *error);
/* Returns the logits of the token that follows the last one fed: one value per token that the
 * model predicts. Valid until the next call. */
const float *decoder_logits(const struct decoder *decoder);
/* Starts a new, empty sequence. */
void decoder_rewind(struct decoder *decoder);

#endif
