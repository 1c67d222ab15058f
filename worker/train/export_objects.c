/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/export_objects.h"

#include <stdlib.h>

#include "common/contract/environment.h"
#include "common/data/file_name.h"
#include "common/memory.h"
#include "worker/checkpoint/s3_settings.h"

struct export_objects {
    struct s3_client *client;
    char *settings, *path, *key;
    struct bucket *claims; /* NULL: not opened yet */
};

int export_objects_open(const char *settings, const char *path, struct export_objects **ret_objects,
                        struct error *error)
{
    struct s3_client *client;
    char *key;
    if (s3_settings_open(ENV_EXPORT_S3, settings, 0, &client, &key, error) < 0)
        return -1;
    struct export_objects *objects = memory_allocate(1, sizeof *objects);
    objects->client = client;
    objects->settings = memory_copy_string(settings);
    objects->path = memory_copy_string(path);
    objects->key = key;
    *ret_objects = objects;
    return 0;
}

void export_objects_free(struct export_objects *objects)
{
    if (objects == NULL)
        return;
    if (objects->claims)
        bucket_free(objects->claims);
    s3_client_free(objects->client);
    free(objects->settings);
    free(objects->path);
    free(objects->key);
    free(objects);
}

/* Returns `text` with another last component. */
static char *beside(const char *text, const char *name)
{
    return memory_format("%.*s%s", (int)(file_name_of(text) - text), text, name);
}

int export_objects_put_beside(struct export_objects *objects, const char *name, struct error *error)
{
    SCOPED_FREE char *key = beside(objects->key, name), *path = beside(objects->path, name);
    if (s3_upload(objects->client, key, path, S3_SETTINGS_CONNECTIONS, error) < 0) {
        bucket_fail(error);
        return error_wrap(error, "export");
    }
    return 0;
}

int export_objects_look(struct export_objects *objects, int64_t *ret_bytes, uint32_t *ret_crc32c)
{
    struct s3_head head;
    if (s3_head(objects->client, objects->key, &head, NULL) < 0 || !head.has_crc)
        return -1;
    *ret_bytes = head.size;
    *ret_crc32c = head.crc;
    return 0;
}

int export_objects_put(struct export_objects *objects, s3_upload_check *check, const void *context, int64_t bytes,
                       uint32_t crc32c, struct error *error)
{
    struct s3_head head;
    if (bucket_upload_if(objects->client, objects->key, objects->path, check, context, error) < 0)
        return error_wrap(error, "export");
    if (s3_head(objects->client, objects->key, &head, error) < 0) {
        bucket_fail(error);
        return error_wrap(error, "export");
    }
    /* Of two chiefs the later one succeeds: an object with another checksum is that of a newer chief, which the check then finds. */
    if (head.size == bytes && head.has_crc && head.crc == crc32c)
        return 0;
    if (check(context, error) < 0)
        return error_wrap(error, "export");
    return error_set(
        error, ERROR_CORRUPT,
        "export: the object %s does not have the bytes that were uploaded; see what else writes to it, and run "
        "the job again with another export.path",
        objects->key);
}

int export_objects_claims(struct export_objects *objects, const char *directory, struct bucket **ret_bucket,
                          struct error *error)
{
    SCOPED_FREE char *prefix = beside(objects->key, file_name_of(directory));
    if (!objects->claims &&
        bucket_open_at(ENV_EXPORT_S3, objects->settings, prefix, directory, &objects->claims, error) < 0)
        return -1;
    *ret_bucket = objects->claims;
    return 0;
}
