/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/worker/strategy/learner.h"

#include <string.h>

#include "common/json.h"
#include "worker/device/backend.h"
#include "worker/model/graph.h"

int learner_open_job(struct learner *learner, const char *text, struct error *error)
{
    SCOPED_JSON *json = NULL;
    if (json_parse(text, strlen(text), strlen(text) + 1, &json, error) < 0)
        return -1;
    return job_document_parse(json, &learner->job, error);
}

static int open_graphs(struct learner *learner, int64_t max_examples, bool layout_only, struct error *error)
{
    for (unsigned i = 0; i < (layout_only ? 1 : learner->device_count); i++) {
        const struct graph_options options = {.device = learner->devices[i].device,
                                              .model = &learner->job.model,
                                              .precision = learner->job.training.precision,
                                              .max_examples = max_examples,
                                              .logit_rows = learner->logit_rows,
                                              .layout_only = layout_only};
        if (graph_new(&options, layout_only ? &learner->graph : &learner->devices[i].graph, error) < 0)
            return -1;
    }
    if (!layout_only)
        learner->graph = learner->devices[0].graph;
    return 0;
}

static int open_data(struct learner *learner, struct error *error)
{
    struct storage_map *storage;
    if (storage_map_parse(NULL, &storage, error) < 0)
        return -1;
    int result = dataset_open(&learner->job.data, storage, SPLIT_TRAIN, graph_example_format(learner->graph),
                              &learner->dataset, error);
    storage_map_free(storage);
    if (result == 0)
        learner->sampler = (struct sampler){.seed = 5, .count = dataset_count(learner->dataset)};
    return result;
}

static void put_far_away(struct device *device)
{
    static struct device_backend far;
    far = *device->backend;
    far.memory_is_shared = false;
    device->backend = &far;
}

int learner_open_model(struct learner *learner, unsigned devices, int64_t max_examples, bool layout_only,
                       struct error *error)
{
    for (; learner->device_count < devices; learner->device_count++) {
        const struct device_options options = {.index = (int)learner->device_count, .threads = 1};
        if (device_open(&options, &learner->devices[learner->device_count].device, error) < 0)
            return -1;
        if (learner->is_far)
            put_far_away(learner->devices[learner->device_count].device);
    }
    return open_graphs(learner, max_examples, layout_only, error) < 0 ? -1 : open_data(learner, error);
}

int learner_open_state(struct learner *learner, struct error *error)
{
    return training_state_init(&learner->state, learner->devices[0].device, graph_layout(learner->graph),
                               &learner->job.training.optimizer, 5, error);
}

int learner_open_member(struct learner *learner, struct member_options options, struct error *error)
{
    options.job_uid = LEARNER_JOB_UID;
    options.listen_address = options.seats[options.rank].host;
    if (endpoint_open(options.listen_address, 0, &learner->endpoint, error) < 0)
        return -1;
    options.data_port = endpoint_port(learner->endpoint);
    return member_start(&options, &learner->member, error);
}

struct strategy_options learner_options(struct learner *learner, enum strategy_type type)
{
    return (struct strategy_options){.type = type,
                                     .device = learner->devices[0].device,
                                     .graph = learner->graph,
                                     .devices = learner->devices,
                                     .device_count = learner->device_count,
                                     .dataset = learner->dataset,
                                     .sampler = &learner->sampler,
                                     .optimizer = &learner->job.training.optimizer,
                                     .state = &learner->state,
                                     .pipeline.model = &learner->job.model,
                                     .crew.member = learner->member,
                                     .crew.endpoint = learner->endpoint,
                                     .crew.job_uid = LEARNER_JOB_UID};
}

void learner_close(struct learner *learner)
{
    strategy_close(learner->strategy);
    member_free(learner->member);
    endpoint_free(learner->endpoint);
    training_state_release(&learner->state);
    dataset_free(learner->dataset);
    if (learner->devices[0].graph == NULL)
        graph_free(learner->graph);
    for (unsigned i = 0; i < learner->device_count; i++) {
        graph_free(learner->devices[i].graph);
        device_close(learner->devices[i].device);
    }
    job_document_release(&learner->job);
}
