/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/data/file_bytes.h"
#include "common/data/file_name.h"
#include "common/data/json_lines.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/data/dataset_format.h"

struct bytes_dataset {
    struct dataset base;
    struct file_bytes file;
};

static void bytes_free(struct dataset *base)
{
    file_bytes_release(&((struct bytes_dataset *)base)->file);
}

static int check(const struct dataset_source *source, const struct file_bytes *file, struct error *error)
{
    const struct example_format *format = source->format;
    if (format->input_type != ELEMENT_INT32 || format->target_elements != format->input_elements ||
        dataset_vocabulary(format) < 256)
        return error_set(
            error, ERROR_INVALID,
            "data.format Bytes gives windows of bytes, for models that predict each next token and have a vocabulary "
            "of at least 256; this model does not (lenet and mlp take format IDX)");
    if (file->length <= (size_t)format->input_elements)
        return error_set(error, ERROR_INVALID, "%s.text holds %zu bytes; a context of %lld needs more",
                         dataset_section(source), file->length, (long long)format->input_elements);
    return 0;
}

/* Puts the texts of JSON Lines in the place of the file. */
static int take_texts(struct file_bytes *file, struct error *error)
{
    SCOPED_BUFFER texts = BUFFER_INIT(JSON_LINES_TEXTS_MAX);
    if (json_lines_texts(file->bytes, file->length, &texts, error) < 0 ||
        file_bytes_check(file, mapped_file_round(), error) < 0)
        return -1;
    file_bytes_release(file);
    file->length = texts.length;
    file->bytes = (const uint8_t *)buffer_take(&texts);
    file->how = "texts in memory";
    return 0;
}

static int fill(struct bytes_dataset *dataset, const struct dataset_source *source, struct error *error)
{
    SCOPED_FREE char *path = NULL;
    const char *text = source->files->text;
    if (!text)
        return error_set(error, ERROR_INVALID, "%s.text is missing; the format Bytes needs it",
                         dataset_section(source));
    if (dataset_path(source, text, &path, error) < 0 || file_bytes_open(path, &dataset->file, error) < 0)
        return -1;
    if ((json_lines_named(path) && take_texts(&dataset->file, error) < 0) || check(source, &dataset->file, error) < 0)
        return error_wrap(error, "%s", path);
    dataset->base.memory = file_bytes_in_memory(&dataset->file);
    dataset->base.count = ((int64_t)dataset->file.length - 1) / source->format->input_elements;
    snprintf(dataset->base.description, sizeof dataset->base.description, "windows of %lld bytes from %s (%s)",
             (long long)source->format->input_elements, file_name_of(text), dataset->file.how);
    return 0;
}

static int bytes_open(const struct dataset_source *source, struct dataset **ret_dataset, struct error *error)
{
    struct bytes_dataset *dataset = memory_allocate(1, sizeof *dataset);
    dataset->base.kind = &dataset_bytes;
    dataset->base.format = *source->format;
    if (fill(dataset, source, error) < 0) {
        dataset_free(&dataset->base);
        return -1;
    }
    *ret_dataset = &dataset->base;
    return 0;
}

static int bytes_read(const struct dataset *base, int64_t index, void *input, void *target, struct error *error)
{
    (void)error;
    const struct bytes_dataset *dataset = (const struct bytes_dataset *)base;
    int64_t context = base->format.input_elements;
    const uint8_t *window = dataset->file.bytes + index * context;
    int32_t *tokens = input, *next = target;
    for (int64_t i = 0; i < context; i++) {
        tokens[i] = window[i];
        next[i] = window[i + 1];
    }
    return 0;
}

static int bytes_check(const struct dataset *base, int64_t index, uint64_t round, struct error *error)
{
    (void)index;
    return file_bytes_check(&((const struct bytes_dataset *)base)->file, round, error);
}

const struct dataset_kind dataset_bytes = {
    .open = bytes_open, .free = bytes_free, .read = bytes_read, .check = bytes_check};
