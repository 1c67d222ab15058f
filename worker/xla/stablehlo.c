/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/xla/stablehlo.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 4096
#define TYPE_MAX_BYTES 160
#define LIST_MAX_BYTES 160

static const char *const type_names[] = {
    [HLO_FLOAT32] = "f32", [HLO_INT32] = "i32", [HLO_UINT32] = "ui32", [HLO_UINT64] = "ui64", [HLO_BOOL] = "i1",
};

/* ---------------------------------------------------------------- text */

void hlo_init(struct hlo *hlo, size_t ceiling)
{
    *hlo = (struct hlo){0};
    buffer_init(&hlo->arguments, ceiling);
    buffer_init(&hlo->body, ceiling);
}

void hlo_release(struct hlo *hlo)
{
    buffer_release(&hlo->arguments);
    buffer_release(&hlo->body);
}

__attribute__((format(printf, 2, 3))) static void emit(struct hlo *hlo, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    if (length < 0 || length >= (int)sizeof line || buffer_append(&hlo->body, line, (size_t)length, NULL) < 0)
        hlo->is_too_long = true;
}

struct type_text {
    char text[TYPE_MAX_BYTES];
};

/* "tensor<2x3xf32>" */
static struct type_text type_of(struct hlo_value value)
{
    struct type_text type;
    int length = snprintf(type.text, sizeof type.text, "tensor<");
    for (unsigned i = 0; i < value.shape.rank; i++)
        length +=
            snprintf(type.text + length, sizeof type.text - (size_t)length, "%lldx", (long long)value.shape.dims[i]);
    snprintf(type.text + length, sizeof type.text - (size_t)length, "%s>", type_names[value.type]);
    return type;
}

struct list_text {
    char text[LIST_MAX_BYTES];
};

/* "1, 2, 3" */
static struct list_text list_of(const int64_t *numbers, unsigned count)
{
    struct list_text list = {""};
    int length = 0;
    for (unsigned i = 0; i < count; i++)
        length += snprintf(list.text + length, sizeof list.text - (size_t)length, "%s%lld", i > 0 ? ", " : "",
                           (long long)numbers[i]);
    return list;
}

static struct list_text list_of_dims(struct hlo_dims dims)
{
    int64_t numbers[HLO_RANK_MAX];
    for (unsigned i = 0; i < dims.count; i++)
        numbers[i] = dims.at[i];
    return list_of(numbers, dims.count);
}

static struct hlo_value new_value(struct hlo *hlo, enum hlo_type type, struct hlo_shape shape)
{
    return (struct hlo_value){++hlo->last, type, shape};
}

struct hlo_value hlo_argument(struct hlo *hlo, enum hlo_type type, struct hlo_shape shape)
{
    struct hlo_value value = new_value(hlo, type, shape);
    if (buffer_format(&hlo->arguments, "%s%%v%u: %s", hlo->arguments.length > 0 ? ", " : "", value.id,
                      type_of(value).text) < 0)
        hlo->is_too_long = true;
    return value;
}

static int append_results(const struct hlo_value *results, unsigned count, bool names, struct buffer *text)
{
    int result = 0;
    for (unsigned i = 0; i < count; i++) {
        const char *comma = i > 0 ? ", " : "";
        result |= names ? buffer_format(text, "%s%%v%u", comma, results[i].id)
                        : buffer_format(text, "%s%s", comma, type_of(results[i]).text);
    }
    return result;
}

int hlo_finish(struct hlo *hlo, const struct hlo_value *results, unsigned count, struct buffer *text,
               struct error *error)
{
    bool failed = hlo->is_too_long;
    failed |=
        buffer_format(text, "module @coxswain {\nfunc.func public @main(%s) -> (", buffer_text(&hlo->arguments)) < 0;
    failed |= append_results(results, count, false, text) < 0 || buffer_append_string(text, ") {\n", NULL) < 0 ||
              buffer_append(text, hlo->body.data, hlo->body.length, NULL) < 0 ||
              buffer_append_string(text, "return ", NULL) < 0 || append_results(results, count, true, text) < 0 ||
              buffer_append_string(text, " : ", NULL) < 0 || append_results(results, count, false, text) < 0 ||
              buffer_append_string(text, "\n}\n}\n", NULL) < 0;
    return failed ? error_set(error, ERROR_TOO_LARGE, "the model is too large to be written as StableHLO") : 0;
}

/* ---------------------------------------------------------------- elements */

/* A number as MLIR reads it; floats have all their digits, and infinities are written in hexadecimal. */
static void print_number(enum hlo_type type, double value, char text[32])
{
    if (type != HLO_FLOAT32)
        snprintf(text, 32, "%.0f", value);
    else if (isinf(value))
        snprintf(text, 32, "%s", value < 0 ? "0xFF800000" : "0x7F800000");
    else
        snprintf(text, 32, "%.9e", value);
}

struct hlo_value hlo_constant(struct hlo *hlo, enum hlo_type type, struct hlo_shape shape, double value)
{
    struct hlo_value y = new_value(hlo, type, shape);
    char number[32];
    print_number(type, value, number);
    emit(hlo, "%%v%u = stablehlo.constant dense<%s> : %s\n", y.id, number, type_of(y).text);
    return y;
}

struct hlo_value hlo_iota(struct hlo *hlo, enum hlo_type type, struct hlo_shape shape, unsigned dimension)
{
    struct hlo_value y = new_value(hlo, type, shape);
    emit(hlo, "%%v%u = stablehlo.iota dim = %u : %s\n", y.id, dimension, type_of(y).text);
    return y;
}

struct hlo_value hlo_unary(struct hlo *hlo, const char *operation, struct hlo_value x)
{
    struct hlo_value y = new_value(hlo, x.type, x.shape);
    emit(hlo, "%%v%u = stablehlo.%s %%v%u : %s\n", y.id, operation, x.id, type_of(y).text);
    return y;
}

struct hlo_value hlo_binary(struct hlo *hlo, const char *operation, struct hlo_value a, struct hlo_value b)
{
    struct hlo_value y = new_value(hlo, a.type, a.shape);
    emit(hlo, "%%v%u = stablehlo.%s %%v%u, %%v%u : %s\n", y.id, operation, a.id, b.id, type_of(y).text);
    return y;
}

struct hlo_value hlo_binary_constant(struct hlo *hlo, const char *operation, struct hlo_value a, double b)
{
    return hlo_binary(hlo, operation, a, hlo_constant(hlo, a.type, a.shape, b));
}

struct hlo_value hlo_compare(struct hlo *hlo, const char *direction, struct hlo_value a, struct hlo_value b)
{
    struct hlo_value y = new_value(hlo, HLO_BOOL, a.shape);
    const char *kind = a.type == HLO_FLOAT32 ? "FLOAT" : a.type == HLO_INT32 ? "SIGNED" : "UNSIGNED";
    emit(hlo, "%%v%u = stablehlo.compare %s, %%v%u, %%v%u, %s : (%s, %s) -> %s\n", y.id, direction, a.id, b.id, kind,
         type_of(a).text, type_of(b).text, type_of(y).text);
    return y;
}

struct hlo_value hlo_select(struct hlo *hlo, struct hlo_value condition, struct hlo_value yes, struct hlo_value no)
{
    struct hlo_value y = new_value(hlo, yes.type, yes.shape);
    emit(hlo, "%%v%u = stablehlo.select %%v%u, %%v%u, %%v%u : %s, %s\n", y.id, condition.id, yes.id, no.id,
         type_of(condition).text, type_of(y).text);
    return y;
}

/* An operation with one operand and a result of another type. */
static void emit_change(struct hlo *hlo, struct hlo_value y, const char *operation, struct hlo_value x,
                        const char *attributes)
{
    emit(hlo, "%%v%u = stablehlo.%s %%v%u%s : (%s) -> %s\n", y.id, operation, x.id, attributes, type_of(x).text,
         type_of(y).text);
}

struct hlo_value hlo_convert(struct hlo *hlo, struct hlo_value x, enum hlo_type type)
{
    struct hlo_value y = new_value(hlo, type, x.shape);
    emit_change(hlo, y, "convert", x, "");
    return y;
}

struct hlo_value hlo_round_to_bfloat16(struct hlo *hlo, struct hlo_value x)
{
    struct hlo_value y = new_value(hlo, x.type, x.shape);
    emit(hlo, "%%v%u = stablehlo.reduce_precision %%v%u, format = e8m7 : %s\n", y.id, x.id, type_of(y).text);
    return y;
}

/* ---------------------------------------------------------------- shapes */

struct hlo_value hlo_reshape(struct hlo *hlo, struct hlo_value x, struct hlo_shape shape)
{
    struct hlo_value y = new_value(hlo, x.type, shape);
    emit_change(hlo, y, "reshape", x, "");
    return y;
}

struct hlo_value hlo_transpose(struct hlo *hlo, struct hlo_value x, struct hlo_dims order)
{
    char attributes[LIST_MAX_BYTES + 16];
    struct hlo_value y = new_value(hlo, x.type, x.shape);
    for (unsigned i = 0; i < order.count; i++)
        y.shape.dims[i] = x.shape.dims[order.at[i]];
    snprintf(attributes, sizeof attributes, ", dims = [%s]", list_of_dims(order).text);
    emit_change(hlo, y, "transpose", x, attributes);
    return y;
}

struct hlo_value hlo_broadcast(struct hlo *hlo, struct hlo_value x, struct hlo_shape shape, struct hlo_dims places)
{
    char attributes[LIST_MAX_BYTES + 16];
    struct hlo_value y = new_value(hlo, x.type, shape);
    snprintf(attributes, sizeof attributes, ", dims = [%s]", list_of_dims(places).text);
    emit_change(hlo, y, "broadcast_in_dim", x, attributes);
    return y;
}

struct hlo_value hlo_reverse(struct hlo *hlo, struct hlo_value x, struct hlo_dims dims)
{
    struct hlo_value y = new_value(hlo, x.type, x.shape);
    emit(hlo, "%%v%u = stablehlo.reverse %%v%u, dims = [%s] : %s\n", y.id, x.id, list_of_dims(dims).text,
         type_of(y).text);
    return y;
}

struct hlo_value hlo_concatenate(struct hlo *hlo, const struct hlo_value *values, unsigned count, unsigned dimension)
{
    struct hlo_value y = new_value(hlo, values[0].type, values[0].shape);
    emit(hlo, "%%v%u = stablehlo.concatenate ", y.id);
    for (unsigned i = 0; i < count; i++) {
        y.shape.dims[dimension] += i > 0 ? values[i].shape.dims[dimension] : 0;
        emit(hlo, "%%v%u, ", values[i].id);
    }
    emit(hlo, "dim = %u : (", dimension);
    for (unsigned i = 0; i < count; i++)
        emit(hlo, "%s%s", i > 0 ? ", " : "", type_of(values[i]).text);
    emit(hlo, ") -> %s\n", type_of(y).text);
    return y;
}

struct hlo_value hlo_slice(struct hlo *hlo, struct hlo_value x, unsigned dimension, int64_t first, int64_t end,
                           int64_t step)
{
    struct hlo_value y = new_value(hlo, x.type, x.shape);
    y.shape.dims[dimension] = (end - first + step - 1) / step;
    emit(hlo, "%%v%u = stablehlo.slice %%v%u [", y.id, x.id);
    for (unsigned i = 0; i < x.shape.rank; i++)
        if (i == dimension)
            emit(hlo, "%s%lld:%lld:%lld", i > 0 ? ", " : "", (long long)first, (long long)end, (long long)step);
        else
            emit(hlo, "%s0:%lld", i > 0 ? ", " : "", (long long)x.shape.dims[i]);
    emit(hlo, "] : (%s) -> %s\n", type_of(x).text, type_of(y).text);
    return y;
}

struct hlo_value hlo_pad(struct hlo *hlo, struct hlo_value x, double value, const struct hlo_padding *padding)
{
    struct hlo_value filler = hlo_constant(hlo, x.type, (struct hlo_shape){0}, value);
    struct hlo_value y = new_value(hlo, x.type, x.shape);
    for (unsigned i = 0; i < x.shape.rank; i++)
        y.shape.dims[i] += padding->low[i] + padding->high[i] + padding->between[i] * (x.shape.dims[i] - 1);
    emit(hlo, "%%v%u = stablehlo.pad %%v%u, %%v%u, low = [%s], high = [%s], interior = [%s] : (%s, %s) -> %s\n", y.id,
         x.id, filler.id, list_of(padding->low, x.shape.rank).text, list_of(padding->high, x.shape.rank).text,
         list_of(padding->between, x.shape.rank).text, type_of(x).text, type_of(filler).text, type_of(y).text);
    return y;
}

/* ---------------------------------------------------------------- reductions */

/* What a reduction begins with. */
static struct hlo_value neutral(struct hlo *hlo, const char *operation, enum hlo_type type)
{
    double value = 0;
    if (strcmp(operation, "maximum") == 0)
        value = -INFINITY;
    if (strcmp(operation, "minimum") == 0)
        value = type == HLO_INT32 ? (double)INT32_MAX : (double)INFINITY;
    return hlo_constant(hlo, type, (struct hlo_shape){0}, value);
}

static bool holds(struct hlo_dims dims, unsigned dimension)
{
    bool found = false;
    for (unsigned i = 0; i < dims.count; i++)
        found |= dims.at[i] == dimension;
    return found;
}

struct hlo_value hlo_reduce(struct hlo *hlo, const char *operation, struct hlo_value x, struct hlo_dims dims)
{
    struct hlo_value start = neutral(hlo, operation, x.type), y = new_value(hlo, x.type, (struct hlo_shape){0});
    for (unsigned i = 0; i < x.shape.rank; i++)
        if (!holds(dims, i))
            y.shape.dims[y.shape.rank++] = x.shape.dims[i];
    emit(hlo,
         "%%v%u = stablehlo.reduce(%%v%u init: %%v%u) applies stablehlo.%s across dimensions = [%s] : (%s, %s) -> %s\n",
         y.id, x.id, start.id, operation, list_of_dims(dims).text, type_of(x).text, type_of(start).text,
         type_of(y).text);
    return y;
}

/* The attributes of operations over windows of dimensions 1 and 2. */
static void emit_window(struct hlo *hlo, const struct hlo_window *window)
{
    long long size = window->size, stride = window->stride, padding = window->padding;
    emit(hlo,
         "<{window_dimensions = array<i64: 1, %lld, %lld, 1>, window_strides = array<i64: 1, %lld, %lld, 1>, "
         "padding = dense<[[0, 0], [%lld, %lld], [%lld, %lld], [0, 0]]> : tensor<4x2xi64>}> ",
         size, size, stride, stride, padding, padding, padding, padding);
}

/* A function of two float32 numbers. `result` is its type. */
static void emit_region(struct hlo *hlo, const char *operation, const char *operands_type, const char *result)
{
    emit(hlo, "{\n^bb0(%%p: tensor<f32>, %%q: tensor<f32>):\n%%r = stablehlo.%s : %s\nstablehlo.return %%r : %s\n}",
         operation, operands_type, result);
}

struct hlo_value hlo_reduce_windows(struct hlo *hlo, const char *operation, struct hlo_value x,
                                    const struct hlo_window *window)
{
    char call[32];
    struct hlo_value start = neutral(hlo, operation, x.type), y = new_value(hlo, x.type, x.shape);
    for (unsigned i = 1; i <= 2; i++)
        y.shape.dims[i] = (x.shape.dims[i] + 2 * window->padding - window->size) / window->stride + 1;
    snprintf(call, sizeof call, "%s %%p, %%q", operation);
    emit(hlo, "%%v%u = \"stablehlo.reduce_window\"(%%v%u, %%v%u) ", y.id, x.id, start.id);
    emit_window(hlo, window);
    emit(hlo, "(");
    emit_region(hlo, call, "tensor<f32>", "tensor<f32>");
    emit(hlo, ") : (%s, %s) -> %s\n", type_of(x).text, type_of(start).text, type_of(y).text);
    return y;
}

struct hlo_value hlo_scatter_to_largest(struct hlo *hlo, struct hlo_value x, struct hlo_value values,
                                        const struct hlo_window *window)
{
    struct hlo_value zero = hlo_constant(hlo, x.type, (struct hlo_shape){0}, 0);
    struct hlo_value y = new_value(hlo, x.type, x.shape);
    emit(hlo, "%%v%u = \"stablehlo.select_and_scatter\"(%%v%u, %%v%u, %%v%u) ", y.id, x.id, values.id, zero.id);
    emit_window(hlo, window);
    emit(hlo, "(");
    emit_region(hlo, "compare GE, %p, %q, FLOAT", "(tensor<f32>, tensor<f32>) -> tensor<i1>", "tensor<i1>");
    emit(hlo, ", ");
    emit_region(hlo, "add %p, %q", "tensor<f32>", "tensor<f32>");
    emit(hlo, ") : (%s, %s, %s) -> %s\n", type_of(x).text, type_of(values).text, type_of(zero).text, type_of(y).text);
    return y;
}

/* ---------------------------------------------------------------- products */

static const char *precision_of(const struct hlo *hlo)
{
    return hlo->exact ? "HIGHEST" : "DEFAULT";
}

/* Appends the sizes of x's dimensions that are in neither list. */
static void append_free_dims(struct hlo_shape *shape, struct hlo_value x, struct hlo_dims batch,
                             struct hlo_dims contracted)
{
    for (unsigned i = 0; i < x.shape.rank; i++)
        if (!holds(batch, i) && !holds(contracted, i))
            shape->dims[shape->rank++] = x.shape.dims[i];
}

struct hlo_value hlo_dot(struct hlo *hlo, struct hlo_value a, struct hlo_value b, const struct hlo_product *product)
{
    struct hlo_shape shape = {0};
    char batching[2 * LIST_MAX_BYTES + 32] = "";
    for (unsigned i = 0; i < product->batch_a.count; i++)
        shape.dims[shape.rank++] = a.shape.dims[product->batch_a.at[i]];
    append_free_dims(&shape, a, product->batch_a, product->contracted_a);
    append_free_dims(&shape, b, product->batch_b, product->contracted_b);
    struct hlo_value y = new_value(hlo, HLO_FLOAT32, shape);
    if (product->batch_a.count > 0)
        snprintf(batching, sizeof batching, "batching_dims = [%s] x [%s], ", list_of_dims(product->batch_a).text,
                 list_of_dims(product->batch_b).text);
    emit(hlo,
         "%%v%u = stablehlo.dot_general %%v%u, %%v%u, %scontracting_dims = [%s] x [%s], precision = [%s, %s] : "
         "(%s, %s) -> %s\n",
         y.id, a.id, b.id, batching, list_of_dims(product->contracted_a).text, list_of_dims(product->contracted_b).text,
         precision_of(hlo), precision_of(hlo), type_of(a).text, type_of(b).text, type_of(y).text);
    return y;
}

struct hlo_value hlo_convolve(struct hlo *hlo, struct hlo_value x, struct hlo_value kernel,
                              const struct hlo_convolution *convolution)
{
    const struct hlo_convolution *c = convolution;
    struct hlo_value y = new_value(hlo, HLO_FLOAT32, c->shape);
    emit(hlo, "%%v%u = stablehlo.convolution(%%v%u, %%v%u) dim_numbers = %s, ", y.id, x.id, kernel.id, c->layout);
    emit(hlo,
         "window = {stride = [%lld, %lld], pad = [[%lld, %lld], [%lld, %lld]], lhs_dilate = [%lld, %lld], "
         "rhs_dilate = [%lld, %lld]} ",
         (long long)c->stride, (long long)c->stride, (long long)c->low[0], (long long)c->high[0], (long long)c->low[1],
         (long long)c->high[1], (long long)c->input_dilation, (long long)c->input_dilation,
         (long long)c->kernel_dilation, (long long)c->kernel_dilation);
    emit(hlo,
         "{batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = "
         "[#stablehlo<precision %s>, #stablehlo<precision %s>]} : (%s, %s) -> %s\n",
         precision_of(hlo), precision_of(hlo), type_of(x).text, type_of(kernel).text, type_of(y).text);
    return y;
}

/* ---------------------------------------------------------------- rows of a table */

struct hlo_value hlo_gather_rows(struct hlo *hlo, struct hlo_value table, struct hlo_value indices)
{
    unsigned rank = indices.shape.rank;
    struct hlo_value y = new_value(hlo, table.type, indices.shape);
    y.shape.dims[y.shape.rank++] = table.shape.dims[1];
    emit(hlo,
         "%%v%u = \"stablehlo.gather\"(%%v%u, %%v%u) <{dimension_numbers = #stablehlo.gather<offset_dims = [%u], "
         "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = %u>, slice_sizes = array<i64: 1, "
         "%lld>, indices_are_sorted = false}> : (%s, %s) -> %s\n",
         y.id, table.id, indices.id, rank, rank, (long long)table.shape.dims[1], type_of(table).text,
         type_of(indices).text, type_of(y).text);
    return y;
}

struct hlo_value hlo_add_to_rows(struct hlo *hlo, struct hlo_value table, struct hlo_value indices,
                                 struct hlo_value rows)
{
    unsigned rank = indices.shape.rank;
    struct hlo_value y = new_value(hlo, table.type, table.shape);
    emit(hlo,
         "%%v%u = \"stablehlo.scatter\"(%%v%u, %%v%u, %%v%u) <{scatter_dimension_numbers = "
         "#stablehlo.scatter<update_window_dims = [%u], inserted_window_dims = [0], scatter_dims_to_operand_dims = "
         "[0], index_vector_dim = %u>, indices_are_sorted = false, unique_indices = false}> (",
         y.id, table.id, indices.id, rows.id, rank, rank);
    emit_region(hlo, "add %p, %q", "tensor<f32>", "tensor<f32>");
    emit(hlo, ") : (%s, %s, %s) -> %s\n", type_of(table).text, type_of(indices).text, type_of(rows).text,
         type_of(y).text);
    return y;
}
