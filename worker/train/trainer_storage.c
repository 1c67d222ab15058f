/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/trainer_stages.h"

#include <string.h>

#include "common/contract/environment.h"
#include "common/memory.h"
#include "worker/checkpoint/bucket.h"
#include "worker/checkpoint/file.h"
#include "worker/train/export_objects.h"
#include "worker/train/saving.h"

static int map_storages(struct trainer *trainer, struct error *error)
{
    SCOPED_BUFFER text = BUFFER_INIT(JOB_DOCUMENT_MAX);
    /* Options come last, and the last mount of a name counts. */
    if (trainer->identity->storage && buffer_append_string(&text, trainer->identity->storage, error) < 0)
        return -1;
    for (unsigned i = 0; i < trainer->arguments->storage_count; i++) {
        if (buffer_append_string(&text, text.length > 0 ? ":" : "", error) < 0 ||
            buffer_append_string(&text, trainer->arguments->storages[i], error) < 0)
            return -1;
    }
    return storage_map_parse(buffer_text(&text), &trainer->files.storage, error);
}

int trainer_resolve_checkpoint(struct trainer *trainer, struct error *error)
{
    const struct checkpoint_spec *spec = &trainer->job->checkpoint;
    const char *told = trainer->arguments->checkpoint_directory ? trainer->arguments->checkpoint_directory
                                                                : trainer->identity->checkpoint_directory;
    if (told)
        trainer->files.checkpoint_directory = memory_copy_string(told);
    else if (spec->enabled && spec->path == NULL)
        return error_set(error, ERROR_INVALID,
                         "checkpoint.path: is missing, and by hand there is no job's name to take instead; give one");
    else if (spec->enabled)
        return storage_map_resolve(trainer->files.storage, spec->storage, spec->path,
                                   &trainer->files.checkpoint_directory, error);
    return 0;
}

int trainer_open_paths(struct trainer *trainer, struct error *error)
{
    const struct job_document *job = trainer->job;
    if (map_storages(trainer, error) < 0 ||
        (job->init_path && storage_map_resolve(trainer->files.storage, job->init_storage, job->init_path,
                                               &trainer->files.init_path, error) < 0) ||
        trainer_resolve_checkpoint(trainer, error) < 0)
        return -1;
    if (job->export_path == NULL)
        return 0;
    if (storage_map_resolve(trainer->files.storage, job->export_storage, job->export_path, &trainer->files.export_path,
                            error) < 0)
        return -1;
    return trainer->identity->export_s3 ? export_objects_open(trainer->identity->export_s3, trainer->files.export_path,
                                                              &trainer->files.export_objects, error)
                                        : 0;
}

/* All ranks read from the newest manifest how a batch is divided (trainer_plan.c). */
static int copy_manifests(struct trainer *trainer, struct error *error)
{
    if (file_make_directories(trainer->files.checkpoint_directory, error) < 0 ||
        bucket_open(trainer->identity->checkpoint_s3, trainer->files.checkpoint_directory, &trainer->files.bucket,
                    error) < 0)
        return -1;
    bucket_set_job(trainer->files.bucket, trainer->identity->job_uid);
    return bucket_refresh(trainer->files.bucket, false, error) < 0
               ? error_wrap(error, "read the manifests of checkpoints")
               : 0;
}

int trainer_open_store(struct trainer *trainer, struct error *error)
{
    if (trainer->files.checkpoint_directory == NULL)
        return 0;
    if (!trainer_is_chief(trainer)) {
        if (trainer->identity->checkpoint_s3 && copy_manifests(trainer, error) < 0)
            return -1;
        trainer->files.parts = part_writer_new(trainer->files.checkpoint_directory, trainer->files.bucket);
        return 0;
    }
    const struct checkpoint_options options = {
        .directory = trainer->files.checkpoint_directory,
        .bucket = trainer->identity->checkpoint_s3,
        .job_uid = trainer->identity->job_uid,
        .attempt = trainer->identity->attempt,
        .incarnation = trainer->identity->incarnation,
        .keep = trainer->job->checkpoint.keep,
        .ask_rank = saving_ask_rank,
        .name_rank = saving_name_rank,
        .report_late = saving_report_late,
        .context = trainer,
    };
    return checkpoint_store_open(&options, &trainer->files.store, error);
}
