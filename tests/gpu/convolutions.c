/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares convolutions of cuDNN with ours on the same GPU, and checks that cuDNN is used.
 */
#include <stdio.h>

#include "tests/gpu/check.h"

/* In each precision, the first and the second image begin at multiples of 16 bytes. */
static const struct conv2d_shape shapes[] = {
    {2, 11, 8, 2, 6, 3, 1, 1, 11, 8}, {3, 9, 8, 5, 8, 5, 2, 2, 5, 4},   {4, 7, 8, 8, 16, 1, 2, 0, 4, 4},
    {1, 5, 16, 1, 24, 3, 3, 0, 1, 5}, {5, 8, 8, 16, 16, 3, 1, 1, 8, 8}, {2, 14, 14, 32, 8, 5, 1, 0, 10, 10},
};
#define SHAPES (sizeof shapes / sizeof *shapes)

enum direction { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHT };
static const char *const directions[] = {"conv2d_forward", "conv2d_backward_data", "conv2d_backward_weight"};

/* Sizes: a shape's number, a direction, whether TF32 is allowed, whether gradients accumulate. */
static void convolve(struct side *s, const int64_t *n)
{
    const struct conv2d_shape *shape = &shapes[n[0]];
    const int64_t inputs = shape->b * shape->h * shape->w * shape->c;
    const int64_t outputs = shape->b * shape->oh * shape->ow * shape->o;
    const int64_t weights = shape->o * shape->c * shape->kernel * shape->kernel;
    float *workspace = side_numbers(s, conv2d_workspace(shape), 4);
    if (n[1] == FORWARD)
        device_conv2d_forward_stored(s->stream, s->stored,
                                     &(struct conv2d_forward){.shape = *shape,
                                                              .x = side_values(s, inputs, 1),
                                                              .weight = side_values(s, weights, 2),
                                                              .bias = side_values(s, shape->o, 3),
                                                              .y = side_output_values(s, outputs),
                                                              .workspace = workspace,
                                                              .activation = ACTIVATION_RELU,
                                                              .tf32 = n[2]});
    else if (n[1] == BACKWARD_DATA)
        device_conv2d_backward_data_stored(s->stream, s->stored,
                                           &(struct conv2d_backward_data){.shape = *shape,
                                                                          .dy = side_values(s, outputs, 1),
                                                                          .weight = side_values(s, weights, 2),
                                                                          .relu_output = side_values(s, inputs, 3),
                                                                          .dx = side_output_values(s, inputs),
                                                                          .workspace = workspace,
                                                                          .tf32 = n[2]});
    else
        device_conv2d_backward_weight_stored(s->stream, s->stored,
                                             &(struct conv2d_backward_weight){.shape = *shape,
                                                                              .dy = side_values(s, outputs, 1),
                                                                              .x = side_values(s, inputs, 2),
                                                                              .dweight = side_output(s, weights),
                                                                              .dbias = side_output(s, shape->o),
                                                                              .workspace = workspace,
                                                                              .accumulate = n[3],
                                                                              .tf32 = n[2]});
}

/* cuDNN rounds weight gradients to the precision of values. */
static double allowed(const struct side *dnn, const int64_t *n)
{
    static const double places[] = {
        [STORED_FLOAT32] = 5e-6, [STORED_BFLOAT16] = 1.0 / 256, [STORED_FLOAT16] = 1.0 / 2048};
    if (n[2] && !dnn->rounds)
        return 2.0 / 1024;
    return n[1] == BACKWARD_WEIGHT ? places[dnn->rounds] : places[STORED_FLOAT32];
}

static void compare_shape(struct side *plain, struct side *dnn, enum direction direction, int64_t shape)
{
    for (int64_t flags = 0; flags < 4; flags++) {
        const int64_t sizes[] = {shape, (int64_t)direction, flags & 1, flags >> 1};
        char text[64];
        snprintf(text, sizeof text, "%s by cuDNN", directions[direction]);
        if ((sizes[2] && dnn->rounds) || (sizes[3] && direction != BACKWARD_WEIGHT))
            continue;
        compare_sides(plain, dnn, text, convolve, sizes, allowed(dnn, sizes));
    }
}

/* Returns whether every cuDNN has kernels for the shape. It may refuse other numbers of channels. */
static bool is_ordinary(const struct conv2d_shape *shape)
{
    return shape->c % 8 == 0 && shape->o % 8 == 0;
}

/* cuDNN must be asked for every shape, every time. */
static void check_direction(struct side *plain, struct side *dnn, enum direction direction)
{
    int64_t ordinary = 0, refused = 0, others_refused = 0;
    unsigned not_asked = 0;
    for (int64_t shape = 0; shape < (int64_t)SHAPES; shape++) {
        const struct device_library_work before = device_count_library_work(dnn->device);
        compare_shape(plain, dnn, direction, shape);
        const struct device_library_work after = device_count_library_work(dnn->device);
        const int64_t taken = after.convolutions - before.convolutions;
        const int64_t left = after.refused_convolutions - before.refused_convolutions;
        not_asked += taken + left == 0;
        ordinary += is_ordinary(&shapes[shape]) ? taken : 0;
        *(is_ordinary(&shapes[shape]) ? &refused : &others_refused) += left;
    }
    char text[128];
    const int bytes = (int)stored_bytes(dnn->stored);
    snprintf(text, sizeof text, "cuDNN computes %s, %d bytes a value", directions[direction], bytes);
    verdict(not_asked == 0 && ordinary > 0 && refused == 0, text,
            "%lld with channels by eights were its own, %lld it refused; of %u shapes it was not asked",
            (long long)ordinary, (long long)refused, not_asked);
    if (others_refused > 0)
        printf("%s, %d bytes a value: cuDNN refused %lld with other channels, and they were ours\n",
               directions[direction], bytes, (long long)others_refused);
}

void check_convolutions(struct side *plain, struct side *dnn)
{
    static const enum stored kinds[] = {STORED_FLOAT32, STORED_BFLOAT16, STORED_FLOAT16};
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        plain->rounds = dnn->rounds = plain->stored = dnn->stored = kinds[i];
        for (enum direction direction = FORWARD; direction <= BACKWARD_WEIGHT; direction++)
            check_direction(plain, dnn, direction);
    }
    plain->rounds = dnn->rounds = plain->stored = dnn->stored = STORED_FLOAT32;
    verdict(device_count_library_work(plain->device).convolutions == 0, "and none without COXSWAIN_GPU_DNN=1",
            "some were");
}
