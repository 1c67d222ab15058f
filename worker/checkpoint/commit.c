/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/commit.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/contract/checkpoint_layout.h"
#include "common/memory.h"
#include "worker/checkpoint/file.h"

static int write_shard(const char *saving, struct manifest *manifest, const struct safetensors_tensor *tensors,
                       unsigned count, struct error *error)
{
    struct manifest_file *file = memory_allocate(1, sizeof *file);
    free(manifest->files);
    manifest->files = file;
    manifest->file_count = 1;
    snprintf(file->name, sizeof file->name, CHECKPOINT_SHARD_FORMAT, 0);
    SCOPED_FREE char *path = file_path_join(saving, file->name);
    return safetensors_write(path, tensors, count, NULL, DISK_FILE_PAST_CACHE, &file->crc32c, &file->bytes, error);
}

static int write_manifest(const char *saving, const struct manifest *manifest, struct error *error)
{
    SCOPED_FREE char *path = file_path_join(saving, CHECKPOINT_MANIFEST);
    SCOPED_BUFFER text = BUFFER_INIT(MANIFEST_BYTES_MAX);
    if (manifest_print(manifest, &text, error) < 0 || file_write(path, text.data, text.length, error) < 0)
        return -1;
    return file_sync_directory(saving, error);
}

static int fill_directory(const char *directory, const char *saving, struct manifest *manifest,
                          const struct safetensors_tensor *tensors, unsigned count,
                          const struct checkpoint_parts *parts, struct error *error)
{
    if (file_make_directories(saving, error) < 0 || write_shard(saving, manifest, tensors, count, error) < 0)
        return -1;
    if (parts && (parts->bucket ? checkpoint_parts_await_shards(parts->bucket, parts->key, parts->ranks,
                                                                &parts->patience, manifest, error)
                                : checkpoint_parts_collect(directory, saving, parts->key, parts->ranks,
                                                           &parts->patience, manifest, error)) < 0)
        return -1;
    return write_manifest(saving, manifest, error);
}

/* ---- a second save of the same step */

/* The errors of file systems that cannot exchange names: NFS, CIFS, CephFS, Lustre. */
static bool is_exchange_unsupported(int number)
{
    return number == EINVAL || number == ENOSYS || number == EOPNOTSUPP;
}

/* Between the two renames, the older checkpoint has the name `hidden`, which the next chief looks
 * for. */
static int replace_in_two_steps(const char *saving, const char *final, const char *hidden, struct error *error)
{
    if (file_remove_directory(hidden, error) < 0)
        return -1;
    if (file_calls.rename(final, hidden) < 0)
        return error_set_errno(error, "cannot rename %s to %s", final, hidden);
    if (file_calls.rename(saving, final) == 0)
        return 0;
    error_set_errno(error, "cannot rename %s to %s", saving, final);
    file_calls.rename(hidden, final);
    return -1;
}

/* Puts the new checkpoint in place of the older one; *ret_old is the older one's new path. */
static int swap_directories(const char *directory, const char *saving, const char *name, char **ret_old,
                            struct error *error)
{
    SCOPED_FREE char *final = file_path_join(directory, name);
    char *hidden = memory_format("%s/" CHECKPOINT_REPLACED_PREFIX "%s", directory, name);
    int result = file_calls.exchange(saving, final);
    if (result == 0) {
        *ret_old = memory_copy_string(saving);
    } else if (!is_exchange_unsupported(errno)) {
        error_set_errno(error, "cannot exchange the names of %s and %s", saving, final);
    } else {
        result = replace_in_two_steps(saving, final, hidden, error);
        if (result == 0)
            *ret_old = memory_copy_string(hidden);
    }
    free(hidden);
    return result;
}

/* Replaces a checkpoint and removes the older one. If only the removal fails, the save still
 * succeeds, since the new checkpoint is safe; the next chief removes the leftover. */
static int replace_checkpoint(const char *directory, const char *saving, const char *name, struct error *error)
{
    SCOPED_FREE char *old = NULL;
    if (swap_directories(directory, saving, name, &old, error) < 0) {
        file_remove_directory(saving, NULL);
        return -1;
    }
    if (file_sync_directory(directory, error) < 0) /* after a crash, the older one may have the name again */
        return -1;
    file_remove_directory(old, NULL);
    return 0;
}

/* Renames `saving` to its final name. Only this chief uses the name (attempt and incarnation), so a
 * checkpoint that has it is this chief's own earlier save of the step: it could not be read back,
 * or the crew had returned to an older step. */
static int publish_checkpoint(const char *directory, const char *saving, const char *name,
                              const struct incarnation_record *own, struct error *error)
{
    SCOPED_FREE char *final = file_path_join(directory, name);
    if (lineage_check_current(directory, own, error) < 0)
        return -1;
    if (file_calls.rename(saving, final) == 0)
        return file_sync_directory(directory, error);
    if (errno == ENOTEMPTY || errno == EEXIST)
        return replace_checkpoint(directory, saving, name, error);
    return error_set_errno(error, "cannot rename %s to %s", saving, final);
}

/* ---- a whole save */

int checkpoint_commit(const char *directory, const struct incarnation_record *own, struct manifest *manifest,
                      const struct safetensors_tensor *tensors, unsigned count, const struct checkpoint_parts *parts,
                      int64_t *ret_bytes, struct error *error)
{
    const struct checkpoint_name name = {
        .step = manifest->step, .attempt = own->attempt, .incarnation = own->incarnation};
    char text[CHECKPOINT_NAME_MAX];
    checkpoint_name_format(&name, text);
    SCOPED_FREE char *saving = memory_format("%s/" CHECKPOINT_SAVING_PREFIX "%s", directory, text);
    if (file_remove_directory(saving, error) < 0)
        return -1;
    if (fill_directory(directory, saving, manifest, tensors, count, parts, error) < 0 ||
        publish_checkpoint(directory, saving, text, own, error) < 0) {
        file_remove_directory(saving, NULL);
        return -1;
    }
    *ret_bytes = 0;
    for (unsigned i = 0; i < manifest->file_count; i++)
        *ret_bytes += manifest->files[i].bytes;
    return 0;
}

static int read_back(const char *directory, const struct manifest_file *file, struct error *error)
{
    SCOPED_FREE char *path = file_path_join(directory, file->name);
    uint32_t crc;
    int64_t bytes;
    if (disk_file_digest(path, &crc, &bytes, error) < 0)
        return -1;
    if (crc != file->crc32c || bytes != file->bytes)
        return error_set(error, ERROR_CORRUPT, "%s does not have the bytes that were written to it; check the storage",
                         path);
    return 0;
}

int checkpoint_read_back(const char *directory, const struct incarnation_record *own, const struct manifest *manifest,
                         bool *ret_moved_aside, struct error *error)
{
    const struct checkpoint_name name = {
        .step = manifest->step, .attempt = own->attempt, .incarnation = own->incarnation};
    char text[CHECKPOINT_NAME_MAX];
    checkpoint_name_format(&name, text);
    SCOPED_FREE char *final = file_path_join(directory, text);
    struct error cause = ERROR_INIT;
    if (read_back(final, &manifest->files[0], &cause) == 0)
        return 0;
    /* A checkpoint that cannot be read at the moment may be whole. If a newer chief has claimed the
     * directory, it verifies the checkpoint itself. */
    *ret_moved_aside = cause.kind == ERROR_CORRUPT && lineage_check_current(directory, own, NULL) == 0 &&
                       checkpoint_move_aside(directory, text) == 0;
    if (*ret_moved_aside)
        error_wrap(&cause, "%s is moved aside", text);
    if (error)
        *error = cause;
    return -1;
}

int checkpoint_move_aside(const char *directory, const char *name)
{
    SCOPED_FREE char *from = file_path_join(directory, name);
    SCOPED_FREE char *to = memory_format("%s/" CHECKPOINT_BAD_PREFIX "%s", directory, name);
    return file_calls.rename(from, to);
}

/* ---- a directory that other processes have filled */

int checkpoint_replace_directory(const char *directory, const char *saving, const struct incarnation_record *own,
                                 const struct manifest *manifest, struct error *error)
{
    const struct checkpoint_name name = {
        .step = manifest->step, .attempt = own->attempt, .incarnation = own->incarnation};
    char text[CHECKPOINT_NAME_MAX];
    checkpoint_name_format(&name, text);
    if (write_manifest(saving, manifest, error) < 0 || lineage_check_current(directory, own, error) < 0) {
        file_remove_directory(saving, NULL);
        return -1;
    }
    return replace_checkpoint(directory, saving, text, error);
}

int checkpoint_commit_directory(const char *directory, const char *saving, const struct incarnation_record *own,
                                const struct manifest *manifest, struct error *error)
{
    const struct checkpoint_name name = {
        .step = manifest->step, .attempt = own->attempt, .incarnation = own->incarnation};
    char text[CHECKPOINT_NAME_MAX];
    checkpoint_name_format(&name, text);
    if (write_manifest(saving, manifest, error) == 0 && publish_checkpoint(directory, saving, text, own, error) == 0)
        return 0;
    file_remove_directory(saving, NULL);
    return -1;
}

/* ---- leftovers of earlier chiefs */

/* Removes a replaced checkpoint if its replacement exists, else gives it its name back. */
static int settle_replaced(const char *directory, const char *path, const char *name, struct error *error)
{
    SCOPED_FREE char *final = file_path_join(directory, name);
    if (file_exists(final))
        return file_remove_directory(path, error);
    if (file_calls.rename(path, final) < 0)
        return error_set_errno(error, "cannot rename %s to %s", path, final);
    return file_sync_directory(directory, error);
}

static int remove_if_leftover(const void *context, const char *entry, struct error *error)
{
    const char *directory = context;
    SCOPED_FREE char *path = file_path_join(directory, entry);
    if (strncmp(entry, CHECKPOINT_SAVING_PREFIX, strlen(CHECKPOINT_SAVING_PREFIX)) == 0)
        return file_remove_directory(path, error);
    if (strncmp(entry, CHECKPOINT_REPLACED_PREFIX, strlen(CHECKPOINT_REPLACED_PREFIX)) == 0)
        return settle_replaced(directory, path, entry + strlen(CHECKPOINT_REPLACED_PREFIX), error);
    bool stray =
        strstr(entry, FILE_DRAFT_MARK) || strncmp(entry, CHECKPOINT_PART_PREFIX, strlen(CHECKPOINT_PART_PREFIX)) == 0;
    if (stray && file_calls.unlink(path) < 0 && errno != ENOENT)
        return error_set_errno(error, "cannot remove %s", path);
    return 0;
}

int checkpoint_remove_leftovers(const char *directory, struct error *error)
{
    return file_each_entry(directory, remove_if_leftover, directory, error);
}
