/* SPDX-License-Identifier: Apache-2.0
 *
 * A kind of layer: what it makes of its inputs' shapes, which parameters it has,
 * and its launches. One table a kind; graph.c knows no layer by name.
 */
#ifndef COXSWAIN_MODEL_LAYER_H
#define COXSWAIN_MODEL_LAYER_H

#include "common/job/job_document.h"
#include "worker/device/device.h"
#include "worker/model/parameter_layout.h"

#define LAYER_NAME_MAX 64
#define LAYER_PARAMETERS_MAX 4

/* Of one example: H W C, or T C, or C. Tokens are T with integral set. */
struct layer_shape {
    int64_t dims[3];
    unsigned rank;
    bool integral;
};
int64_t layer_shape_elements(const struct layer_shape *shape);
/* "28x28x1" */
#define LAYER_SHAPE_TEXT_MAX 80
void layer_shape_print(const struct layer_shape *shape, char text[LAYER_SHAPE_TEXT_MAX]);

struct layer_parameter {
    const char *suffix; /* "weight" */
    int64_t shape[PARAMETER_RANK_MAX];
    unsigned rank;
    enum parameter_start start;
    int64_t fan_in, fan_out; /* of START_NORMAL */
    bool statistic;          /* a running value (parameter_layout.h) */
    bool borrowed;           /* another layer's tensor: `spec.weights_of`'s first */
};

int64_t layer_parameter_elements(const struct layer_parameter *parameter);

/* A layer in its place, after its shape is known. */
struct layer {
    const struct layer_kind *kind;
    struct layer_spec spec; /* its name is not used: see `name` */
    char name[LAYER_NAME_MAX];
    struct layer_shape inputs[LAYER_INPUTS_MAX], output;
    unsigned input_count;
    struct layer_parameter parameters[LAYER_PARAMETERS_MAX];
    unsigned parameter_count;
    bool applies_relu;   /* the rectifier behind it happens in its own launch, */
    bool masks_gradient; /* and on the way back as well: dy is the gradient of what is rectified */
    bool reads_batch;    /* its input is the model's, whose gradient nobody wants */
    bool input_is_relu;  /* dx is to be the gradient of the rectifier's input */
};

struct graph_pass;

/* The pointers of one launch; all device memory. */
struct layer_call {
    const struct layer *layer;
    struct device_stream *stream;
    enum stored stored; /* how x, y, dy, dx and weight lie in memory */
    const struct graph_pass *pass;
    unsigned number; /* of the layer in the model's list */
    bool evaluation; /* a forward pass that nothing learns from */
    int64_t first;   /* forwards: the place in the sequence of the first row that is asked for; attention alone has
                      * those before it too (decoder.h) */
    float share;     /* of this pass in the global batch */
    int64_t n;       /* examples */
    const void *x[LAYER_INPUTS_MAX];
    float *y;
    const float *dy;
    float *dx; /* of the first input, or of `input` */
    unsigned input;
    const float *parameters[LAYER_PARAMETERS_MAX];
    const void *weight, *bias; /* the first and second, as a product reads them */
    float *gelu;               /* the output of the GELU behind it, where its launch makes that too; */
    const float *gelu_input;   /* what the GELU before it is of, where dx is to be the gradient of that; else NULL */
    float *gradients[LAYER_PARAMETERS_MAX];
    float *kept;      /* layer_kind.kept floats, from forward to backward */
    float *workspace; /* layer_kind.workspace floats, for one launch */
    bool accumulate;
    bool tf32;       /* products may be (operations.h) */
    int64_t y_row;   /* of a dense layer's y and dy: how far apart their rows lie; 0: packed */
    bool add_dx;     /* to what dx has */
    bool lent_begun; /* gradients[0] holds what a borrower of the tensor has put there: add to it */
    const float
        *relu_output; /* of a batch norm that goes back through the rectifier of the sum behind it: what that gives, */
    const float *others; /* what is to be added to dy before, or NULL, */
    float *masked;       /* and where what comes of dy goes */
};

/* From the element on; `values` are a call's x, y, dy or dx. */
static inline void *layer_values(const struct layer_call *call, const void *values, int64_t element)
{
    return (char *)values + element * stored_bytes(call->stored);
}

#define LAYER_INPUTS_ANY 0
struct layer_kind {
    enum layer_type type;
    unsigned input_count; /* LAYER_INPUTS_ANY: two or more */
    bool can_apply_relu, can_mask_input;
    bool can_mask_gradient; /* goes back through the rectifier that it applies */
    bool can_fuse_gelu;     /* with one behind it, and with one before it on the way back */
    bool gradient_passes;   /* the gradient of every input is that of the output (flatten, add) */
    bool gradients_differ;  /* backward_input is called for each input (concat) */
    bool adds_gradient;     /* can add its input's to what others have made of it (add_dx) */
    bool forgets_output;    /* the way back does not read the output (unless a rectifier was applied to it) */
    bool forgets_input;     /* nor the inputs */
    bool repeats; /* forward is so cheap that it may run again for the way back, in place of keeping the output */
    /* Fills output and parameters; errors say what to change, without the layer's name. */
    int (*resolve)(struct layer *layer, struct error *error);
    /* Once it is resolved: ERROR_UNSUPPORTED where the device cannot do it. NULL: each can. */
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

/* A layer norm; with `sum`, the sum of two that it is of, which is made by the same launch. */
void layer_norm_run(const struct layer_call *call, const struct layer_call *sum);

/* A batch norm; with `sum`, the sum of two that it goes into, which is made by the same launch: what is normalised is stored
 * nowhere, and NULL among the inputs of the sum. */
void batch_norm_run(const struct layer_call *call, const struct layer_call *sum);

extern const struct layer_kind layer_dense, layer_conv2d, layer_max_pool, layer_average_pool, layer_relu, layer_gelu,
    layer_tanh, layer_flatten, layer_layer_norm, layer_embedding, layer_attention, layer_add, layer_batch_norm,
    layer_shortcut, layer_global_average_pool, layer_dropout, layer_concat;

#endif
