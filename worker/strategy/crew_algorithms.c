/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/crew_algorithms.h"

#include <stdio.h>

#include "common/memory.h"
#include "common/scope.h"
#include "worker/device/device.h"
#include "worker/strategy/crew_group.h"
#include "worker/strategy/strategy_table.h"

int crew_algorithms_take(const struct strategy_device *devices, unsigned count, const struct algorithm_record *record,
                         struct error *error)
{
    for (unsigned i = 0; i < count; i++)
        if (device_take_algorithms(devices[i].device, record, error) < 0)
            return -1;
    return 0;
}

static int take(const struct strategy_options *options, const struct algorithm_record *record, struct error *error)
{
    const struct strategy_device only = {options->device, options->graph};
    return options->devices != NULL ? crew_algorithms_take(options->devices, options->device_count, record, error)
                                    : crew_algorithms_take(&only, 1, record, error);
}

static int take_text(const struct strategy_options *options, const char *text, size_t length, struct error *error)
{
    struct json *root;
    struct algorithm_record record;
    if (json_parse(text, length, ALGORITHM_RECORD_BYTES_MAX, &root, error) < 0)
        return -1;
    SCOPED_JSON *document = root;
    if (algorithm_record_from_json(document, &record, error) < 0)
        return -1;
    int result = take(options, &record, error);
    algorithm_record_release(&record);
    return result;
}

static int print(const struct algorithm_record *record, char **ret_text, uint64_t *ret_length, struct error *error)
{
    SCOPED_JSON *document = algorithm_record_to_json(record);
    SCOPED_BUFFER text;
    buffer_init(&text, ALGORITHM_RECORD_BYTES_MAX);
    if (json_print(document, &text, error) < 0)
        return -1;
    *ret_length = text.length;
    *ret_text = buffer_take(&text);
    return 0;
}

/* From `root` to all; no bytes where it has no record. The caller frees. */
static int tell(const struct strategy *base, struct collective *group, unsigned root, char **ret_text,
                uint64_t *ret_length, struct error *error)
{
    const struct algorithm_record *own = device_algorithms(base->options.device);
    bool tells = base->world.rank == root;
    if (tells && own != NULL && own->count > 0 && print(own, ret_text, ret_length, error) < 0)
        return -1;
    if (crew_group_tell(group, root, ret_length, sizeof *ret_length, error) < 0)
        return -1;
    if (*ret_length > ALGORITHM_RECORD_BYTES_MAX)
        return error_set(error, ERROR_CORRUPT, "rank %u has a record of algorithms of %llu bytes, more than %zu", root,
                         (unsigned long long)*ret_length, ALGORITHM_RECORD_BYTES_MAX);
    if (*ret_length == 0)
        return 0;
    if (!tells)
        *ret_text = memory_allocate(*ret_length, 1);
    return crew_group_tell(group, root, *ret_text, *ret_length, error);
}

static void tell_refusal(const struct strategy *base, double refusing, const struct error *cause)
{
    char text[512];
    const struct strategy_options *options = &base->options;
    const char *then = base->holds_state ? ", and the bits may differ from here on" : "";
    if (options->on_warning == NULL)
        return;
    if (cause->kind != ERROR_NONE)
        snprintf(text, sizeof text,
                 "this worker cannot compute by the algorithms that the crew has measured (%.300s): all workers go by "
                 "what the libraries take first%s",
                 cause->message, then);
    else
        snprintf(text, sizeof text,
                 "%.0f of the crew's workers cannot compute by the algorithms that it has measured, and say why: all "
                 "go by what the libraries take first%s",
                 refusing, then);
    options->on_warning(options->context, text);
}

/* One for all, or none. */
static int settle(struct strategy *base, const char *text, size_t length, struct error *error)
{
    const struct strategy_options *options = &base->options;
    struct error cause = ERROR_INIT;
    if (length == 0) /* as all know */
        return take(options, NULL, error);
    double refusing = take_text(options, text, length, &cause) < 0;
    if (strategy_sum(base, &refusing, 1, error) < 0)
        return -1;
    if (refusing == 0)
        return 0;
    tell_refusal(base, refusing, &cause);
    return take(options, NULL, error);
}

int crew_algorithms_agree(struct strategy *base, struct collective *group, struct error *error)
{
    const struct world *world = &base->world;
    if (!base->options.shares_algorithms)
        return 0;
    unsigned root = world->source == WORLD_SOURCE_PEER ? world->source_rank : 0;
    SCOPED_FREE char *text = NULL;
    uint64_t length = 0;
    collective_set_label(group, "the algorithms of libraries");
    return tell(base, group, root, &text, &length, error) < 0 ? -1 : settle(base, text, length, error);
}
