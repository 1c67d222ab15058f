/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/image.h"

#include <stdlib.h>
#include <string.h>

#include "common/contract/checkpoint_layout.h"
#include "common/memory.h"
#include "common/regular_file.h"
#include "common/scope.h"
#include "worker/checkpoint/file.h"

int checkpoint_image_manifest(const char *directory, struct manifest *ret_manifest, struct error *error)
{
    SCOPED_FREE char *path = file_path_join(directory, CHECKPOINT_MANIFEST);
    SCOPED_BUFFER text = BUFFER_INIT(MANIFEST_BYTES_MAX);
    if (file_read(path, &text, error) < 0)
        return -1;
    return manifest_parse(buffer_text(&text), text.length, ret_manifest, error);
}

static int file_size(const char *path, int64_t *ret_size, struct error *error)
{
    SCOPED_CLOSE int descriptor = -1;
    off_t size;
    if (file_open(path, &descriptor, error) < 0 || regular_file_check(descriptor, path, &size, error) < 0)
        return -1;
    *ret_size = size;
    return 0;
}

static int verify_file(const char *directory, const struct manifest_file *file, bool digests, struct error *error)
{
    SCOPED_FREE char *path = file_path_join(directory, file->name);
    uint32_t crc = file->crc32c;
    int64_t bytes;
    if ((digests ? file_digest(path, &crc, &bytes, error) : file_size(path, &bytes, error)) < 0)
        return -1;
    if (bytes != file->bytes)
        return error_set(error, ERROR_CORRUPT, "%s has %lld bytes instead of %lld", file->name, (long long)bytes,
                         (long long)file->bytes);
    if (crc != file->crc32c)
        return error_set(error, ERROR_CORRUPT, "%s: digest %08x instead of %08x", file->name, crc, file->crc32c);
    return 0;
}

static int verify(const char *directory, const struct checkpoint_name *name, bool digests,
                  struct manifest *ret_manifest, struct error *error)
{
    struct manifest manifest;
    if (checkpoint_image_manifest(directory, &manifest, error) < 0)
        return -1;
    int result = 0;
    if (manifest.step != name->step || manifest.attempt != name->attempt || manifest.incarnation != name->incarnation)
        result = error_set(error, ERROR_CORRUPT, "the manifest belongs to another checkpoint, of step %lld",
                           (long long)manifest.step);
    for (unsigned i = 0; result == 0 && i < manifest.file_count; i++)
        result = verify_file(directory, &manifest.files[i], digests, error);
    if (result < 0)
        manifest_release(&manifest);
    else
        *ret_manifest = manifest;
    return result;
}

int checkpoint_image_verify(const char *directory, const struct checkpoint_name *name, struct manifest *ret_manifest,
                            struct error *error)
{
    return verify(directory, name, true, ret_manifest, error);
}

static int open_image(const char *directory, const struct checkpoint_name *name, bool digests,
                      struct checkpoint_image *ret_image, struct error *error)
{
    struct checkpoint_image image = {.name = *name};
    if (verify(directory, name, digests, &image.manifest, error) < 0)
        return -1;
    image.files = memory_allocate(image.manifest.file_count, sizeof *image.files);
    for (unsigned i = 0; i < image.manifest.file_count; i++) {
        SCOPED_FREE char *path = file_path_join(directory, image.manifest.files[i].name);
        if (safetensors_open_kept(path, &image.files[i], error) < 0) {
            checkpoint_image_release(&image);
            return -1;
        }
        image.file_count++;
    }
    *ret_image = image;
    return 0;
}

int checkpoint_image_open(const char *directory, const struct checkpoint_name *name, struct checkpoint_image *ret_image,
                          struct error *error)
{
    return open_image(directory, name, true, ret_image, error);
}

int checkpoint_image_open_headers(const char *directory, const struct checkpoint_name *name,
                                  struct checkpoint_image *ret_image, struct error *error)
{
    return open_image(directory, name, false, ret_image, error);
}

bool checkpoint_image_is_at(const char *directory, struct checkpoint_name *ret_name)
{
    size_t length = strlen(directory);
    while (length > 1 && directory[length - 1] == '/')
        length--;
    SCOPED_FREE char *path = memory_copy_bytes(directory, length);
    const char *slash = strrchr(path, '/');
    return checkpoint_name_parse(slash ? slash + 1 : path, ret_name) == 0;
}

int checkpoint_newest_manifest(const char *directory, struct manifest *ret_manifest, struct error *error)
{
    struct lineage lineage;
    if (lineage_read(directory, &lineage, error) < 0)
        return -1;
    int result = -1;
    for (unsigned i = 0; i < lineage.candidate_count && result < 0; i++) {
        char name[CHECKPOINT_NAME_MAX];
        checkpoint_name_format(&lineage.candidates[i], name);
        SCOPED_FREE char *path = file_path_join(directory, name);
        result = checkpoint_image_manifest(path, ret_manifest, NULL);
    }
    lineage_release(&lineage);
    return result < 0 ? error_set(error, ERROR_NOT_FOUND, "no checkpoint in %s", directory) : 0;
}

int checkpoint_image_check(const struct checkpoint_image *image, struct error *error)
{
    for (unsigned i = 0; i < image->file_count; i++)
        if (safetensors_check(&image->files[i], error) < 0)
            return -1;
    return 0;
}

void checkpoint_image_release(struct checkpoint_image *image)
{
    for (unsigned i = 0; i < image->file_count; i++)
        safetensors_close(&image->files[i]);
    free(image->files);
    manifest_release(&image->manifest);
    *image = (struct checkpoint_image){0};
}

const struct safetensors_tensor *checkpoint_image_find(const struct checkpoint_image *image, const char *tensor)
{
    for (unsigned i = 0; i < image->file_count; i++) {
        const struct safetensors_tensor *found = safetensors_find(&image->files[i], tensor);
        if (found)
            return found;
    }
    return NULL;
}
