/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/train/tensor_names.h"

static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return memory_copy_string(".");
    return slash == path ? memory_copy_string("/") : memory_copy_bytes(path, (size_t)(slash - path));
}

/* The tensors of a file on their way: names, and copies of those that are turned. */
struct renamed {
    struct safetensors_tensor *tensors;
    char (*names)[FOREIGN_NAME_MAX];
    float **copies; /* NULL: as it is */
    unsigned count;
};

static void release(struct renamed *renamed)
{
    for (unsigned i = 0; i < renamed->count; i++)
        free(renamed->copies[i]);
    free(renamed->copies);
    free(renamed->names);
    free(renamed->tensors);
}

static void turn(struct safetensors_tensor *tensor, const float *from, float *to)
{
    int64_t rows = tensor->shape[0], columns = tensor->shape[1];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            to[c * rows + r] = from[r * columns + c];
    tensor->shape[0] = columns;
    tensor->shape[1] = rows;
    tensor->data = to;
}

static void rename_tensor(struct renamed *renamed, const struct export *export, unsigned i)
{
    const struct parameter_tensor *own = &export->layout->tensors[i];
    struct safetensors_tensor *tensor = &renamed->tensors[i];
    bool transposed = false;
    if (export->names == EXPORT_OWN_NAMES)
        snprintf(renamed->names[i], FOREIGN_NAME_MAX, "%s", own->name);
    else
        tensor_name_of_gpt2(own->name, renamed->names[i], &transposed);
    *tensor = (struct safetensors_tensor){.name = renamed->names[i], .dtype = SAFETENSORS_F32, .rank = own->rank};
    memcpy(tensor->shape, own->shape, own->rank * sizeof own->shape[0]);
    tensor->data = export->parameters + own->offset;
    tensor->bytes = (size_t)own->elements * sizeof(float);
    if (!transposed)
        return;
    renamed->copies[i] = memory_allocate((size_t)own->elements, sizeof(float));
    turn(tensor, export->parameters + own->offset, renamed->copies[i]);
}

static int write_draft(const struct export *export, const char *draft, struct exported *ret_exported,
                       struct error *error)
{
    unsigned count = export->layout->tensor_count;
    SCOPED(release)
    struct renamed renamed = {
        .tensors = memory_allocate(count, sizeof *renamed.tensors),
        .names = memory_allocate(count, sizeof *renamed.names),
        .copies = memory_allocate(count, sizeof *renamed.copies),
        .count = count,
    };
    for (unsigned i = 0; i < count; i++)
        rename_tensor(&renamed, export, i);
    SCOPED_JSON *metadata = export->metadata ? json_copy(export->metadata) : json_new_object();
    json_set_string(metadata, "format", "pt"); /* what loaders of the PyTorch world look for */
    return safetensors_write(draft, renamed.tensors, count, metadata, DISK_FILE_CACHED, &ret_exported->crc32c,
                             &ret_exported->bytes, error);
}

int export_check(const struct parameter_layout *layout, enum export_names names, struct error *error)
{
    char foreign[FOREIGN_NAME_MAX];
    bool transposed;
    for (unsigned i = 0; i < layout->tensor_count; i++)
        if (names == EXPORT_HUGGING_FACE_NAMES && !tensor_name_of_gpt2(layout->tensors[i].name, foreign, &transposed))
            return error_set(
                error, ERROR_INVALID,
                "export.names: Hugging Face's GPT-2 has no tensor for %s; leave it out, or take a gpt preset",
                layout->tensors[i].name);
    return 0;
}

static int check_current(const struct export *export, const char *path, struct error *error)
{
    return export->store ? checkpoint_store_check(export->store, error)
                         : export_claim_check(path, &export->claim, error);
}

int export_check_current(const void *context, struct error *error)
{
    const struct export_upload *upload = context;
    return check_current(upload->export, upload->path, error);
}

/* A chief that another has replaced begins nothing. */
static int begin(const struct export *export, const char *path, struct error *error)
{
    if (export->store == NULL && export_claim_take(path, &export->claim, error) < 0)
        return -1;
    return check_current(export, path, error);
}

/* A chief that stood still while it wrote may not be the chief any more. */
static int take_name(const struct export *export, const char *draft, const char *path, struct error *error)
{
    if (check_current(export, path, error) < 0)
        return -1;
    if (file_calls.rename(draft, path) < 0)
        return errno == ENOENT ? error_set(error, ERROR_STALE, "another process has begun to write %s", path)
                               : error_set_errno(error, "cannot rename %s", draft);
    return 0;
}

static int write_whole(const struct export *export, const char *directory, const char *path,
                       struct exported *ret_exported, struct error *error)
{
    SCOPED_FREE char *draft = NULL;
    const char *slash = strrchr(path, '/');
    file_remove_drafts(directory, slash ? slash + 1 : path);
    if (file_draft_name(path, &draft, error) < 0)
        return -1;
    if (write_draft(export, draft, ret_exported, error) == 0 && take_name(export, draft, path, error) == 0)
        return 0;
    file_calls.unlink(draft);
    return -1;
}

int export_write(const struct export *export, const char *path, struct exported *ret_exported, struct error *error)
{
    SCOPED_FREE char *directory = directory_of(path);
    struct exported exported;
    if (export_check(export->layout, export->names, error) < 0 || file_make_directories(directory, error) < 0 ||
        begin(export, path, error) < 0 || write_whole(export, directory, path, &exported, error) < 0)
        return error_wrap(error, "export");
    if (ret_exported)
        *ret_exported = exported;
    return file_sync_directory(directory, error);
}
