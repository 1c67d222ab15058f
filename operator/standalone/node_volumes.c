/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_volumes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/contract/state_directory.h"
#include "common/directory.h"
#include "common/memory.h"

void volume_mounts_add(struct volume_mounts *mounts, const char *source, const char *path, bool read_only)
{
    mounts->points = memory_resize(mounts->points, mounts->count + 1, sizeof *mounts->points);
    mounts->points[mounts->count++] =
        (struct mount_point){memory_copy_string(source), memory_copy_string(path), read_only};
}

void volume_mounts_release(struct volume_mounts *mounts)
{
    for (size_t i = 0; i < mounts->count; i++) {
        free((char *)mounts->points[i].source);
        free((char *)mounts->points[i].path);
    }
    free(mounts->points);
    *mounts = (struct volume_mounts){.count = 0};
}

/* ---------------------------------------------------------------- volumes with files of our making */

static bool holds(const char *path, const char *bytes, size_t length)
{
    SCOPED_BUFFER text = BUFFER_INIT(length + 1);
    return buffer_read_file(&text, path, NULL) == 0 && text.length == length &&
           memcmp(buffer_text(&text), bytes, length) == 0;
}

/* Pods run as the user of this process, so its own bits of defaultMode or an item's mode are enough: readable always, executable and
 * without the right to write where the mode says so. */
static mode_t file_mode(const struct json *volume, const struct json *item)
{
    int64_t mode = json_integer_at(item, "mode", json_integer_at(volume, "defaultMode", 0600));
    return ((mode_t)mode & 0700) | 0400;
}

/* Readers see the old file or the new one, whole. Keys are checked by the API ("[-._a-zA-Z0-9]+"); paths of items may have
 * directories. */
static int write_item(const char *directory, const char *path, const char *bytes, size_t length, mode_t mode,
                      struct error *error)
{
    if (*path == '/' || *path == '\0' || strstr(path, ".."))
        return error_set(error, ERROR_INVALID, "volume item \"%s\": write a relative path without \"..\"", path);
    SCOPED_FREE char *whole = memory_format("%s/%s", directory, path);
    SCOPED_FREE char *parent = memory_copy_bytes(whole, (size_t)(strrchr(whole, '/') - whole));
    if (directory_make(parent, error) < 0)
        return -1;
    if (holds(whole, bytes, length))
        return 0;
    SCOPED_FREE char *fresh = memory_format("%s/..new", parent);
    (void)unlink(fresh);
    SCOPED_CLOSE int file = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0 || write(file, bytes, length) != (ssize_t)length || fchmod(file, mode) < 0 || rename(fresh, whole) < 0)
        return error_set_errno(error, "write %s", whole);
    return 0;
}

static int write_key(const char *directory, const struct json *object, const char *key, const char *path, mode_t mode,
                     struct error *error)
{
    size_t length;
    SCOPED_FREE char *value = config_value(object, key, &length);
    if (!value)
        return error_set(error, ERROR_NOT_FOUND, "no key \"%s\" in %s \"%s\"", key,
                         json_string_at(object, "kind", "the object"), json_string_at(object, "metadata.name", ""));
    return write_item(directory, path, value, length, mode, error);
}

static int write_all_keys(const char *directory, const struct json *object, const char *member, mode_t mode,
                          struct error *error)
{
    for (const struct json *item = json_first(json_member(object, member)); item; item = json_next(item)) {
        if (write_key(directory, object, json_key(item), json_key(item), mode, error) < 0)
            return -1;
    }
    return 0;
}

static int write_config(const struct volume_source *source, const char *directory, const struct json *volume,
                        const char *plural, const char *name, struct error *error)
{
    const struct environment_source *from = source->configuration;
    SCOPED_JSON *object = from->lookup(from->context, plural, name);
    if (!object && json_boolean_at(volume, "optional", false))
        return 0;
    if (!object)
        return error_set(error, ERROR_NOT_FOUND, "%s \"%s\" not found", plural, name);
    const struct json *items = json_member(volume, "items");
    if (!items)
        return write_all_keys(directory, object, "data", file_mode(volume, NULL), error) < 0
                   ? -1
                   : write_all_keys(directory, object, "binaryData", file_mode(volume, NULL), error);
    for (const struct json *item = json_first(items); item; item = json_next(item)) {
        const char *key = json_string_at(item, "key", "");
        if (write_key(directory, object, key, json_string_at(item, "path", key), file_mode(volume, item), error) < 0)
            return -1;
    }
    return 0;
}

static int write_config_map(const struct volume_source *source, const char *directory, const struct json *volume,
                            struct error *error)
{
    return write_config(source, directory, volume, "configmaps", json_string_at(volume, "name", ""), error);
}

static int write_secret(const struct volume_source *source, const char *directory, const struct json *volume,
                        struct error *error)
{
    const char *name = json_string_at(volume, "secretName", json_string_at(volume, "name", ""));
    return write_config(source, directory, volume, "secrets", name, error);
}

static int write_downward(const struct volume_source *source, const char *directory, const struct json *volume,
                          struct error *error)
{
    for (const struct json *item = json_first(json_member(volume, "items")); item; item = json_next(item)) {
        const char *field = json_string_at(item, "fieldRef.fieldPath", "");
        SCOPED_FREE char *value = pod_field(source->configuration->pod, field);
        if (!value)
            return error_set(error, ERROR_UNSUPPORTED,
                             "the embedded control plane does not support the downwardAPI field \"%s\"", field);
        if (write_item(directory, json_string_at(item, "path", ""), value, strlen(value), file_mode(volume, item),
                       error) < 0)
            return -1;
    }
    return 0;
}

static int write_projected(const struct volume_source *source, const char *directory, const struct json *volume,
                           struct error *error);

static int write_nothing(const struct volume_source *source, const char *directory, const struct json *volume,
                         struct error *error)
{
    (void)source, (void)directory, (void)volume, (void)error;
    return 0;
}

/* Volumes below the pod's directory. */
static const struct {
    const char *kind;
    int (*write)(const struct volume_source *, const char *directory, const struct json *volume, struct error *);
} own_volumes[] = {
    {"emptyDir", write_nothing},     {"configMap", write_config_map}, {"secret", write_secret},
    {"downwardAPI", write_downward}, {"projected", write_projected},
};
#define OWN_VOLUMES (sizeof own_volumes / sizeof *own_volumes)

static int write_projected(const struct volume_source *source, const char *directory, const struct json *volume,
                           struct error *error)
{
    for (const struct json *part = json_first(json_member(volume, "sources")); part; part = json_next(part)) {
        bool known = false;
        for (size_t i = 1; i < OWN_VOLUMES - 1; i++) {
            const struct json *inner = json_member(part, own_volumes[i].kind);
            known |= inner != NULL;
            if (inner && own_volumes[i].write(source, directory, inner, error) < 0)
                return -1;
        }
        if (!known)
            return error_set(error, ERROR_UNSUPPORTED,
                             "the embedded control plane does not support the projected source \"%s\"",
                             json_first(part) ? json_key(json_first(part)) : "");
    }
    return 0;
}

/* ---------------------------------------------------------------- volumes that are there already */

static int claim_directory(const struct volume_source *source, const char *claim, char **ret_directory,
                           struct error *error)
{
    const struct node_options *options = source->options;
    for (unsigned i = 0; i < options->volume_count; i++) {
        if (strcmp(options->volumes[i].claim, claim) == 0) {
            *ret_directory = realpath(options->volumes[i].directory, NULL);
            return *ret_directory ? 0
                                  : error_set_errno(error, "volume \"%s\" is %s", claim, options->volumes[i].directory);
        }
    }
    char *directory = memory_format("%s/" STATE_VOLUMES "/%s/%s", options->state_directory,
                                    json_string_at(source->configuration->pod, "metadata.namespace", "default"), claim);
    if (directory_make(directory, error) < 0) {
        free(directory);
        return -1;
    }
    *ret_directory = directory;
    return 0;
}

static int host_path(const struct json *volume, char **ret_path, struct error *error)
{
    const char *path = json_string_at(volume, "path", ""), *type = json_string_at(volume, "type", "");
    if (strcmp(type, "DirectoryOrCreate") == 0 && directory_make(path, error) < 0)
        return -1;
    if (strcmp(type, "FileOrCreate") == 0) {
        SCOPED_CLOSE int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        if (file < 0)
            return error_set_errno(error, "make the file %s", path);
    }
    if (access(path, F_OK) < 0)
        return error_set_errno(error, "hostPath %s", path);
    *ret_path = memory_copy_string(path);
    return 0;
}

static int own_volume(const struct volume_source *source, const struct json *volume, char **ret_path,
                      struct error *error)
{
    const char *name = json_string_at(volume, "name", "");
    SCOPED_FREE char *directory = memory_format("%s/volumes/%s", source->pod_directory, name);
    for (size_t i = 0; i < OWN_VOLUMES; i++) {
        const struct json *body = json_member(volume, own_volumes[i].kind);
        if (!body)
            continue;
        if (directory_make(directory, error) < 0)
            return -1;
        if (own_volumes[i].write != write_nothing && chmod(directory, 0700) < 0)
            return error_set_errno(error, "volume \"%s\": chmod %s", name, directory);
        if (own_volumes[i].write(source, directory, body, error) < 0)
            return error_wrap(error, "volume \"%s\"", name);
        *ret_path = memory_copy_string(directory);
        return 0;
    }
    const struct json *kind = json_first(volume);
    while (kind && strcmp(json_key(kind), "name") == 0)
        kind = json_next(kind);
    return error_set(error, ERROR_UNSUPPORTED,
                     "volume \"%s\": the embedded control plane does not support %s; take hostPath, "
                     "persistentVolumeClaim, emptyDir, configMap, secret, downwardAPI or projected",
                     name, kind ? json_key(kind) : "a volume without a source");
}

void volumes_refresh(const struct volume_source *source)
{
    const struct json *volumes = json_at(source->configuration->pod, "spec.volumes");
    for (const struct json *volume = json_first(volumes); volume; volume = json_next(volume)) {
        SCOPED_FREE char *made =
            memory_format("%s/volumes/%s", source->pod_directory, json_string_at(volume, "name", ""));
        SCOPED_FREE char *path = NULL;
        if (access(made, F_OK) == 0)
            (void)own_volume(source, volume, &path, NULL);
    }
}

static int volume_path(const struct volume_source *source, const struct json *volume, char **ret_path,
                       bool *ret_read_only, struct error *error)
{
    const struct json *claim = json_member(volume, "persistentVolumeClaim");
    const struct json *host = json_member(volume, "hostPath");
    *ret_read_only = json_boolean_at(claim, "readOnly", false) || json_member(volume, "configMap") ||
                     json_member(volume, "secret") || json_member(volume, "projected") ||
                     json_member(volume, "downwardAPI");
    if (claim)
        return claim_directory(source, json_string_at(claim, "claimName", ""), ret_path, error);
    return host ? host_path(host, ret_path, error) : own_volume(source, volume, ret_path, error);
}

static const struct json *named(const struct json *list, const char *name)
{
    for (const struct json *item = json_first(list); item; item = json_next(item)) {
        if (strcmp(json_string_at(item, "name", ""), name) == 0)
            return item;
    }
    return NULL;
}

static int mount_resolve(const struct volume_source *source, const struct json *mount, struct volume_mounts *mounts,
                         struct error *error)
{
    const char *name = json_string_at(mount, "name", ""), *below = json_string_at(mount, "subPath", "");
    const struct json *volume = named(json_at(source->configuration->pod, "spec.volumes"), name);
    bool read_only = false;
    SCOPED_FREE char *path = NULL;
    if (!volume)
        return error_set(error, ERROR_INVALID, "volumeMount \"%s\": the pod has no such volume", name);
    if (volume_path(source, volume, &path, &read_only, error) < 0)
        return -1;
    SCOPED_FREE char *whole = memory_format("%s%s%s", path, *below ? "/" : "", below);
    if (strstr(below, ".."))
        return error_set(error, ERROR_INVALID, "subPath \"%s\": write it without \"..\"", below);
    if (*below && access(whole, F_OK) < 0 && directory_make(whole, error) < 0)
        return -1;
    volume_mounts_add(mounts, whole, json_string_at(mount, "mountPath", ""),
                      read_only || json_boolean_at(mount, "readOnly", false));
    return 0;
}

int volume_mounts_resolve(const struct volume_source *source, const struct json *container,
                          struct volume_mounts *ret_mounts, struct error *error)
{
    struct volume_mounts mounts = {.count = 0};
    for (const struct json *item = json_first(json_member(container, "volumeMounts")); item; item = json_next(item)) {
        if (mount_resolve(source, item, &mounts, error) < 0) {
            volume_mounts_release(&mounts);
            return -1;
        }
    }
    *ret_mounts = mounts;
    return 0;
}
