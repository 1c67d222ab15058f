/* SPDX-License-Identifier: Apache-2.0
 *
 * A device's record of algorithms, products' and convolutions' together: how it is
 * found and how it is taken.
 */
#include <stdio.h>
#include <string.h>

#include "worker/device/cuda/convolution_plan.h"
#include "worker/device/cuda/cuda_device.h"
#include "worker/device/cuda/fused_plan.h"

static void name_library(const struct cuda_device *device, enum algorithm_kind kind, char name[ALGORITHM_NAME_MAX])
{
    name[0] = '\0';
    if (kind == ALGORITHM_PRODUCT && device->measures_products)
        snprintf(name, ALGORITHM_NAME_MAX, "cuBLASLt %zu", device->cublas.cublasLtGetVersion());
    else if (kind == ALGORITHM_CONVOLUTION && device->measures_convolutions)
        snprintf(name, ALGORITHM_NAME_MAX, "cuDNN %d", device->cudnn.version);
}

/* "cuBLASLt 130100 and cuDNN 92801", as records name them. */
static void name_libraries(const struct cuda_device *device, char name[ALGORITHM_NAME_MAX])
{
    char products[ALGORITHM_NAME_MAX], convolutions[ALGORITHM_NAME_MAX];
    name_library(device, ALGORITHM_PRODUCT, products);
    name_library(device, ALGORITHM_CONVOLUTION, convolutions);
    snprintf(name, ALGORITHM_NAME_MAX, "%.48s%s%.48s", products, products[0] && convolutions[0] ? " and " : "",
             convolutions);
}

static bool measures(const struct cuda_device *device)
{
    return device->measures_products || device->measures_convolutions;
}

static void name_record(const struct cuda_device *device, struct algorithm_record *record)
{
    memcpy(record->device, device->name, sizeof device->name);
    name_libraries(device, record->library);
}

/* ---------------------------------------------------------------- finding them */

void cuda_search_begin(struct device_stream *base, struct algorithm_search *search)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    name_record(stream->device, &search->record);
    for (int kind = 0; kind < ALGORITHM_KINDS; kind++)
        name_library(stream->device, (enum algorithm_kind)kind, search->tallies[kind].library);
    for (struct fused_plan *plan = stream->plans; plan; plan = plan->next)
        plan->searched = false;
    for (struct convolution_plan *plan = stream->convolution_plans; plan; plan = plan->next)
        plan->searched = false;
    stream->search = search;
}

void cuda_search_end(struct device_stream *base)
{
    ((struct cuda_stream *)base)->search = NULL;
}

/* What a library makes in several ways; all else is not launched meanwhile. */
void cuda_search(const struct cuda_call *call, enum device_operation operation, const void *arguments)
{
    const struct cuda_device *device = call->owner->device;
    if (device->measures_products && operation == OPERATION_dense_forward)
        cuda_dense_forward(call, arguments);
    else if (device->measures_products && operation == OPERATION_dense_backward_data)
        cuda_dense_backward_data(call, arguments);
    else if (device->measures_convolutions)
        cuda_convolution_measure(call, operation, arguments);
}

/* ---------------------------------------------------------------- taking them */

static bool check_choice(const struct cuda_call *call, const struct algorithm_choice *choice)
{
    const struct cuda_device *device = call->owner->device;
    return choice->kind == ALGORITHM_PRODUCT ? device->measures_products && fused_choice_check(call, choice)
                                             : device->measures_convolutions && convolution_choice_check(call, choice);
}

static unsigned check_choices(const struct cuda_call *call, const struct algorithm_record *record)
{
    unsigned possible = 0;
    while (possible < record->count && check_choice(call, &record->choices[possible]))
        possible++;
    return possible;
}

static int tell_refusal(const struct algorithm_choice *choice, const char *libraries, struct error *error)
{
    const int64_t *shape = choice->shape;
    return error_set(error, ERROR_UNSUPPORTED, "%s here refuses that of the %s of %lld x %lld x %lld", libraries,
                     algorithm_kind_name((enum algorithm_kind)choice->kind), (long long)shape[0], (long long)shape[1],
                     (long long)shape[2]);
}

/* No stream is needed to ask, and none fails for it. */
static int check_record(struct cuda_device *device, const struct algorithm_record *record, struct error *error)
{
    struct cuda_stream nobody = {.device = device, .records = true};
    const struct cuda_call call = {.owner = &nobody};
    char libraries[ALGORITHM_NAME_MAX];
    name_libraries(device, libraries);
    if (strcmp(record->device, device->name) != 0 || strcmp(record->library, libraries) != 0)
        return error_set(error, ERROR_UNSUPPORTED, "they are for %s on %s, and here is %s on %s", record->library,
                         record->device, libraries, device->name);
    cuda_device_enter(device);
    const unsigned possible = check_choices(&call, record);
    fused_plans_free(&nobody);
    convolution_plans_free(&nobody);
    if (nobody.record_error.kind != ERROR_NONE)
        return error_set(error, nobody.record_error.kind, "%s", nobody.record_error.message);
    return possible == record->count ? 0 : tell_refusal(&record->choices[possible], libraries, error);
}

int cuda_take_algorithms(struct device *base, const struct algorithm_record *record, struct error *error)
{
    struct cuda_device *device = (struct cuda_device *)base;
    struct algorithm_record none = {0};
    if (!measures(device))
        return 0;
    name_record(device, &none); /* none is what has been measured, too */
    const struct algorithm_record *taken = record ? record : &none;
    if (algorithm_record_equal(taken, &device->algorithms))
        return 0;
    if (record && check_record(device, record, error) < 0)
        return -1;
    algorithm_record_release(&device->algorithms);
    algorithm_record_copy(taken, &device->algorithms);
    device->algorithms_turn++;
    return 0;
}
