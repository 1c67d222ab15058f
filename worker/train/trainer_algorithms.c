/* SPDX-License-Identifier: Apache-2.0
 *
 * By which algorithms libraries compute products and convolutions: the chief takes
 * what the checkpoint to go on from says, or tries them, before anything large is
 * allocated: so does one that comes in another's place, which cannot know yet
 * whether its crew has some. Its crew hears of it when it forms
 * (strategy/crew_algorithms.h).
 */
#include "worker/train/trainer_stages.h"

#include "worker/device/algorithm_record.h"
#include "worker/strategy/crew_algorithms.h"

/* Those whose replicas are equal. A lone worker is a chief. */
static bool is_asked(const struct trainer *trainer)
{
    enum strategy_type type = trainer->job->strategy.type;
    return trainer_is_chief(trainer) && type != STRATEGY_PARAMETER_SERVER && type != STRATEGY_PEER_TO_PEER &&
           device_measures_algorithms(trainer->device);
}

static int take(struct trainer *trainer, const struct algorithm_record *record, struct error *error)
{
    return crew_algorithms_take(trainer->devices, trainer->device_count, record, error);
}

/* False: there are none, or they are not for this GPU, which is told. */
static bool take_recorded(struct trainer *trainer)
{
    struct algorithm_record record;
    struct error cause = ERROR_INIT;
    if (trainer->recorded_algorithms == NULL && trainer->recorded_shards == 0)
        return false;
    if (trainer->recorded_algorithms == NULL) {
        report_warn(trainer->report, "the checkpoint says of no algorithm by which it was computed: they are "
                                     "measured, and the bits may differ from here on");
        return false;
    }
    if (algorithm_record_from_json(trainer->recorded_algorithms, &record, &cause) == 0) {
        int result = take(trainer, &record, &cause);
        if (result == 0 && record.count > 0)
            report_say(trainer->report, "%u algorithms of %s are the checkpoint's", record.count, record.library);
        else if (result == 0)
            report_say(trainer->report, "all goes by the first algorithms of %s, as the checkpoint's", record.library);
        algorithm_record_release(&record);
        if (result == 0)
            return true;
    }
    report_warn(trainer->report,
                "the algorithms by which the checkpoint was computed cannot be taken (%s): they are "
                "measured anew, and the bits may differ from here on",
                cause.message);
    (void)take(trainer, NULL, NULL);
    return false;
}

/* ---- trying them */

/* Shards differ by one example at most. The larger ones first: what there is memory for with them there is with the others. */
static int launch_passes(const struct trainer *trainer, struct graph *graph, struct device_stream *stream,
                         const float *parameters, struct error *error)
{
    int64_t smallest = trainer->plan.global_batch / trainer->plan.logical_shards;
    int64_t largest = (trainer->plan.global_batch + trainer->plan.logical_shards - 1) / trainer->plan.logical_shards;
    for (int64_t examples = largest; examples >= smallest && examples > 0; examples--) {
        const struct graph_pass pass = {
            .parameters = parameters, .examples = examples, .scale = 1, .is_whole_step = true};
        if (graph_forward_backward(graph, stream, &pass, error) < 0)
            return -1;
    }
    return 0;
}

static int search_on(const struct trainer *trainer, struct graph *graph, struct device_stream *stream,
                     struct algorithm_search *search, struct error *error)
{
    void *parameters;
    size_t bytes = (size_t)graph_layout(graph)->elements * sizeof(float);
    if (device_allocate(trainer->device, MEMORY_DEVICE, bytes, &parameters, error) < 0)
        return -1;
    device_search_begin(stream, search);
    int result = launch_passes(trainer, graph, stream, parameters, error);
    device_search_end(stream);
    if (result == 0)
        result = device_stream_synchronise(stream, error);
    device_free(trainer->device, parameters);
    return result;
}

/* On a stream of its own: where memory is short for a library that one has failed, and no other. */
static int search_in(const struct trainer *trainer, struct graph *graph, struct algorithm_search *search,
                     struct error *error)
{
    struct device_stream *stream;
    if (device_stream_new(trainer->device, &stream, error) < 0)
        return -1;
    int result = search_on(trainer, graph, stream, search, error);
    device_stream_free(stream);
    return result;
}

/* In a graph of the whole model, for the time being, also of what will be stages. */
static int search(const struct trainer *trainer, struct algorithm_search *ret_search, struct error *error)
{
    struct graph *graph;
    const struct graph_options options = trainer_graph_options(trainer, trainer->device);
    if (graph_new(&options, &graph, error) < 0)
        return -1;
    int result = search_in(trainer, graph, ret_search, error);
    graph_free(graph);
    return result;
}

static void tell_tally(const struct trainer *trainer, const struct algorithm_tally *tally, const char *kind)
{
    report_say(trainer->report,
               "%u shapes of %ss are measured in %.1f s of the GPU: for %u %s has quicker algorithms than those "
               "that it takes first",
               tally->measured, kind, tally->ms / 1e3, tally->others, tally->library);
    if (tally->left_out > 0)
        report_say(trainer->report, "for %u shapes of %ss no time or room was left: they go by what it takes first",
                   tally->left_out, kind);
}

static void tell_search(const struct trainer *trainer, const struct algorithm_search *search)
{
    for (int kind = 0; kind < ALGORITHM_KINDS; kind++)
        if (search->tallies[kind].library[0] != '\0')
            tell_tally(trainer, &search->tallies[kind], algorithm_kind_name((enum algorithm_kind)kind));
}

/* One record for all of this worker's GPUs, or none. */
static void take_found(struct trainer *trainer, const struct algorithm_search *found)
{
    struct error cause = ERROR_INIT;
    tell_search(trainer, found);
    if (take(trainer, &found->record, &cause) == 0)
        return;
    report_warn(trainer->report,
                "not all GPUs of this worker can compute by the algorithms that are measured (%s): they are those that "
                "the libraries take first",
                cause.message);
    (void)take(trainer, NULL, NULL);
}

/* What does not fit beside nothing else may fit in stages: it is no failure. */
static int measure(struct trainer *trainer, struct error *error)
{
    struct algorithm_search found = {0};
    struct error cause = ERROR_INIT;
    int result = search(trainer, &found, &cause);
    if (result == 0)
        take_found(trainer, &found);
    algorithm_record_release(&found.record);
    if (result == 0)
        return 0;
    if (cause.kind != ERROR_NO_SPACE)
        return error_set(error, cause.kind, "%s", cause.message);
    report_warn(trainer->report,
                "the algorithms of libraries cannot be measured (%s): they are those that the libraries take first",
                cause.message);
    return 0;
}

int trainer_open_algorithms(struct trainer *trainer, struct error *error)
{
    if (!is_asked(trainer) || take_recorded(trainer))
        return 0;
    return measure(trainer, error);
}
