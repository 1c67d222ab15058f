/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/object_storage.h"

#include <inttypes.h>
#include <string.h>

#include "common/contract/environment.h"
#include "common/memory.h"
#include "operator/controller/objects/crew_roles.h"
#include "operator/controller/objects/environment_list.h"
#include "operator/controller/objects/job_secret.h"
#include "operator/controller/objects/quantity.h"

bool object_storage_is_used(const struct job_document *document)
{
    for (unsigned i = 0; i < document->storage_count; i++)
        if (document->storage[i].s3.enabled || document->storage[i].download.enabled)
            return true;
    return false;
}

bool object_storage_is_fetch(const char *container)
{
    static const char *const names[] = {"coxswain-fetch-", "coxswain-restore-", "coxswain-download-"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(container, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool is_named(const char *storage, const char *name)
{
    return storage && strcmp(storage, name) == 0;
}

static bool has_checkpoints(const struct training_job *job, const struct storage_spec *storage)
{
    return job->framework == FRAMEWORK_COXSWAIN && storage->s3.enabled && job->document.checkpoint.enabled &&
           is_named(job->document.checkpoint.storage, storage->name);
}

static bool has_export(const struct training_job *job, const struct storage_spec *storage)
{
    return job->framework == FRAMEWORK_COXSWAIN && storage->s3.enabled && job->document.export_path &&
           is_named(job->document.export_storage, storage->name);
}

static bool is_synced(const struct training_job *job, const struct storage_spec *storage)
{
    return job->framework != FRAMEWORK_COXSWAIN && storage->s3.enabled && storage->s3.sync.enabled;
}

bool object_storage_uploads(const struct training_job *job, enum role role, int64_t index)
{
    for (unsigned i = 0; i < job->document.storage_count; i++)
        if (is_synced(job, &job->document.storage[i]))
            return role == crew_chief_role(job) && index == 0;
    return false;
}

bool object_storage_is_written(const struct training_job *job, const struct storage_spec *storage)
{
    return is_synced(job, storage) || has_checkpoints(job, storage) || has_export(job, storage);
}

bool object_storage_takes_checkpoints(const struct training_job *job)
{
    for (unsigned i = 0; i < job->document.storage_count; i++)
        if (has_checkpoints(job, &job->document.storage[i]))
            return true;
    return false;
}

/* Whether the job reads from the storage. What the program of another framework reads is not known. */
static bool is_read(const struct training_job *job, const struct storage_spec *storage)
{
    const struct job_document *document = &job->document;
    return job->framework != FRAMEWORK_COXSWAIN || is_named(document->data.storage, storage->name) ||
           is_named(document->init_storage, storage->name) || is_named(document->model.program_storage, storage->name);
}

/* Has a number in it, because the name of a storage may already be as long as that of a volume can be. */
static char *secret_volume(unsigned index)
{
    return memory_format("coxswain-s3-%u", index);
}

void object_storage_add_volumes(struct json *volumes, const struct job_document *document)
{
    for (unsigned i = 0; i < document->storage_count; i++) {
        const struct storage_spec *storage = &document->storage[i];
        SCOPED_FREE char *name = secret_volume(i);
        if (storage->download.secret_name)
            job_secret_add_volume(volumes, name, storage->download.secret_name);
        if (!storage->s3.enabled)
            continue;
        struct json *volume = json_append(volumes, json_new_object());
        json_set_string(volume, "name", storage->name);
        json_set_string(json_set_object(volume, "emptyDir"), "sizeLimit", storage->s3.cache_size);
        if (storage->s3.secret_name)
            job_secret_add_volume(volumes, name, storage->s3.secret_name);
    }
}

/* ---------------------------------------------------------------- the paths of a job */

static void add_path(struct json *words, const char *folder, const char *path)
{
    if (!path)
        return;
    SCOPED_FREE char *whole = memory_format("%s%s%s", folder ? folder : "", folder ? "/" : "", path);
    json_append_string(words, whole + (*whole == '/'));
}

static void add_data_files(struct json *words, const char *folder, const struct data_files *files)
{
    add_path(words, folder, files->images);
    add_path(words, folder, files->labels);
    add_path(words, folder, files->text);
    add_path(words, folder, files->files);
    for (unsigned i = 0; i < files->input_count; i++)
        add_path(words, folder, files->inputs[i].file);
}

static void add_paths(struct json *words, const struct training_job *job, const char *name)
{
    const struct job_document *document = &job->document;
    if (job->framework != FRAMEWORK_COXSWAIN)
        return;
    if (is_named(document->data.storage, name)) {
        size_t before = json_count(words);
        add_data_files(words, document->data.path, &document->data.train);
        if (json_count(words) == before && !document->data.path)
            return; /* without paths everything is fetched: the data's folder is the whole storage */
        if (json_count(words) == before)
            add_path(words, NULL, document->data.path);
        add_data_files(words, document->data.path, &document->data.validation);
    }
    if (is_named(document->init_storage, name))
        add_path(words, NULL, document->init_path);
    if (is_named(document->model.program_storage, name))
        add_path(words, NULL, document->model.program_path);
}

/* ---------------------------------------------------------------- the containers */

static void add_option(struct json *words, const char *option, const char *value)
{
    if (!value)
        return;
    json_append_string(words, option);
    json_append_string(words, value);
}

static void add_mount(struct json *mounts, const char *volume, const char *path)
{
    struct json *mount = json_append(mounts, json_new_object());
    json_set_string(mount, "name", volume);
    json_set_string(mount, "mountPath", path);
}

static char *secret_folder(unsigned index)
{
    return memory_format("%s/%u", S3_DIRECTORY, index);
}

/* Without the slash that a prefix may begin with; NULL: the whole bucket. There is one writer for a prefix, so by default each job that syncs
 * has its own. Free with free(). */
static char *key_prefix(const struct training_job *job, const struct storage_spec *storage)
{
    const char *prefix = storage->s3.prefix;
    if (prefix)
        return memory_copy_string(prefix + (*prefix == '/'));
    return is_synced(job, storage) ? memory_format("%s/%s", job->namespace, job->name) : NULL;
}

/* Appends a variable with what the trainer needs to upload below `path` in the storage. */
static void add_settings(struct json *environment, const char *variable, const struct training_job *job, unsigned index,
                         const char *path)
{
    const struct storage_spec *storage = &job->document.storage[index];
    SCOPED_FREE char *secrets = secret_folder(index), *prefix = key_prefix(job, storage),
                     *below = memory_format("%s%s%s", prefix ? prefix : "", prefix ? "/" : "", path + (*path == '/'));
    SCOPED_JSON *settings = json_new_object();
    json_set_string(settings, "endpoint", storage->s3.endpoint);
    json_set_string(settings, "bucket", storage->s3.bucket);
    json_set_string(settings, "prefix", below);
    if (storage->s3.region)
        json_set_string(settings, "region", storage->s3.region);
    if (storage->s3.secret_name)
        json_set_string(settings, "credentials", secrets);
    SCOPED_BUFFER text = BUFFER_INIT(JOB_DOCUMENT_MAX);
    json_print(settings, &text, NULL);
    environment_add(environment, variable, buffer_text(&text));
}

void object_storage_add_environment(struct json *environment, const struct training_job *job)
{
    const char *path = job->document.checkpoint.path;
    for (unsigned i = 0; i < job->document.storage_count; i++) {
        const struct storage_spec *storage = &job->document.storage[i];
        if (has_checkpoints(job, storage))
            add_settings(environment, ENV_CHECKPOINT_S3, job, i, path);
        if (has_export(job, storage))
            add_settings(environment, ENV_EXPORT_S3, job, i, job->document.export_path);
    }
}

void object_storage_add_mounts(struct json *mounts, const struct training_job *job)
{
    for (unsigned i = 0; i < job->document.storage_count; i++) {
        const struct storage_spec *storage = &job->document.storage[i];
        SCOPED_FREE char *secrets = secret_folder(i), *volume = secret_volume(i);
        if (object_storage_is_written(job, storage) && !is_synced(job, storage) && storage->s3.secret_name)
            job_secret_add_mount(mounts, volume, secrets);
    }
}

/* Begins the init container of a storage: the command, up to its options, and the mounts. */
static struct json *add_container(struct json *list, const struct storage_spec *storage, unsigned index,
                                  const char *image, const char *command, bool has_secret)
{
    SCOPED_FREE char *name = memory_format("coxswain-%s-%u", command, index), *volume = secret_volume(index),
                     *folder = memory_format("%s/%s", STORAGE_ROOT, storage->name), *secrets = secret_folder(index);
    struct json *container = json_append(list, json_new_object());
    json_set_string(container, "name", name);
    json_set_string(container, "image", image);
    struct json *words = json_set_array(container, "command");
    json_append_string(words, "coxswain-storage");
    json_append_string(words, command);
    add_option(words, "--credentials", has_secret ? secrets : NULL);
    struct json *mounts = json_set_array(container, "volumeMounts");
    add_mount(mounts, storage->name, folder);
    if (has_secret)
        job_secret_add_mount(mounts, volume, secrets);
    return words;
}

static void end_options(struct json *words, const struct storage_spec *storage, const char *limit)
{
    int64_t thousandths = 0;
    bool has_ceiling = limit && quantity_parse(limit, &thousandths); /* otherwise it is larger than any disk */
    SCOPED_FREE char *ceiling = memory_format("%" PRId64, thousandths / 1000),
                     *folder = memory_format("%s/%s", STORAGE_ROOT, storage->name);
    add_option(words, "--ceiling", has_ceiling ? ceiling : NULL);
    json_append_string(words, "--");
    json_append_string(words, folder);
}

static struct json *add_bucket_container(struct json *list, const struct training_job *job, unsigned index,
                                         const char *image, const char *command)
{
    const struct storage_spec *storage = &job->document.storage[index];
    const struct s3_spec *s3 = &storage->s3;
    struct json *words = add_container(list, storage, index, image, command, s3->secret_name != NULL);
    SCOPED_FREE char *prefix = key_prefix(job, storage);
    add_option(words, "--endpoint", s3->endpoint);
    add_option(words, "--bucket", s3->bucket);
    add_option(words, "--prefix", prefix);
    add_option(words, "--region", s3->region);
    return words;
}

static void add_sync(struct json *list, const struct training_job *job, unsigned index, const char *image)
{
    const struct storage_spec *storage = &job->document.storage[index];
    const struct checkpoint_spec *checkpoint = &job->document.checkpoint;
    SCOPED_FREE char *every = memory_format("%" PRId64, storage->s3.sync.every_seconds);
    struct json *words = add_bucket_container(list, job, index, image, "sync");
    add_option(words, "--interval", every);
    add_option(words, "--connections", "8");
    if (checkpoint->enabled && is_named(checkpoint->storage, storage->name)) {
        const char *path = checkpoint->path ? checkpoint->path : job->name;
        add_option(words, "--checkpoints", path + (*path == '/'));
    }
    if (storage->s3.sync.delete_removed)
        json_append_string(words, "--delete-removed");
    end_options(words, storage, NULL);
    for (struct json *item = json_first(list); item; item = json_next(item))
        if (!json_next(item))
            json_set_string(item, "restartPolicy", "Always");
}

static void add_restore(struct json *list, const struct training_job *job, unsigned index, const char *image,
                        bool uploads)
{
    const struct storage_spec *storage = &job->document.storage[index];
    struct json *words = add_bucket_container(list, job, index, image, "restore");
    if (uploads)
        json_append_string(words, "--claim");
    end_options(words, storage, storage->s3.cache_size);
}

static void add_fetch(struct json *list, const struct training_job *job, unsigned index, const char *image)
{
    const struct storage_spec *storage = &job->document.storage[index];
    const struct s3_spec *s3 = &storage->s3;
    struct json *words = add_bucket_container(list, job, index, image, "fetch");
    end_options(words, storage, s3->cache_size);
    add_paths(words, job, storage->name);
}

static void add_download(struct json *list, const struct training_job *job, unsigned index, const char *image)
{
    const struct storage_spec *storage = &job->document.storage[index];
    const struct download_spec *download = &storage->download;
    struct json *words = add_container(list, storage, index, image, "download", download->secret_name != NULL);
    add_option(words, "--hub", download->hub);
    end_options(words, storage, download->size_limit);
    for (unsigned i = 0; i < download->source_count; i++) {
        const struct download_source *source = &download->sources[i];
        bool is_hub = strncmp(source->url, "hf://", 5) == 0;
        SCOPED_FREE char *word =
            memory_format("%s%s%s", source->url, is_hub ? "" : "#sha256=", is_hub ? "" : source->sha256);
        json_append_string(words, word);
    }
}

void object_storage_add_fetches(struct json *init_containers, const struct training_job *job, const char *image,
                                bool uploads)
{
    for (unsigned i = 0; i < job->document.storage_count; i++) {
        const struct storage_spec *storage = &job->document.storage[i];
        if (is_synced(job, storage))
            add_restore(init_containers, job, i, image, uploads);
        else if (storage->s3.enabled && is_read(job, storage))
            add_fetch(init_containers, job, i, image);
        if (storage->download.enabled)
            add_download(init_containers, job, i, image);
        if (is_synced(job, storage) && uploads)
            add_sync(init_containers, job, i, image);
    }
}
