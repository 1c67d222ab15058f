/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/ps_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/checkpoint_layout.h"
#include "common/data/file_name.h"
#include "common/memory.h"
#include "worker/checkpoint/bucket_shards.h"
#include "worker/checkpoint/checkpoint_name.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/image.h"
#include "worker/checkpoint/pieces.h"
#include "worker/train/initial_weights.h"
#include "worker/train/restoring.h"

#define NAME_MAX_LENGTH 256

/* ---------------------------------------------------------------- starting */

static int load_file(const struct trainer *trainer, struct training_state *state, struct error *error)
{
    struct safetensors_file file;
    int result = safetensors_open(trainer->files.init_path, &file, error);
    if (result == 0) {
        result = initial_weights_load(state, graph_layout(trainer->graph), &file, error);
        safetensors_close(&file);
    }
    return result < 0 ? error_wrap(error, "init.path %s", trainer->files.init_path) : 0;
}

static int start_afresh(struct trainer *trainer, struct variables *variables, struct error *error)
{
    const struct parameter_layout *layout = graph_layout(trainer->graph);
    struct training_state state; /* of the whole model, for as long as it takes */
    const struct optimizer_spec none = {.type = OPTIMIZER_SGD};
    if (training_state_init(&state, trainer->device, layout, &none, trainer->job->training.seed, error) < 0)
        return -1;
    int result = 0;
    if (trainer->files.init_path)
        result = load_file(trainer, &state, error);
    else if (restoring_initialises(trainer))
        result = initial_weights_compute(&state, trainer->xla.program, error);
    const struct ticket_set nothing = {0};
    if (result == 0)
        variables_start(variables, state.host.parameters, &nothing, 0);
    training_state_release(&state);
    return result;
}

/* A tensor of the model under the name it has in a checkpoint; `slot` NULL: the parameter itself. */
static struct safetensors_tensor describe(const struct parameter_tensor *parameter, const char *slot,
                                          char name[NAME_MAX_LENGTH])
{
    snprintf(name, NAME_MAX_LENGTH, "%s%s%s", slot ? slot : "", slot ? "/" : "", parameter->name);
    struct safetensors_tensor tensor = {.name = name, .dtype = SAFETENSORS_F32, .rank = parameter->rank};
    memcpy(tensor.shape, parameter->shape, parameter->rank * sizeof parameter->shape[0]);
    return tensor;
}

static int read_array(const struct variables *variables, const struct checkpoint_image *image, const char *slot,
                      float *to, struct error *error)
{
    const struct placement *placement = variables->options.placement;
    for (unsigned i = 0; i < placement->piece_count; i++) {
        const struct placement_piece *piece = &placement->pieces[i];
        char name[NAME_MAX_LENGTH];
        if (piece->server != variables->options.server || (slot && piece->offset < placement->layout_statistics))
            continue;
        struct safetensors_tensor wanted = describe(piece->tensor, slot, name);
        if (checkpoint_read_rows(image, &wanted, piece->first_row, piece->rows, to + piece->local, error) < 0)
            return -1;
    }
    return 0;
}

static int read_image(const struct variables *variables, const struct checkpoint_image *image, struct error *error)
{
    if (read_array(variables, image, NULL, variables->parameters, error) < 0)
        return -1;
    for (unsigned i = 0; i < variables->slot_count; i++)
        if (read_array(variables, image, optimizer_slot_name(variables->options.optimizer, i), variables->slots[i],
                       error) < 0)
            return -1;
    return checkpoint_image_check(image, error);
}

static bool is_own(const struct trainer *trainer, const char *checkpoint)
{
    const char *own = trainer->files.checkpoint_directory, *slash = strrchr(checkpoint, '/');
    return own && slash && strlen(own) == (size_t)(slash - checkpoint) && strncmp(own, checkpoint, strlen(own)) == 0;
}

static int fail_misfit(const struct trainer *trainer, const char *checkpoint, int64_t step, struct error *error)
{
    bool own = is_own(trainer, checkpoint);
    error_wrap(error, "checkpoint of step %lld " CHECKPOINT_MISFIT " (%s)", (long long)step,
               own ? "use another checkpoint.path to start anew" : RESTORING_FORK_ADVICE);
    return own ? -1 : error_wrap(error, "init.path %s", checkpoint);
}

int ps_state_load(void *context, const char *checkpoint, struct variables *variables, struct error *error)
{
    struct trainer *trainer = context;
    if (checkpoint[0] == '\0')
        return start_afresh(trainer, variables, error);
    struct checkpoint_name name;
    struct checkpoint_image image;
    if (!checkpoint_image_is_at(checkpoint, &name))
        return error_set(error, ERROR_INVALID, "%s is not a checkpoint", checkpoint);
    struct bucket *bucket = is_own(trainer, checkpoint) ? trainer->files.bucket : NULL;
    if ((bucket && (bucket_refresh(bucket, false, error) < 0 || bucket_fetch(bucket, &name, error) < 0)) ||
        checkpoint_image_open(checkpoint, &name, &image, error) < 0)
        return error_wrap(error, "read %s", checkpoint);
    int result = read_image(variables, &image, error);
    checkpoint_image_release(&image);
    if (bucket)
        bucket_drop(bucket, &name, NULL); /* room for this server's shards */
    if (result < 0)
        return fail_misfit(trainer, checkpoint, name.step, error);
    report_say(trainer->report, "starts from the checkpoint of step %lld", (long long)name.step);
    return 0;
}

/* ---------------------------------------------------------------- a shard */

struct shard {
    struct safetensors_tensor *tensors;
    char (*names)[NAME_MAX_LENGTH];
    unsigned count;
};

static void add_piece(struct shard *shard, const struct placement_piece *piece, const char *slot, const float *array)
{
    char name[NAME_MAX_LENGTH];
    struct safetensors_tensor tensor = describe(piece->tensor, slot, name);
    char *own = shard->names[shard->count];
    if (placement_is_whole(piece))
        memcpy(own, name, sizeof name);
    else
        piece_name(name, piece->first_row, own);
    tensor.name = own;
    if (tensor.rank > 0)
        tensor.shape[0] = piece->rows;
    tensor.data = array + piece->local;
    tensor.bytes = (size_t)piece->elements * sizeof *array;
    shard->tensors[shard->count++] = tensor;
}

static void collect(struct shard *shard, const struct variables *copy)
{
    const struct placement *placement = copy->options.placement;
    unsigned arrays = 1 + copy->slot_count;
    shard->tensors = memory_allocate((size_t)placement->piece_count * arrays + 1, sizeof *shard->tensors);
    shard->names = memory_allocate((size_t)placement->piece_count * arrays + 1, sizeof *shard->names);
    for (unsigned array = 0; array < arrays; array++)
        for (unsigned i = 0; i < placement->piece_count; i++) {
            const struct placement_piece *piece = &placement->pieces[i];
            if (piece->server != copy->options.server || (array > 0 && piece->offset < placement->layout_statistics))
                continue;
            add_piece(shard, piece, array ? optimizer_slot_name(copy->options.optimizer, array - 1) : NULL,
                      array ? copy->slots[array - 1] : copy->parameters);
        }
}

static int write_shard(const char *directory, const char *name, const struct variables *copy, int64_t *ret_bytes,
                       uint32_t *ret_crc, struct error *error)
{
    struct shard shard = {0};
    SCOPED_FREE char *path = file_path_join(directory, name);
    collect(&shard, copy);
    int result = safetensors_write(path, shard.tensors, shard.count, NULL, DISK_FILE_CACHED, ret_crc, ret_bytes, error);
    free(shard.tensors);
    free(shard.names);
    return result < 0 ? -1 : disk_file_check(path, *ret_crc, *ret_bytes, error);
}

/* `directory` is a folder of the chief; this server writes its file to a local folder of the same name and uploads it from there. */
static int upload_shard(const struct trainer *trainer, const char *directory, const struct variables *copy,
                        char name[64], int64_t *ret_bytes, uint32_t *ret_crc, struct error *error)
{
    const char *folder = file_name_of(directory);
    struct checkpoint_part_key key = {.rank = (unsigned)copy->options.server};
    if (sscanf(folder, CHECKPOINT_SHARDS_FORMAT, &key.attempt, &key.incarnation, &key.counter) != 3)
        return error_set(error, ERROR_INVALID,
                         "internal error: the chief saves to %s, which is not a folder for a save to a bucket",
                         directory);
    SCOPED_FREE char *local = file_path_join(trainer->files.checkpoint_directory, folder);
    if (bucket_shard_name(trainer->files.bucket, &key, name, error) < 0 || file_make_directories(local, error) < 0)
        return -1;
    SCOPED_FREE char *path = file_path_join(local, name);
    int result = write_shard(local, name, copy, ret_bytes, ret_crc, error);
    if (result == 0)
        result = bucket_put_shard(trainer->files.bucket, path, name, error);
    file_remove_directory(local, NULL);
    return result;
}

int ps_state_store(void *context, const char *directory, const struct variables *copy, char ret_name[64],
                   int64_t *ret_bytes, uint32_t *ret_crc, struct error *error)
{
    const struct trainer *trainer = context;
    if (trainer->files.bucket)
        return upload_shard(trainer, directory, copy, ret_name, ret_bytes, ret_crc, error);
    snprintf(ret_name, 64, CHECKPOINT_SHARD_FORMAT, (int)copy->options.server);
    return write_shard(directory, ret_name, copy, ret_bytes, ret_crc, error);
}
