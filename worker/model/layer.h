/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines a kind of layer, such as dense or conv2d, by a table of functions (struct layer_kind): they compute
 * the output shape from the inputs' shapes, list the parameters, and launch the layer's computations on the
 * device. Each kind has one table, in layer_*.c; graph.c and graph_pass.c run layers through the tables and
 * do not depend on particular kinds. A launch is enqueued on the call's stream.
 */
#ifndef COXSWAIN_MODEL_LAYER_H
#define COXSWAIN_MODEL_LAYER_H

#include "common/job/job_document.h"
#include "worker/device/device.h"
#include "worker/model/parameter_layout.h"

#define LAYER_NAME_MAX 64
#define LAYER_PARAMETERS_MAX 4

/* The shape of one example: H W C, T C, or C. Tokens have shape T and `integral` set. */
struct layer_shape {
    int64_t dims[3];
    unsigned rank;
    bool integral;
};
int64_t layer_shape_elements(const struct layer_shape *shape);
/* Prints a shape as "28x28x1". */
#define LAYER_SHAPE_TEXT_MAX 80
void layer_shape_print(const struct layer_shape *shape, char text[LAYER_SHAPE_TEXT_MAX]);
/* Sets the error of a layer that takes images, for an input of another shape; returns -1. */
int layer_refuse_input(const struct layer_shape *input, struct error *error);

struct layer_parameter {
    const char *suffix; /* "weight" */
    int64_t shape[PARAMETER_RANK_MAX];
    unsigned rank;
    enum parameter_start start;
    int64_t fan_in, fan_out; /* for START_NORMAL */
    bool statistic;          /* a running value (parameter_layout.h) */
    bool borrowed;           /* it is the first tensor of the layer `spec.weights_of` */
};

int64_t layer_parameter_elements(const struct layer_parameter *parameter);

/* A layer of a model whose shapes are known. */
struct layer {
    const struct layer_kind *kind;
    struct layer_spec spec; /* use `name` instead of its name */
    char name[LAYER_NAME_MAX];
    struct layer_shape inputs[LAYER_INPUTS_MAX], output;
    unsigned input_count;
    struct layer_parameter parameters[LAYER_PARAMETERS_MAX];
    unsigned parameter_count;
    bool applies_relu;   /* this layer's launch computes the rectifier after it */
    bool masks_gradient; /* the same in the backward pass: dy is the gradient of the rectifier's output */
    bool reads_batch;    /* its input is the model's input, which needs no gradient */
    bool input_is_relu;  /* dx must be the gradient of the input of the rectifier before it */
};

struct graph_pass;

/* The arguments of one launch. All arrays of values (x, y, parameters and so on) are in device memory. */
struct layer_call {
    const struct layer *layer;
    struct device_stream *stream;
    enum stored stored; /* how x, y, dy, dx, weight and bias are stored */
    const struct graph_pass *pass;
    unsigned number; /* of the layer in the model's list */
    bool evaluation; /* a forward pass without a backward pass */
    /* Forward: the position in the sequence of the first row to compute. Only attention also has
     * the rows before it (decoder.h). */
    int64_t first;
    float share; /* this pass's share of the global batch */
    int64_t n;   /* examples */
    const void *x[LAYER_INPUTS_MAX];
    float *y;
    const float *dy;
    float *dx; /* gradient of the first input, or of input number `input` */
    unsigned input;
    const float *parameters[LAYER_PARAMETERS_MAX];
    const void *weight, *bias; /* the first and second parameter, rounded for products */
    float *gelu;               /* the output of the GELU after it, if this launch computes it; else NULL */
    /* The input of the GELU before it, if dx must be that input's gradient; else NULL. */
    const float *gelu_input;
    float *gradients[LAYER_PARAMETERS_MAX];
    float *kept;      /* layer_kind.kept floats, from forward to backward */
    float *workspace; /* layer_kind.workspace floats, for one launch */
    bool accumulate;  /* add to the values in `gradients` */
    bool tf32;        /* products may use TensorFloat-32 (operations.h) */
    int64_t y_row;    /* dense layers: distance between rows of y and dy; 0: packed */
    bool add_dx;      /* add to the values in dx */
    bool lent_begun;  /* gradients[0] holds the gradient from a layer that borrows the tensor: add to it */
    /* For a batch norm that also goes backward through the rectifier of the sum after it: */
    const float *relu_output; /* the rectifier's output, */
    const float *others;      /* what to add to dy first, or NULL, */
    float *masked;            /* and where to write the gradient of the sum */
};

/* Returns the address of an element; `values` is a call's x, y, dy or dx. */
static inline void *layer_values(const struct layer_call *call, const void *values, int64_t element)
{
    return (char *)values + element * stored_bytes(call->stored);
}

#define LAYER_INPUTS_ANY 0
struct layer_kind {
    enum layer_type type;
    unsigned input_count; /* LAYER_INPUTS_ANY: two or more */
    bool can_apply_relu, can_mask_input;
    bool can_mask_gradient; /* its backward launches can mask by the rectifier that it applies */
    bool can_fuse_gelu;     /* with a GELU after it, and with the gradient of a GELU before it */
    bool gradient_passes;   /* each input's gradient equals the output's (flatten, add) */
    bool gradients_differ;  /* backward_input is called for each input (concat) */
    bool adds_gradient;     /* can add its input's gradient to the values in dx (add_dx) */
    bool forgets_output;    /* backward does not read the output (unless a rectifier was applied to it) */
    bool forgets_input;     /* backward does not read the inputs */
    /* Forward is so cheap that the backward pass may run it again instead of keeping the output. */
    bool repeats;
    /* Fills output and parameters. The error says what to change, without the layer's name. */
    int (*resolve)(struct layer *layer, struct error *error);
    /* Checks a resolved layer: ERROR_UNSUPPORTED if the device cannot compute it. NULL: every
     * device can. */
    int (*check_device)(const struct layer *layer, const struct device *device, enum stored stored,
                        struct error *error);
    void (*forward)(const struct layer_call *call);
    void (*backward_parameters)(const struct layer_call *call); /* NULL: none */
    void (*backward_input)(const struct layer_call *call);      /* NULL when gradient_passes or no gradient exists */
    int64_t (*kept)(const struct layer *layer, int64_t n);      /* NULL: none */
    int64_t (*workspace)(const struct layer *layer, int64_t n); /* NULL: none */
    double (*multiply_adds)(const struct layer *layer);         /* forward, one example; NULL: not counted */
};

const struct layer_kind *layer_kind_of(enum layer_type type);

/* Launches a layer norm. With `sum`, the same launch also computes the sum of two that it reads. */
void layer_norm_run(const struct layer_call *call, const struct layer_call *sum);

/* Launches a batch norm. With `sum`, the same launch also computes the sum of two that reads it;
 * the normalised values are not stored, and are NULL among the sum's inputs. */
void batch_norm_run(const struct layer_call *call, const struct layer_call *sum);

extern const struct layer_kind layer_dense, layer_conv2d, layer_max_pool, layer_average_pool, layer_relu, layer_gelu,
    layer_tanh, layer_flatten, layer_layer_norm, layer_embedding, layer_attention, layer_add, layer_batch_norm,
    layer_shortcut, layer_global_average_pool, layer_dropout, layer_concat;

#endif
