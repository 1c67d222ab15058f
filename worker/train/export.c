/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/export.h"

#include <string.h>

#include "common/json.h"
#include "common/memory.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/train/state_tensors.h"

static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return memory_copy_string(".");
    return slash == path ? memory_copy_string("/") : memory_copy_bytes(path, (size_t)(slash - path));
}

static int write_draft(struct training_state *state, const char *draft, struct error *error)
{
    if (training_state_to_host(state, error) < 0)
        return -1;
    /* What loaders of the PyTorch world look for. */
    SCOPED_JSON *metadata = json_new_object();
    json_set_string(metadata, "format", "pt");
    struct state_tensors tensors;
    state_tensors_init(&tensors, state);
    uint32_t crc;
    int64_t bytes;
    int result = safetensors_write(draft, tensors.tensors, tensors.parameter_count, metadata, &crc, &bytes, error);
    state_tensors_release(&tensors);
    return result;
}

int export_parameters(struct training_state *state, const char *path, struct error *error)
{
    SCOPED_FREE char *directory = directory_of(path);
    SCOPED_FREE char *draft = memory_format("%s.draft", path);
    if (file_make_directories(directory, error) < 0 || write_draft(state, draft, error) < 0)
        return error_wrap(error, "export");
    if (file_calls.rename(draft, path) < 0)
        return error_set_errno(error, "export: cannot rename %s", draft);
    return file_sync_directory(directory, error);
}
