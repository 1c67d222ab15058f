/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches that are recorded once and replayed.
 */
#include <string.h>

#include "tests/gpu/check.h"

enum { SIDE = 64, COUNT = SIDE * SIDE };

static bool are_equal(struct side *s, const float *a, const float *b)
{
    static float first[COUNT], second[COUNT];
    side_get(s, first, a, sizeof first);
    side_get(s, second, b, sizeof second);
    return memcmp(first, second, sizeof first) == 0;
}

/* A product, an addition and a copy. */
static void launch(struct side *s, const float *x, const float *w, float *y, float *sum, float *copied)
{
    device_dense_forward(s->stream,
                         &(struct dense_forward){SIDE, SIDE, SIDE, x, w, NULL, y, .activation = ACTIVATION_NONE});
    device_axpy(s->stream, &(struct axpy){COUNT, 1.0f, y, sum});
    device_copy(s->stream, &(struct copy){COUNT * 4, sum, copied});
}

static struct device_recording *record(struct side *s, const float *x, const float *w, float *y, float *sum,
                                       float *copied)
{
    struct error error = ERROR_INIT;
    struct device_recording *recording = NULL;
    must(device_record_begin(s->stream, &error), &error);
    launch(s, x, w, y, sum, copied);
    must(device_record_end(s->stream, &recording, &error), &error);
    return recording;
}

static void check_replays(struct side *gpu)
{
    float *x = side_numbers(gpu, COUNT, 1), *other = side_numbers(gpu, COUNT, 2), *w = side_numbers(gpu, COUNT, 3);
    float *y = side_numbers(gpu, COUNT, 4), *sum = side_numbers(gpu, COUNT, 5), *copied = side_numbers(gpu, COUNT, 6);
    float *plain = side_numbers(gpu, COUNT, 5), *start = side_numbers(gpu, COUNT, 5);
    launch(gpu, x, w, y, plain, copied);
    struct device_recording *recording = record(gpu, x, w, y, sum, copied);
    verdict(are_equal(gpu, sum, start), "what is recorded is not done", "it was");
    device_replay(gpu->stream, recording);
    verdict(are_equal(gpu, sum, plain) && are_equal(gpu, copied, plain), "a replay has the bits of launches",
            "they differ");
    device_copy(gpu->stream, &(struct copy){COUNT * 4, other, x});
    for (int i = 0; i < 3; i++) {
        device_replay(gpu->stream, recording);
        launch(gpu, other, w, y, plain, copied);
    }
    verdict(are_equal(gpu, sum, plain), "replays find what is in memory then, as often as wanted", "they did not");
    device_recording_free(recording);
    side_clear(gpu);
}

/* The recording fails, but not the stream. */
static void check_failure(struct side *gpu)
{
    struct error error = ERROR_INIT, wait = ERROR_INIT;
    struct device_recording *recording = NULL;
    float *x = side_numbers(gpu, COUNT, 1), *y = side_numbers(gpu, COUNT, 2), *start = side_numbers(gpu, COUNT, 2);
    must(device_record_begin(gpu->stream, &error), &error);
    device_axpy(gpu->stream, &(struct axpy){COUNT, 1.0f, x, y});
    (void)device_stream_synchronise(gpu->stream, &wait);
    verdict(device_record_end(gpu->stream, &recording, &error) < 0 && error.message[0] != '\0' &&
                wait.kind == ERROR_INTERNAL && recording == NULL,
            "a wait of the host spoils a recording, and not its stream", "%s; %s", error.message, wait.message);
    verdict(are_equal(gpu, y, start), "nothing of it is done", "it was");
    device_axpy(gpu->stream, &(struct axpy){COUNT, 0.0f, x, y});
    error_clear(&wait);
    must(device_stream_synchronise(gpu->stream, &wait), &wait);
    side_clear(gpu);
}

/* Queues enough work that a stream which fails to wait for it reads a wrong sum. */
static void add_often(struct side *gpu, const float *one, float *sum)
{
    for (int i = 0; i < 200; i++)
        device_axpy(gpu->stream, &(struct axpy){COUNT, 1.0f, one, sum});
}

/* An event is recorded in the middle of a recording. Another stream waits for it and copies what each replay has computed by then. */
static void check_event(struct side *gpu)
{
    struct error error = ERROR_INIT;
    struct device_recording *recording = NULL;
    struct device_event *event = NULL;
    struct device_stream *other = NULL;
    float *one = side_numbers(gpu, COUNT, 1), *sum = side_numbers(gpu, COUNT, 2), *copied = side_numbers(gpu, COUNT, 3);
    float *plain = side_numbers(gpu, COUNT, 2), *behind = side_numbers(gpu, COUNT, 4);
    bool equal = true;
    must(device_event_new(gpu->device, &event, &error), &error);
    must(device_stream_new(gpu->device, &other, &error), &error);
    must(device_record_begin(gpu->stream, &error), &error);
    add_often(gpu, one, sum);
    device_event_record(event, gpu->stream);
    device_axpy(gpu->stream, &(struct axpy){COUNT, 1.0f, one, behind});
    must(device_record_end(gpu->stream, &recording, &error), &error);
    verdict(device_event_is_done(event), "an event in a recording is not recorded by it", "it was");
    for (int i = 0; i < 3; i++) {
        device_replay(gpu->stream, recording);
        device_stream_wait(other, event);
        device_copy(other, &(struct copy){COUNT * 4, sum, copied});
        must(device_stream_synchronise(other, &error), &error);
        add_often(gpu, one, plain);
        equal &= are_equal(gpu, copied, plain);
    }
    verdict(equal, "but by each replay, for other streams to wait for", "they did not");
    device_recording_free(recording);
    device_stream_free(other);
    device_event_free(event);
    side_clear(gpu);
}

void check_recordings(struct side *gpu)
{
    if (!device_can_record(gpu->device))
        return;
    check_replays(gpu);
    check_event(gpu);
    check_failure(gpu);
}
