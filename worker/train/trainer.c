/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/trainer.h"

#include <stdlib.h>

#include "worker/checkpoint/bucket.h"
#include "worker/model/program.h"
#include "worker/strategy/peer_hub.h"
#include "worker/train/best.h"
#include "worker/train/error_exit_code.h"
#include "worker/train/export_objects.h"
#include "worker/train/trainer_stages.h"

bool trainer_is_chief(const struct trainer *trainer)
{
    return trainer->crew.part == CREW_TRAINS && trainer->crew.rank == 0;
}

bool trainer_serves_parameters(const struct trainer *trainer)
{
    return trainer->job->strategy.type == STRATEGY_PARAMETER_SERVER;
}

static const struct stage {
    int (*open)(struct trainer *trainer, struct error *error);
    enum exit_code code; /* of plain bad input found there */
} stages[] = {
    {trainer_open_crew, EXIT_CODE_BAD_JOB},        {trainer_open_paths, EXIT_CODE_BAD_JOB},
    {trainer_open_report, EXIT_CODE_INTERNAL},     {trainer_open_key, EXIT_CODE_BAD_JOB},
    {trainer_open_store, EXIT_CODE_NO_CHECKPOINT}, {trainer_open_plan, EXIT_CODE_BAD_JOB},
    {trainer_open_program, EXIT_CODE_BAD_JOB},     {trainer_lower_model, EXIT_CODE_BAD_JOB},
    {trainer_open_devices, EXIT_CODE_NO_DEVICE},   {trainer_open_memory, EXIT_CODE_BAD_JOB},
    {trainer_open_graphs, EXIT_CODE_BAD_JOB},      {trainer_open_data, EXIT_CODE_BAD_DATA},
    {trainer_open_state, EXIT_CODE_BAD_JOB},       {trainer_open_certificates, EXIT_CODE_BAD_JOB},
    {trainer_open_member, EXIT_CODE_INTERNAL},     {trainer_open_strategy, EXIT_CODE_BAD_JOB},
};

int trainer_open(struct trainer *trainer, const struct arguments *arguments, const struct identity *identity,
                 const struct job_document *job, enum exit_code *ret_code, struct error *error)
{
    *trainer = (struct trainer){
        .arguments = arguments, .identity = identity, .job = job, .evaluated_step = -1, .saves.step = -1};
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++)
        if (stages[i].open(trainer, error) < 0) {
            *ret_code = error_exit_code(error, stages[i].code);
            return -1;
        }
    return 0;
}

void trainer_release(struct trainer *trainer)
{
    best_free(trainer->files.best);
    strategy_close(trainer->strategy);
    if (trainer->files.store) /* a save under way asks the member about the others */
        checkpoint_store_free(trainer->files.store);
    member_free(trainer->member);
    endpoint_free(trainer->endpoint);
    peer_hub_free(trainer->hub);
    training_state_release(&trainer->state);
    dataset_free(trainer->validation);
    dataset_free(trainer->training);
    trained_on_release(&trainer->trained_on);
    for (unsigned i = 0; i < trainer->device_count; i++)
        graph_free(trainer->devices[i].graph);
    program_free(trainer->xla.program);
    device_stream_free(trainer->stream);
    for (unsigned i = 0; i < trainer->device_count; i++)
        device_close(trainer->devices[i].device);
    part_writer_free(trainer->files.parts);
    if (trainer->files.bucket)
        bucket_free(trainer->files.bucket);
    free(trainer->stages);
    if (trainer->report)
        report_free(trainer->report);
    storage_map_free(trainer->files.storage);
    free(trainer->files.checkpoint_directory);
    export_objects_free(trainer->files.export_objects);
    free(trainer->files.export_path);
    free(trainer->files.init_path);
    crew_release(&trainer->crew);
}
