/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/normalisation.h"

int64_t normalisation_width(const struct layer *layer)
{
    return layer->output.dims[layer->output.rank - 1];
}

int64_t normalisation_rows(const struct layer *layer, int64_t n)
{
    return n * layer_shape_elements(&layer->output) / normalisation_width(layer);
}

int normalisation_resolve(struct layer *layer, struct error *error)
{
    if (layer->inputs[0].integral)
        return error_set(error, ERROR_INVALID, "tokens need an embedding layer first");
    layer->output = layer->inputs[0];
    int64_t c = normalisation_width(layer);
    layer->parameters[0] = (struct layer_parameter){"weight", {c}, 1, START_ONE, 0, 0, false, false};
    layer->parameters[1] = (struct layer_parameter){"bias", {c}, 1, START_ZERO, 0, 0, false, false};
    layer->parameter_count = 2;
    return 0;
}
