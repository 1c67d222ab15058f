/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/memory.h"
#include "worker/data/file_set.h"
#include "worker/data/token_file.h"

struct tokens_dataset {
    struct dataset base;
    struct file_set set;
    struct token_file *files; /* one an entry of the set */
};

static void tokens_free(struct dataset *base)
{
    struct tokens_dataset *dataset = (struct tokens_dataset *)base;
    file_set_release(&dataset->set);
    free(dataset->files);
}

/* A window needs one token more than it has positions: the last target. */
static int count_windows(struct tokens_dataset *dataset, const struct dataset_source *source, struct error *error)
{
    int64_t context = source->format->input_elements;
    int64_t total = 0;
    dataset->files = memory_allocate(dataset->set.count, sizeof *dataset->files);
    for (unsigned i = 0; i < dataset->set.count; i++) {
        struct file_set_entry *entry = &dataset->set.entries[i];
        if (token_file_parse(entry->file.bytes, entry->file.length, &dataset->files[i], error) < 0)
            return error_wrap(error, "%s", entry->path);
        if (dataset->files[i].count > 0)
            total += (dataset->files[i].count - 1) / context;
        entry->end = total;
    }
    if (total == 0)
        return error_set(error, ERROR_INVALID,
                         "%s.files: every file is too short: an example takes %lld tokens (the model's context and "
                         "the token after it); take longer files or a shorter context",
                         dataset_section(source), (long long)context + 1);
    return 0;
}

static int fill(struct tokens_dataset *dataset, const struct dataset_source *source, struct error *error)
{
    const struct example_format *format = source->format;
    if (format->input_type != ELEMENT_INT32 || format->target_elements != format->input_elements)
        return error_set(error, ERROR_INVALID,
                         "data.format Tokens gives windows of tokens, but the model takes other examples");
    if (file_set_open(source, source->files->files, &dataset->set, error) < 0 ||
        count_windows(dataset, source, error) < 0)
        return -1;
    char files[160];
    file_set_describe(&dataset->set, source->files->files, files, sizeof files);
    dataset->base.count = file_set_count(&dataset->set);
    snprintf(dataset->base.description, sizeof dataset->base.description, "windows of %lld tokens from %s",
             (long long)format->input_elements, files);
    return 0;
}

static int tokens_open(const struct dataset_source *source, struct dataset **ret_dataset, struct error *error)
{
    struct tokens_dataset *dataset = memory_allocate(1, sizeof *dataset);
    dataset->base.kind = &dataset_tokens;
    dataset->base.format = *source->format;
    if (fill(dataset, source, error) < 0) {
        dataset_free(&dataset->base);
        return -1;
    }
    *ret_dataset = &dataset->base;
    return 0;
}

static int tokens_read(const struct dataset *base, int64_t index, void *input, void *target, struct error *error)
{
    const struct tokens_dataset *dataset = (const struct tokens_dataset *)base;
    int64_t within, context = base->format.input_elements, vocabulary = dataset_vocabulary(&base->format);
    const struct file_set_entry *entry = file_set_find(&dataset->set, index, &within);
    const struct token_file *file = &dataset->files[entry - dataset->set.entries];
    int32_t *tokens = input, *next = target;
    for (int64_t i = 0; i <= context; i++) {
        int64_t token = token_file_at(file, within * context + i);
        if (token >= vocabulary)
            return error_set(error, ERROR_INVALID, "%s: token %lld is %lld, but the model's vocabulary has %lld; %s",
                             entry->path, (long long)(within * context + i), (long long)token, (long long)vocabulary,
                             base->format.input_count > 0 ? "export the program with a larger one"
                                                          : "set model.vocabulary");
        if (i < context)
            tokens[i] = (int32_t)token;
        if (i > 0)
            next[i - 1] = (int32_t)token;
    }
    return 0;
}

static int tokens_check(const struct dataset *base, int64_t index, uint64_t round, struct error *error)
{
    return file_set_check(&((const struct tokens_dataset *)base)->set, index, round, error);
}

const struct dataset_kind dataset_tokens = {
    .open = tokens_open, .free = tokens_free, .read = tokens_read, .check = tokens_check};
