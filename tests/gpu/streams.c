/* SPDX-License-Identifier: Apache-2.0
 *
 * Order and failure on a GPU's streams.
 */
#include <stdatomic.h>
#include <string.h>

#include "tests/gpu/check.h"

static void set_flag(void *context)
{
    atomic_store((atomic_int *)context, 1);
}

static void check_host_function(struct side *gpu)
{
    struct error error = ERROR_INIT;
    struct device_event *event = NULL;
    atomic_int flag = 0;
    must(device_event_new(gpu->device, &event, &error), &error);
    verdict(device_event_is_done(event), "an event is done before it is recorded", "it is not");
    device_stream_call(gpu->stream, set_flag, &flag);
    device_event_record(event, gpu->stream);
    must(device_event_wait(event, &error), &error);
    verdict(atomic_load(&flag) == 1, "a host function runs in the stream's order", "it had not run");
    device_event_free(event);
}

static void await_flag(void *context)
{
    while (atomic_load((atomic_int *)context) == 0)
        ;
}

/* CUDA keeps "not ready" as the thread's last error, for which the next launch asks. */
static void check_early_question(struct side *gpu)
{
    struct error error = ERROR_INIT;
    struct device_stream *other = NULL;
    struct device_event *event = NULL;
    atomic_int flag = 0;
    float sent[4] = {1, 2, 3, 4}, back[4] = {0};
    must(device_stream_new(gpu->device, &other, &error), &error);
    must(device_event_new(gpu->device, &event, &error), &error);
    float *from = side_numbers(gpu, 4, 1), *to = side_numbers(gpu, 4, 2);
    side_put(gpu, from, sent, sizeof sent);
    device_stream_call(other, await_flag, &flag);
    device_event_record(event, other);
    verdict(!device_event_is_done(event), "an event behind what has not ended is not done", "it is");
    device_scale(gpu->stream, &(struct scale){.count = 4, .factor = 2, .x = from});
    device_copy(gpu->stream, &(struct copy){sizeof sent, from, to});
    atomic_store(&flag, 1);
    verdict(device_stream_synchronise(gpu->stream, &error) == 0, "to be asked too early spoils no launch", "%s",
            error.message);
    error_clear(&error);
    must(device_event_wait(event, &error), &error);
    side_get(gpu, back, to, sizeof back);
    verdict(back[0] == 2 && back[3] == 8, "what was launched after that question has run", "%g, %g", (double)back[0],
            (double)back[3]);
    device_event_free(event);
    device_stream_free(other);
    side_clear(gpu);
}

/* A stream that waits for an event copies the result of another's long product. */
static void check_order(struct side *gpu)
{
    enum { SIDE = 1024, COUNT = SIDE * SIDE };
    struct error error = ERROR_INIT;
    struct device_stream *other = NULL;
    struct device_event *event = NULL;
    must(device_stream_new(gpu->device, &other, &error), &error);
    must(device_event_new(gpu->device, &event, &error), &error);
    float *x = side_numbers(gpu, COUNT, 1), *w = side_numbers(gpu, COUNT, 2), *y = side_numbers(gpu, COUNT, 3);
    float *copied = side_numbers(gpu, COUNT, 4);
    static float first[COUNT], second[COUNT];
    for (int i = 0; i < 20; i++)
        device_dense_forward(gpu->stream,
                             &(struct dense_forward){SIDE, SIDE, SIDE, x, w, NULL, y, .activation = ACTIVATION_NONE});
    device_event_record(event, gpu->stream);
    device_stream_wait(other, event);
    device_copy(other, &(struct copy){sizeof first, y, copied});
    must(device_stream_synchronise(other, &error), &error);
    side_get(gpu, first, y, sizeof first);
    side_get(gpu, second, copied, sizeof second);
    verdict(memcmp(first, second, sizeof first) == 0, "a stream waits for another's event", "it copied too early");
    device_event_free(event);
    device_stream_free(other);
    side_clear(gpu);
}

static void check_bad_token(struct side *gpu)
{
    struct error error = ERROR_INIT;
    struct device_stream *stream = NULL;
    struct device_event *event = NULL;
    int32_t tokens[3] = {1, 700, 2};
    must(device_stream_new(gpu->device, &stream, &error), &error);
    must(device_event_new(gpu->device, &event, &error), &error);
    int32_t *bad = side_tokens(gpu, 3, 5, 1);
    side_put(gpu, bad, tokens, sizeof tokens);
    device_embedding_forward(stream, &(struct embedding_forward){1, 3, 8, 5, bad, side_numbers(gpu, 40, 1),
                                                                 side_numbers(gpu, 24, 2), side_numbers(gpu, 24, 3)});
    device_event_record(event, stream);
    verdict(device_event_wait(event, &error) < 0 && error.kind == ERROR_INVALID && strstr(error.message, "token 700"),
            "a bad token fails the event behind it", "%s", error.message);
    error_clear(&error);
    verdict(device_stream_synchronise(stream, &error) < 0, "a failed stream stays failed", "it is well");
    error_clear(&error);
    verdict(device_stream_synchronise(gpu->stream, &error) == 0, "another stream is well", "%s", error.message);
    device_event_free(event);
    device_stream_free(stream);
    side_clear(gpu);
}

static void check_bad_target(struct side *gpu)
{
    struct error error = ERROR_INIT;
    struct device_stream *stream = NULL;
    int32_t targets[2] = {0, -3};
    must(device_stream_new(gpu->device, &stream, &error), &error);
    int32_t *bad = side_tokens(gpu, 2, 4, 1);
    side_put(gpu, bad, targets, sizeof targets);
    device_softmax_cross_entropy(
        stream, &(struct softmax_cross_entropy){2, 4, side_numbers(gpu, 8, 1), bad, 1.0f, side_numbers(gpu, 8, 2),
                                                side_workspace(gpu, 4), side_output_loss(gpu), 0, NULL, 0});
    verdict(device_stream_synchronise(stream, &error) < 0 && strstr(error.message, "target -3 is outside 0..3"),
            "a bad target fails its stream", "%s", error.message);
    device_stream_free(stream);
    side_clear(gpu);
}

static void check_too_much(struct side *gpu)
{
    struct error error = ERROR_INIT;
    void *memory = NULL;
    verdict(device_allocate(gpu->device, MEMORY_DEVICE, (size_t)1 << 50, &memory, &error) < 0 &&
                error.kind == ERROR_NO_SPACE,
            "a petabyte is refused", "%s", error.message);
}

void check_streams(struct side *gpu)
{
    check_host_function(gpu);
    check_early_question(gpu);
    check_order(gpu);
    check_bad_token(gpu);
    check_bad_target(gpu);
    check_too_much(gpu);
}
