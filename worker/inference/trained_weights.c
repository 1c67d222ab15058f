/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/inference/trained_weights.h"

#include <sys/stat.h>

#include "common/scope.h"
#include "worker/checkpoint/checkpoint_name.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/image.h"
#include "worker/checkpoint/lineage.h"
#include "worker/data/finite_values.h"
#include "worker/train/initial_weights.h"
#include "worker/train/state_tensors.h"

static int load_file(struct training_state *state, const char *path, struct trained_on *ret_trained_on,
                     struct buffer *told, struct error *error)
{
    struct safetensors_file file;
    if (safetensors_open(path, &file, error) < 0)
        return -1;
    int result = initial_weights_load(state, &state->layout, &file, error);
    if (result == 0)
        trained_on_read(ret_trained_on, safetensors_all_metadata(&file));
    safetensors_close(&file);
    buffer_format(told, "the file %s", path);
    return result < 0 ? error_wrap(error, "%s", path) : 0;
}

static int take_image(struct training_state *state, const struct checkpoint_image *image, struct error *error)
{
    if (state_tensors_restore(state, image, error) < 0)
        return error_wrap(error, "does not fit the job's model");
    return finite_values_check(state->host.parameters, 0, state->layout.elements, error);
}

static int load_checkpoint(struct training_state *state, const char *path, const struct checkpoint_name *name,
                           struct trained_on *ret_trained_on, struct buffer *told, struct error *error)
{
    struct checkpoint_image image;
    if (checkpoint_image_open(path, name, &image, error) < 0)
        return error_wrap(error, "checkpoint %s", path);
    int result = take_image(state, &image, error);
    if (result == 0)
        trained_on_read(ret_trained_on, image.manifest.model);
    checkpoint_image_release(&image);
    if (result < 0)
        return error_wrap(error, "checkpoint %s", path);
    buffer_format(told, "the checkpoint of step %lld in %s", (long long)name->step, path);
    return 0;
}

/* Loads the newest checkpoint that is whole. If it is not the newest of all, appends what is wrong with that one; if none is whole, that
 * is the error. */
static int load_newest(struct training_state *state, const char *directory, struct trained_on *ret_trained_on,
                       struct buffer *told, struct error *error)
{
    struct lineage lineage;
    struct error newest = ERROR_INIT;
    if (lineage_read(directory, &lineage, error) < 0)
        return -1;
    int result = error_set(&newest, ERROR_NOT_FOUND, "%s holds no checkpoint; has the job saved one there?", directory);
    for (unsigned i = 0; i < lineage.candidate_count && result < 0; i++) {
        char name[CHECKPOINT_NAME_MAX];
        struct error cause = ERROR_INIT;
        checkpoint_name_format(&lineage.candidates[i], name);
        SCOPED_FREE char *path = file_path_join(directory, name);
        result = load_checkpoint(state, path, &lineage.candidates[i], ret_trained_on, told, &cause);
        if (result == 0 && i > 0)
            buffer_format(told, ", since of the newest: %s", newest.message);
        if (i == 0)
            newest = cause;
    }
    lineage_release(&lineage);
    return result < 0 ? error_set(error, newest.kind, "%s", newest.message) : 0;
}

int trained_weights_load(struct training_state *state, const char *path, struct trained_on *ret_trained_on,
                         struct buffer *told, struct error *error)
{
    struct stat status;
    struct checkpoint_name name;
    if (stat(path, &status) < 0)
        return error_set_errno(error, "weights %s", path);
    if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))
        return error_set(error, ERROR_INVALID, "weights %s: is neither a file nor a directory", path);
    if (S_ISREG(status.st_mode))
        return load_file(state, path, ret_trained_on, told, error);
    return checkpoint_image_is_at(path, &name) ? load_checkpoint(state, path, &name, ret_trained_on, told, error)
                                               : load_newest(state, path, ret_trained_on, told, error);
}
