/* SPDX-License-Identifier: Apache-2.0
 *
 * A model over tokens, fed with a sequence as it grows: each token goes through
 * the layers once, and what attention must see again of it (its query, key and
 * value in each layer) stays. So the next token costs one position, not a pass
 * over the whole context.
 *
 * Its arithmetic is float32. The numbers are those of graph_evaluate but for
 * rounding: a product of fewer rows is added up in another order.
 *
 *     decoder_new -> feed … logits … rewind -> feed … -> free
 */
#ifndef COXSWAIN_MODEL_DECODER_H
#define COXSWAIN_MODEL_DECODER_H

#include "worker/model/graph.h"

struct decoder;

/* `graph` may be one for the layout only; it, the stream and the parameters (device memory) outlive the decoder. ERROR_INVALID
 * names a layer that needs the sequence whole, or says that the model does not give a next token. */
int decoder_new(const struct graph *graph, struct device *device, struct device_stream *stream, const float *parameters,
                struct decoder **ret_decoder, struct error *error);
void decoder_free(struct decoder *decoder);

int64_t decoder_context(const struct decoder *decoder);
/* How many tokens it has been fed. */
int64_t decoder_position(const struct decoder *decoder);

/* The sequence goes on with `count` tokens, at least one, which must still fit the context and be in the vocabulary
 * (ERROR_INVALID). Returns once they are through. */
int decoder_feed(struct decoder *decoder, const int32_t *tokens, int64_t count, struct error *error);
/* One value a token of the vocabulary: what comes after the last that was fed. Valid until the next call. */
const float *decoder_logits(const struct decoder *decoder);
/* Forgets the sequence. */
void decoder_rewind(struct decoder *decoder);

#endif
