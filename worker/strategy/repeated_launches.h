/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches that come again and again, for as long as their key is the same: then
 * they are recorded, and go onto the stream with one call (device.h). A new key is
 * launched plainly the first time: it may be that of a last, short batch, and what
 * libraries do the first time cannot be recorded.
 */
#ifndef COXSWAIN_STRATEGY_REPEATED_LAUNCHES_H
#define COXSWAIN_STRATEGY_REPEATED_LAUNCHES_H

#include "worker/device/device.h"
#include "worker/strategy/strategy.h"

/* All that may differ from one time to the next. */
struct repeated_key {
    const void *parameters, *inputs;
    int64_t examples, seed;
};

/* On one stream, which `options` are told of. */
struct repeated_stream {
    const struct strategy_options *options;
    struct device_stream *stream;
    bool records; /* false: each launch by itself, from the start or since something could not be recorded */
};
struct repeated_stream repeated_stream_of(const struct strategy_options *options, struct device_stream *stream);

struct repeated_launches {
    struct repeated_key key, last;
    struct device_recording *recording; /* by `key`; NULL: none yet */
};

/* Launches on the stream. */
typedef int repeated_queue(void *context, struct error *error);
int repeated_launches_queue(struct repeated_launches *launches, struct repeated_stream *on, struct repeated_key key,
                            repeated_queue *queue, void *context, struct error *error);
/* Once the stream has passed them. */
void repeated_launches_release(struct repeated_launches *launches);

#endif
