/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/trainer_stages.h"

#include <stdlib.h>

#include "common/memory.h"
#include "worker/checkpoint/image.h"
#include "worker/train/restoring.h"
#include "worker/train/support.h"

/* "0 0 1 1": a number a layer. */
static void read_stages(struct trainer *trainer, const char *text)
{
    char *end = NULL;
    for (unsigned long stage = strtoul(text, &end, 10); end != text; stage = strtoul(text, &end, 10)) {
        trainer->stages = memory_resize(trainer->stages, trainer->stage_layers + 1, sizeof *trainer->stages);
        trainer->stages[trainer->stage_layers++] = stage < STAGES_MAX ? (unsigned)stage : STAGES_MAX;
        text = end;
    }
}

static int read_init_manifest(struct trainer *trainer, struct manifest *ret_manifest)
{
    struct checkpoint_name name;
    if (restoring_find_init(trainer, NULL) < 0 || !trainer->files.init_path ||
        !checkpoint_image_is_at(trainer->files.init_path, &name))
        return -1;
    return checkpoint_image_manifest(trainer->files.init_path, ret_manifest, NULL);
}

/* The shards of the checkpoint that this run may go on from, its own or the one that init.path names: every rank reads them from the
 * shared directory, because the plan must be the same for all. 0: there is none. *ret_threads: with how many its program ran; 0: that is
 * not known, or says nothing of its bits. */
static int64_t recorded_shards(struct trainer *trainer, int *ret_threads)
{
    *ret_threads = 0;
    struct manifest manifest;
    const char *own = trainer->files.checkpoint_directory;
    if ((!own || checkpoint_newest_manifest(own, &manifest, NULL) < 0) && read_init_manifest(trainer, &manifest) < 0)
        return 0;
    int64_t shards = manifest.logical_shards;
    *ret_threads = arithmetic_threads(json_string_at(manifest.model, "arithmetic", ""));
    read_stages(trainer, json_string_at(manifest.model, "stages", ""));
    manifest_release(&manifest);
    return shards;
}

/* Those that a batch is cut for: neither a chief of its own nor spare ones. An elastic crew's batch is cut for as many as it may
 * have, so that all processes, whenever they were made, mean the same by a ticket. */
static unsigned ps_workers(const struct trainer *trainer)
{
    int64_t spare = trainer->job->strategy.backup_workers == FIELD_UNSET ? 0 : trainer->job->strategy.backup_workers;
    unsigned seats = crew_is_elastic(&trainer->crew) ? trainer->crew.size : trainer->crew.expected;
    int64_t workers = (int64_t)seats - crew_has_own_chief(&trainer->crew) - spare;
    return workers > 0 ? (unsigned)workers : 1;
}

unsigned trainer_batch_workers(const struct trainer *trainer)
{
    return trainer_serves_parameters(trainer) ? ps_workers(trainer) : trainer->crew.size;
}

/* A program continues with the bits of the checkpoint if it has as many threads, on whatever node. */
static int check_threads(struct trainer *trainer, int recorded, struct error *error)
{
    const struct job_document *job = trainer->job;
    bool chosen = trainer->arguments->threads > 0 || trainer->identity->threads > 0; /* restoring.c warns */
    if (recorded == 0 || chosen || recorded == trainer_threads(trainer) || !job_document_uses_plugin(job) ||
        job->training.determinism == DETERMINISM_RUN || trainer->crew.part == CREW_SERVES)
        return 0;
    trainer->xla.wanted_threads = recorded;
    return error_set(error, ERROR_DEVICE,
                     "the checkpoint's program ran on %d threads, and this process cannot restart with as many: set "
                     "COXSWAIN_THREADS to that, or training.determinism to Run",
                     recorded);
}

int trainer_open_plan(struct trainer *trainer, struct error *error)
{
    int threads;
    trainer->resumed.shards = recorded_shards(trainer, &threads);
    if (check_threads(trainer, threads, error) < 0)
        return -1;
    if (step_plan_batches(trainer->job, trainer_batch_workers(trainer), trainer->resumed.shards, &trainer->plan,
                          error) < 0)
        return -1;
    return support_check_shards(trainer->job, trainer->plan.logical_shards, error);
}
