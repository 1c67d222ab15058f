/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/repeated_launches.h"

#include <stdio.h>

struct repeated_stream repeated_stream_of(const struct strategy_options *options, struct device_stream *stream)
{
    return (struct repeated_stream){.options = options,
                                    .stream = stream,
                                    .records = device_can_record(options->device) && !options->launches_singly};
}

static bool keys_are_equal(const struct repeated_key *a, const struct repeated_key *b)
{
    return a->parameters == b->parameters && a->inputs == b->inputs && a->examples == b->examples && a->seed == b->seed;
}

static void tell_failure(const struct strategy_options *options, const struct error *cause)
{
    char text[ERROR_MESSAGE_MAX + 128];
    snprintf(text, sizeof text, "steps are launched operation by operation, since they could not be recorded: %s",
             cause->message);
    if (options->calls.on_warning != NULL)
        options->calls.on_warning(options->calls.context, text);
}

/* Where a device cannot do what it should there is another way: nothing is recorded any more. */
static void record(struct repeated_launches *launches, struct repeated_stream *on, repeated_queue *queue, void *context)
{
    struct error cause = ERROR_INIT;
    repeated_launches_release(launches);
    int result = device_record_begin(on->stream, &cause);
    if (result == 0) {
        struct error end = ERROR_INIT;
        result = queue(context, &cause);
        if (device_record_end(on->stream, &launches->recording, &end) < 0) {
            cause = result < 0 ? cause : end;
            result = -1;
        }
    }
    on->records = result == 0;
    if (result < 0)
        tell_failure(on->options, &cause);
}

int repeated_launches_queue(struct repeated_launches *launches, struct repeated_stream *on, struct repeated_key key,
                            repeated_queue *queue, void *context, struct error *error)
{
    bool is_known = launches->recording != NULL && keys_are_equal(&launches->key, &key);
    if (on->records && !is_known && keys_are_equal(&launches->last, &key)) {
        if (launches->recording != NULL && device_stream_synchronise(on->stream, error) < 0) /* it may be under way */
            return -1;
        record(launches, on, queue, context);
        launches->key = key;
        is_known = on->records;
    }
    launches->last = key;
    if (!is_known)
        return queue(context, error);
    device_replay(on->stream, launches->recording);
    return 0;
}

void repeated_launches_release(struct repeated_launches *launches)
{
    device_recording_free(launches->recording);
    launches->recording = NULL;
}
