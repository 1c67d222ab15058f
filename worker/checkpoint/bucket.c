/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/bucket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/checkpoint_layout.h"
#include "common/contract/environment.h"
#include "common/crc32c.h"
#include "common/memory.h"
#include "common/s3_transfer.h"
#include "worker/checkpoint/bucket_shards.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/image.h"
#include "worker/checkpoint/lineage.h"
#include "worker/checkpoint/s3_settings.h"

#define OBJECTS_MAX 65536 /* more than retention leaves; a prefix with more is not a job's */
#define CONNECTIONS S3_SETTINGS_CONNECTIONS
#define CLAIM_TRIES 64
#define REFRESH_TRIES 8
#define QUICK_MS 5000

struct bucket {
    struct s3_client *client, *quick; /* quick: gives up after QUICK_MS */
    char *directory;
    char *prefix;   /* "", or ends in a slash */
    uint32_t owner; /* checksum of the job's UID */
};

/* To the caller, an answer that refuses a request is like a disk that fails: nothing shows that a checkpoint is damaged. */
int bucket_fail(struct error *error)
{
    if (error && (error->kind == ERROR_FORBIDDEN || error->kind == ERROR_NOT_FOUND || error->kind == ERROR_INVALID ||
                  error->kind == ERROR_CONFLICT))
        error->kind = ERROR_SYSTEM;
    return -1;
}

int bucket_fail_with(const struct error *cause, struct error *error)
{
    error_set(error, cause->kind, "%s", cause->message);
    return bucket_fail(error);
}

int bucket_open_at(const char *variable, const char *text, const char *prefix, const char *directory,
                   struct bucket **ret_bucket, struct error *error)
{
    struct s3_client *client, *quick;
    SCOPED_FREE char *own = NULL, *same = NULL;
    if (s3_settings_open(variable, text, 0, &client, &own, error) < 0)
        return -1;
    if (s3_settings_open(variable, text, QUICK_MS, &quick, &same, error) < 0) {
        s3_client_free(client);
        return -1;
    }
    const char *chosen = prefix ? prefix : own;
    struct bucket *bucket = memory_allocate(1, sizeof *bucket);
    bucket->client = client;
    bucket->quick = quick;
    bucket->directory = memory_copy_string(directory);
    bucket->prefix = memory_format("%s%s", chosen, *chosen ? "/" : "");
    *ret_bucket = bucket;
    return 0;
}

int bucket_open(const char *text, const char *directory, struct bucket **ret_bucket, struct error *error)
{
    return bucket_open_at(ENV_CHECKPOINT_S3, text, NULL, directory, ret_bucket, error);
}

void bucket_free(struct bucket *bucket)
{
    s3_client_free(bucket->client);
    s3_client_free(bucket->quick);
    free(bucket->directory);
    free(bucket->prefix);
    free(bucket);
}

void bucket_set_job(struct bucket *bucket, const char *job_uid)
{
    bucket->owner = crc32c(0, job_uid, strlen(job_uid));
}

uint32_t bucket_owner(const struct bucket *bucket)
{
    return bucket->owner;
}

struct s3_client *bucket_client(const struct bucket *bucket)
{
    return bucket->client;
}

struct s3_client *bucket_quick_client(const struct bucket *bucket)
{
    return bucket->quick;
}

char *bucket_key(const struct bucket *bucket, const char *name)
{
    return memory_format("%s%s", bucket->prefix, name);
}

/* Lists the objects whose names in the job's directory begin with `start`. */
static int list_objects(struct bucket *bucket, const char *start, struct s3_list *ret_list, struct error *error)
{
    SCOPED_FREE char *prefix = bucket_key(bucket, start);
    return s3_list(bucket->client, prefix, OBJECTS_MAX, ret_list, error) < 0 ? bucket_fail(error) : 0;
}

/* Splits "step-…/file"; false if the key is not of a checkpoint's file. */
static bool parse_key(const struct bucket *bucket, const char *key, struct checkpoint_name *ret_name,
                      const char **ret_file)
{
    char text[CHECKPOINT_NAME_MAX];
    const char *name = key + strlen(bucket->prefix), *slash = strchr(name, '/');
    if (!slash || slash[1] == '\0' || strchr(slash + 1, '/') || (size_t)(slash - name) >= sizeof text)
        return false;
    memcpy(text, name, (size_t)(slash - name));
    text[slash - name] = '\0';
    *ret_file = slash + 1;
    return (*ret_file)[0] != '.' && checkpoint_name_parse(text, ret_name) == 0;
}

static char *local_path(const struct bucket *bucket, const struct checkpoint_name *name)
{
    char text[CHECKPOINT_NAME_MAX];
    checkpoint_name_format(name, text);
    return file_path_join(bucket->directory, text);
}

/* ---- the local copy */

static bool is_kept_whole(const char *name)
{
    return incarnation_record_name_parse(name) >= 0 || strcmp(name, CHECKPOINT_COMPLETION) == 0 ||
           strcmp(name, CHECKPOINT_BEST) == 0;
}

static int remove_stored(const void *context, const char *entry, struct error *error)
{
    const struct bucket *bucket = context;
    struct checkpoint_name name;
    if (!is_kept_whole(entry) && checkpoint_name_parse(entry, &name) < 0)
        return 0;
    SCOPED_FREE char *path = file_path_join(bucket->directory, entry);
    return file_remove_directory(path, error);
}

/* Owns the keys and paths; ETags are those of a list that outlives it. */
struct downloads {
    struct s3_download *files;
    size_t count;
};

static void downloads_release(struct downloads *downloads)
{
    for (size_t i = 0; i < downloads->count; i++) {
        free((char *)downloads->files[i].key);
        free((char *)downloads->files[i].path);
    }
    free(downloads->files);
}

/* Takes key and path. */
static void add_download(struct downloads *downloads, char *key, const char *etag, int64_t size, char *path)
{
    downloads->files = memory_resize(downloads->files, downloads->count + 1, sizeof *downloads->files);
    downloads->files[downloads->count++] = (struct s3_download){.key = key, .etag = etag, .size = size, .path = path};
}

static void add_listed(struct downloads *downloads, const struct s3_object *object, char *path)
{
    add_download(downloads, memory_copy_string(object->key), object->etag, object->size, path);
}

static int plan_refresh(const struct bucket *bucket, const struct s3_list *list, bool for_chief,
                        struct downloads *downloads, struct error *error)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *key = list->objects[i].key, *below = key + strlen(bucket->prefix), *file;
        struct checkpoint_name name;
        if (is_kept_whole(below) && (for_chief || strcmp(below, CHECKPOINT_BEST) != 0)) {
            add_listed(downloads, &list->objects[i], file_path_join(bucket->directory, below));
        } else if (parse_key(bucket, key, &name, &file) && strcmp(file, CHECKPOINT_MANIFEST) == 0) {
            SCOPED_FREE char *path = local_path(bucket, &name);
            if (file_make_directories(path, error) < 0)
                return -1;
            add_listed(downloads, &list->objects[i], file_path_join(path, file));
        }
    }
    return 0;
}

static int refresh_once(struct bucket *bucket, bool for_chief, struct error *error)
{
    struct s3_list list;
    SCOPED(downloads_release) struct downloads downloads = {0};
    SCOPED_FREE char *start = bucket_key(bucket, "");
    if (s3_list(bucket->client, start, OBJECTS_MAX, &list, error) < 0)
        return -1;
    int result = file_each_entry(bucket->directory, remove_stored, bucket, error);
    if (result == 0)
        result = plan_refresh(bucket, &list, for_chief, &downloads, error);
    if (result == 0)
        result = s3_download(bucket->client, downloads.files, downloads.count, CONNECTIONS, NULL, error);
    s3_list_release(&list);
    return result;
}

int bucket_refresh(struct bucket *bucket, bool for_chief, struct error *error)
{
    struct error cause = ERROR_INIT;
    for (int i = 0; i < REFRESH_TRIES; i++) {
        error_clear(&cause);
        if (refresh_once(bucket, for_chief, &cause) == 0)
            return 0;
        /* An older chief may replace or remove objects after they were listed. */
        if (cause.kind != ERROR_NOT_FOUND && cause.kind != ERROR_CONFLICT)
            break;
    }
    return bucket_fail_with(&cause, error);
}

static bool is_shard(const struct manifest_file *file)
{
    struct checkpoint_part_key key;
    uint32_t owner;
    return bucket_shard_name_parse(file->name, &key, &owner);
}

/* Adds the shards that the manifest at `path` names; none if the manifest is damaged, which is reported by whoever opens the checkpoint. */
static void add_shards(const struct bucket *bucket, const char *path, struct downloads *downloads)
{
    struct manifest manifest;
    if (checkpoint_image_manifest(path, &manifest, NULL) < 0)
        return;
    for (unsigned i = 0; i < manifest.file_count; i++) {
        const struct manifest_file *file = &manifest.files[i];
        SCOPED_FREE char *below = memory_format(BUCKET_SHARDS "%s", file->name);
        if (is_shard(file)) /* needs no ETag, since its name is used only once */
            add_download(downloads, bucket_key(bucket, below), NULL, file->bytes, file_path_join(path, file->name));
    }
    manifest_release(&manifest);
}

static int fetch_files(struct bucket *bucket, const char *path, const struct s3_list *list, struct error *error)
{
    SCOPED(downloads_release) struct downloads downloads = {0};
    struct error cause = ERROR_INIT;
    for (size_t i = 0; i < list->count; i++) {
        struct checkpoint_name parsed;
        const char *file;
        if (parse_key(bucket, list->objects[i].key, &parsed, &file) && strcmp(file, CHECKPOINT_MANIFEST) != 0)
            add_listed(&downloads, &list->objects[i], file_path_join(path, file));
    }
    add_shards(bucket, path, &downloads);
    if (s3_download(bucket->client, downloads.files, downloads.count, CONNECTIONS, NULL, &cause) == 0)
        return 0;
    if (cause.kind == ERROR_NOT_FOUND) /* a checkpoint without one of its shards cannot be used */
        cause.kind = ERROR_CORRUPT;
    return bucket_fail_with(&cause, error);
}

int bucket_fetch(struct bucket *bucket, const struct checkpoint_name *name, struct error *error)
{
    struct s3_list list;
    char start[CHECKPOINT_NAME_MAX + 1];
    checkpoint_name_format(name, start);
    SCOPED_FREE char *path = file_path_join(bucket->directory, start);
    snprintf(start + strlen(start), 2, "/");
    if (list_objects(bucket, start, &list, error) < 0)
        return -1;
    int result = fetch_files(bucket, path, &list, error);
    s3_list_release(&list);
    return result;
}

/* ---- records */

static char *record_name(int64_t incarnation)
{
    return memory_format(CHECKPOINT_INCARNATION_FORMAT, (long long)incarnation);
}

int bucket_put_record(struct bucket *bucket, const struct incarnation_record *own, bool is_new, struct error *error)
{
    SCOPED_FREE char *name = record_name(own->incarnation);
    SCOPED_FREE char *key = bucket_key(bucket, name), *path = file_path_join(bucket->directory, name);
    SCOPED_BUFFER text;
    buffer_init(&text, INCARNATION_RECORD_BYTES_MAX);
    if (file_read(path, &text, error) < 0)
        return -1;
    return s3_put(bucket->client, key, buffer_text(&text), text.length, is_new ? S3_PUT_IF_ABSENT : S3_PUT_ALWAYS,
                  error) < 0
               ? bucket_fail(error)
               : 0;
}

/* Two chiefs are told apart by conditional writes alone, and some servers ignore the condition: so the record that was just written is
 * written once more, with a space at its end, which must fail. */
static int expect_conditional_writes(struct bucket *bucket, const struct incarnation_record *own, struct error *error)
{
    struct error cause = ERROR_INIT;
    SCOPED_FREE char *name = record_name(own->incarnation);
    SCOPED_FREE char *key = bucket_key(bucket, name), *path = file_path_join(bucket->directory, name);
    SCOPED_BUFFER text;
    buffer_init(&text, INCARNATION_RECORD_BYTES_MAX + 1);
    if (file_read(path, &text, error) < 0 || buffer_append(&text, " ", 1, error) < 0)
        return -1;
    if (s3_put(bucket->client, key, buffer_text(&text), text.length, S3_PUT_IF_ABSENT, &cause) == 0)
        return error_set(
            error, ERROR_UNSUPPORTED,
            "the server overwrites objects despite the condition of the request, so that two chiefs could not be told "
            "apart; keep checkpoints on a server with conditional writes, such as AWS, MinIO or Google Cloud Storage");
    if (cause.kind == ERROR_ALREADY_EXISTS)
        return 0;
    return bucket_fail_with(&cause, error);
}

int bucket_claim(struct bucket *bucket, const char *job_uid, int64_t attempt, int64_t fencing,
                 struct incarnation_record *ret_claim, struct error *error)
{
    struct error cause = ERROR_INIT;
    for (int i = 0; i < CLAIM_TRIES; i++) {
        if (bucket_refresh(bucket, true, error) < 0 ||
            lineage_claim(bucket->directory, job_uid, attempt, fencing, ret_claim, error) < 0)
            return -1;
        if (bucket_put_record(bucket, ret_claim, true, &cause) == 0)
            return expect_conditional_writes(bucket, ret_claim, error);
        if (cause.kind != ERROR_ALREADY_EXISTS)
            break;
    }
    return error_set(error, cause.kind, "%s", cause.message);
}

/* Copies the records of newer chiefs, so that the local check finds them. */
static int copy_newer(struct bucket *bucket, const struct s3_list *list, const struct incarnation_record *own,
                      struct error *error)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *name = list->objects[i].key + strlen(bucket->prefix);
        SCOPED_FREE char *path = file_path_join(bucket->directory, name);
        SCOPED_BUFFER text;
        struct error cause = ERROR_INIT;
        buffer_init(&text, INCARNATION_RECORD_BYTES_MAX);
        if (incarnation_record_name_parse(name) <= own->incarnation)
            continue;
        if (s3_get_whole(bucket->client, list->objects[i].key, &text, &cause) < 0) {
            if (cause.kind == ERROR_NOT_FOUND) /* a still newer chief has removed it since it was listed */
                return error_set(error, ERROR_STALE, "a newer chief than that of %s has taken over %s", name,
                                 bucket->directory);
            return bucket_fail_with(&cause, error);
        }
        if (file_replace(path, text.data, text.length, error) < 0)
            return -1;
    }
    return lineage_check_current(bucket->directory, own, error);
}

int bucket_check(struct bucket *bucket, const struct incarnation_record *own, struct error *error)
{
    struct s3_list list;
    if (list_objects(bucket, CHECKPOINT_INCARNATION_PREFIX, &list, error) < 0)
        return -1;
    int result = copy_newer(bucket, &list, own, error);
    s3_list_release(&list);
    return result;
}

/* ---- a commit */

static char *file_key(const struct bucket *bucket, const char *checkpoint, const char *file)
{
    return memory_format("%s%s/%s", bucket->prefix, checkpoint, file);
}

static const struct manifest_file *find_file(const struct manifest *manifest, const char *name)
{
    for (unsigned i = 0; i < manifest->file_count; i++)
        if (strcmp(manifest->files[i].name, name) == 0)
            return &manifest->files[i];
    return NULL;
}

/* Reads the manifest that the bucket has of that name; one that is damaged counts as a manifest without files. */
static int find_earlier(struct bucket *bucket, const char *key, struct manifest *ret_earlier, bool *ret_found,
                        struct error *error)
{
    struct error cause = ERROR_INIT;
    SCOPED_BUFFER text;
    buffer_init(&text, MANIFEST_BYTES_MAX);
    *ret_earlier = (struct manifest){0};
    *ret_found = s3_get_whole(bucket->client, key, &text, &cause) == 0;
    if (*ret_found)
        (void)manifest_parse(buffer_text(&text), text.length, ret_earlier, NULL);
    if (*ret_found || cause.kind == ERROR_NOT_FOUND)
        return 0;
    return bucket_fail_with(&cause, error);
}

/* Whether the earlier manifest lists the same files, and the bucket has their objects. Shards are not looked for again: the chief has found
 * them before it wrote the manifest. */
static int is_committed(struct bucket *bucket, const char *checkpoint, const struct manifest *manifest,
                        const struct manifest *earlier, bool *ret_done, struct error *error)
{
    *ret_done = manifest->file_count == earlier->file_count;
    for (unsigned i = 0; *ret_done && i < manifest->file_count; i++) {
        const struct manifest_file *file = &manifest->files[i], *other = find_file(earlier, file->name);
        SCOPED_FREE char *key = file_key(bucket, checkpoint, file->name);
        struct s3_head head;
        struct error cause = ERROR_INIT;
        *ret_done = other && other->bytes == file->bytes && other->crc32c == file->crc32c;
        if (!*ret_done || is_shard(file))
            continue;
        if (s3_head(bucket->client, key, &head, &cause) == 0)
            *ret_done = head.size == file->bytes && head.has_crc && head.crc == file->crc32c;
        else if (cause.kind == ERROR_NOT_FOUND)
            *ret_done = false;
        else
            return bucket_fail_with(&cause, error);
    }
    return 0;
}

/* Uploads the files that are no shards, and sets their names in `manifest` to those of the objects: no object that the earlier manifest lists
 * is replaced. */
static int upload_files(struct bucket *bucket, const char *checkpoint, struct manifest *manifest,
                        const struct manifest *earlier, struct error *error)
{
    for (unsigned i = 0; i < manifest->file_count; i++) {
        struct manifest_file *file = &manifest->files[i];
        if (is_shard(file))
            continue;
        SCOPED_FREE char *below = memory_format("%s/%s", checkpoint, file->name);
        SCOPED_FREE char *path = file_path_join(bucket->directory, below);
        if (find_file(earlier, file->name)) {
            SCOPED_FREE char *name = memory_format("again-%s", file->name);
            snprintf(file->name, sizeof file->name, "%s", name);
        }
        SCOPED_FREE char *key = file_key(bucket, checkpoint, file->name);
        if (s3_upload(bucket->client, key, path, CONNECTIONS, error) < 0)
            return bucket_fail(error);
    }
    return 0;
}

static int put_manifest(struct bucket *bucket, const char *key, const struct manifest *manifest, bool replaces,
                        struct error *error)
{
    struct error cause = ERROR_INIT;
    SCOPED_BUFFER text;
    buffer_init(&text, MANIFEST_BYTES_MAX);
    if (manifest_print(manifest, &text, error) < 0)
        return -1;
    if (s3_put(bucket->client, key, buffer_text(&text), text.length, replaces ? S3_PUT_ALWAYS : S3_PUT_IF_ABSENT,
               &cause) == 0)
        return 0;
    if (cause.kind == ERROR_ALREADY_EXISTS)
        return error_set(error, ERROR_STALE, "another process has committed %s", key);
    return bucket_fail_with(&cause, error);
}

/* Removes the objects that only the replaced manifest lists. If there is a newer chief, they stay, since it may have read that manifest.
 * Failures are ignored, since the commit has succeeded; objects that stay are removed with the checkpoint. */
static void remove_replaced(struct bucket *bucket, const char *checkpoint, const struct manifest *earlier,
                            const struct manifest *manifest, const struct incarnation_record *own)
{
    bool may_remove = earlier->file_count > 0 && bucket_check(bucket, own, NULL) == 0;
    for (unsigned i = 0; may_remove && i < earlier->file_count; i++) {
        SCOPED_FREE char *key = file_key(bucket, checkpoint, earlier->files[i].name);
        if (!is_shard(&earlier->files[i]) && !find_file(manifest, earlier->files[i].name))
            s3_delete(bucket->client, key, NULL);
    }
}

/* Only this chief uses its checkpoints' names. If the bucket has this one, the crew had returned to an older step, or the answer to an
 * earlier commit was lost. A checkpoint with the same tensors stays. One with other tensors stays whole until the new manifest replaces it. */
static int commit_manifest(struct bucket *bucket, const char *checkpoint, struct manifest *manifest,
                           const struct incarnation_record *own, struct error *error)
{
    SCOPED_FREE char *key = file_key(bucket, checkpoint, CHECKPOINT_MANIFEST);
    SCOPED(manifest_release) struct manifest earlier = {0};
    bool found, done;
    if (bucket_check(bucket, own, error) < 0 || find_earlier(bucket, key, &earlier, &found, error) < 0 ||
        is_committed(bucket, checkpoint, manifest, &earlier, &done, error) < 0)
        return -1;
    if (done)
        return 0;
    if (upload_files(bucket, checkpoint, manifest, &earlier, error) < 0 || bucket_check(bucket, own, error) < 0 ||
        put_manifest(bucket, key, manifest, found, error) < 0)
        return -1;
    remove_replaced(bucket, checkpoint, &earlier, manifest, own);
    return 0;
}

int bucket_commit(struct bucket *bucket, const struct checkpoint_name *name, const struct incarnation_record *own,
                  struct error *error)
{
    char text[CHECKPOINT_NAME_MAX];
    struct manifest manifest;
    checkpoint_name_format(name, text);
    SCOPED_FREE char *path = file_path_join(bucket->directory, text);
    if (checkpoint_image_manifest(path, &manifest, error) < 0)
        return -1;
    int result = commit_manifest(bucket, text, &manifest, own, error);
    manifest_release(&manifest);
    return result;
}

/* A caller's check, and whether it has failed. */
struct upload_check {
    s3_upload_check *check;
    const void *context;
    bool *failed;
};

static int check_upload(const void *context, struct error *error)
{
    const struct upload_check *upload = context;
    *upload->failed = upload->check(upload->context, error) < 0;
    return *upload->failed ? -1 : 0;
}

int bucket_upload_if(struct s3_client *client, const char *key, const char *path, s3_upload_check *check,
                     const void *context, struct error *error)
{
    bool failed = false;
    const struct upload_check upload = {check, context, &failed};
    if (s3_upload_if(client, key, path, CONNECTIONS, check_upload, &upload, error) == 0)
        return 0;
    return failed ? -1 : bucket_fail(error);
}

struct publication {
    struct bucket *bucket;
    const struct incarnation_record *own;
};

static int check_publication(const void *context, struct error *error)
{
    const struct publication *publication = context;
    return bucket_check(publication->bucket, publication->own, error);
}

int bucket_put_file(struct bucket *bucket, const char *name, const struct incarnation_record *own, struct error *error)
{
    SCOPED_FREE char *key = bucket_key(bucket, name), *path = file_path_join(bucket->directory, name);
    const struct publication publication = {.bucket = bucket, .own = own};
    return bucket_upload_if(bucket->client, key, path, check_publication, &publication, error);
}

/* ---- retention */

/* Whether the local copy no longer has it, and no newer chief can have written it. */
static bool is_retired(const struct bucket *bucket, const char *key, const struct incarnation_record *own,
                       bool *ret_is_manifest)
{
    struct checkpoint_name name;
    const char *file;
    int64_t incarnation = incarnation_record_name_parse(key + strlen(bucket->prefix));
    *ret_is_manifest = false;
    if (incarnation >= 0) {
        SCOPED_FREE char *record = file_path_join(bucket->directory, key + strlen(bucket->prefix));
        return incarnation < own->incarnation && !file_exists(record);
    }
    if (!parse_key(bucket, key, &name, &file) || name.incarnation > own->incarnation)
        return false;
    SCOPED_FREE char *path = local_path(bucket, &name);
    *ret_is_manifest = strcmp(file, CHECKPOINT_MANIFEST) == 0;
    return !file_exists(path);
}

static int remove_retired(struct bucket *bucket, const struct s3_list *list, const struct incarnation_record *own,
                          bool manifests, struct error *error)
{
    for (size_t i = 0; i < list->count; i++) {
        bool is_manifest;
        if (is_retired(bucket, list->objects[i].key, own, &is_manifest) && is_manifest == manifests &&
            s3_delete(bucket->client, list->objects[i].key, error) < 0)
            return bucket_fail(error);
    }
    return 0;
}

static int remove_tensors(const void *context, const char *entry, struct error *error)
{
    SCOPED_FREE char *path = file_path_join(context, entry);
    return strcmp(entry, CHECKPOINT_MANIFEST) == 0 ? 0 : file_remove_directory(path, error);
}

int bucket_drop(const struct bucket *bucket, const struct checkpoint_name *name, struct error *error)
{
    SCOPED_FREE char *path = local_path(bucket, name);
    return file_each_entry(path, remove_tensors, path, error);
}

struct shrinking {
    const struct bucket *bucket;
    const struct checkpoint_name *newest;
};

static int shrink(const void *context, const char *entry, struct error *error)
{
    const struct shrinking *shrinking = context;
    struct checkpoint_name name;
    if (checkpoint_name_parse(entry, &name) < 0 || checkpoint_name_equal(&name, shrinking->newest))
        return 0;
    return bucket_drop(shrinking->bucket, &name, error);
}

/* The names of the files that the manifests of the local copy list, one after the other, each between two slashes. */
struct named_files {
    const char *directory;
    struct buffer *names;
};

static int add_names(const void *context, const char *entry, struct error *error)
{
    const struct named_files *named = context;
    struct checkpoint_name name;
    struct manifest manifest;
    if (checkpoint_name_parse(entry, &name) < 0)
        return 0;
    SCOPED_FREE char *path = file_path_join(named->directory, entry);
    if (checkpoint_image_manifest(path, &manifest, error) < 0)
        return -1;
    for (unsigned i = 0; i < manifest.file_count; i++)
        buffer_format(named->names, "/%s/", manifest.files[i].name);
    manifest_release(&manifest);
    return 0;
}

static int remove_shards(struct bucket *bucket, const struct s3_list *list, const struct checkpoint_name *newest,
                         const struct incarnation_record *own, struct error *error)
{
    SCOPED_BUFFER names;
    const struct named_files named = {bucket->directory, &names};
    buffer_init(&names, (size_t)OBJECTS_MAX * BUCKET_SHARD_NAME_MAX);
    if (file_each_entry(bucket->directory, add_names, &named, error) < 0)
        return -1;
    for (size_t i = 0; i < list->count; i++) {
        struct checkpoint_part_key key;
        uint32_t owner;
        const char *below = list->objects[i].key + strlen(bucket->prefix);
        if (!bucket_shard_object_parse(below, &key, &owner))
            continue;
        /* Shards of another job are older: if that job were the newer one, its claim would have ended this chief. */
        if (owner == bucket->owner &&
            (key.incarnation > own->fencing || (key.incarnation == own->fencing && key.step > newest->step)))
            continue;
        SCOPED_FREE char *wanted = memory_format("/%s/", below + strlen(BUCKET_SHARDS));
        if (!strstr(buffer_text(&names), wanted) && s3_delete(bucket->client, list->objects[i].key, error) < 0)
            return bucket_fail(error);
    }
    return 0;
}

int bucket_prune(struct bucket *bucket, const struct checkpoint_name *newest, const struct incarnation_record *own,
                 struct error *error)
{
    struct s3_list list;
    struct shrinking shrinking = {.bucket = bucket, .newest = newest};
    if (file_each_entry(bucket->directory, shrink, &shrinking, error) < 0 || list_objects(bucket, "", &list, error) < 0)
        return -1;
    int result = copy_newer(bucket, &list, own, error);
    if (result == 0)
        result = remove_retired(bucket, &list, own, true, error);
    if (result == 0)
        result = remove_retired(bucket, &list, own, false, error);
    if (result == 0)
        result = remove_shards(bucket, &list, newest, own, error);
    s3_list_release(&list);
    return result;
}
