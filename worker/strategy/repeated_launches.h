/* SPDX-License-Identifier: Apache-2.0
 *
 * Records a sequence of device launches that repeats in every step, and replays it with one call (device_recording in
 * device.h; a CUDA graph on a GPU), so that the host spends less time on each step. Replicas use it for their passes
 * and updates.
 *
 * A recording is valid as long as its key stays the same. A new key is first launched without
 * recording, for two reasons: it may be that of a last, short batch, and what libraries do on first
 * use cannot be recorded. It is recorded when it comes a second time in a row. If recording fails,
 * the stream launches everything singly from then on, and on_warning is called.
 */
#ifndef COXSWAIN_STRATEGY_REPEATED_LAUNCHES_H
#define COXSWAIN_STRATEGY_REPEATED_LAUNCHES_H

#include "worker/device/device.h"
#include "worker/strategy/strategy.h"

/* Everything that may differ from one launch to the next. */
struct repeated_key {
    const void *parameters, *inputs;
    int64_t examples, seed;
};

/* A stream on which launches are recorded; failures are reported to `options`. */
struct repeated_stream {
    const struct strategy_options *options;
    struct device_stream *stream;
    bool records; /* false: launch singly, because of the options, the device or a failed recording */
};
struct repeated_stream repeated_stream_of(const struct strategy_options *options, struct device_stream *stream);

struct repeated_launches {
    struct repeated_key key, last;
    struct device_recording *recording; /* valid for `key`; NULL: none yet */
};

/* Launches the sequence on the stream. */
typedef int repeated_queue(void *context, struct error *error);
int repeated_launches_queue(struct repeated_launches *launches, struct repeated_stream *on, struct repeated_key key,
                            repeated_queue *queue, void *context, struct error *error);
/* Frees the recording. The stream must have finished it. */
void repeated_launches_release(struct repeated_launches *launches);

#endif
