/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/file_set.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/data/file_name.h"
#include "common/memory.h"
#include "common/scope.h"

static int compare_paths(const void *left, const void *right)
{
    return strcmp(((const struct file_set_entry *)left)->path, ((const struct file_set_entry *)right)->path);
}

static int add_path(struct file_set *set, char *path, struct error *error)
{
    if (set->count == FILE_SET_MAX) {
        free(path);
        return error_set(error, ERROR_TOO_LARGE, "more than %d files", FILE_SET_MAX);
    }
    if (set->count % 64 == 0)
        set->entries = memory_resize(set->entries, set->count + 64, sizeof *set->entries);
    set->entries[set->count++] = (struct file_set_entry){.path = path};
    return 0;
}

/* Escapes the shell's other wildcards, which may be part of names: only * is one here. */
static char *shell_pattern(const char *name)
{
    char *pattern = memory_allocate(2 * strlen(name) + 1, 1), *end = pattern;
    for (const char *at = name; *at; at++) {
        if (strchr("?[\\", *at))
            *end++ = '\\';
        *end++ = *at;
    }
    *end = '\0';
    return pattern;
}

static int list_directory(struct file_set *set, const char *directory, const char *pattern, struct error *error)
{
    SCOPED_FREE char *shell = shell_pattern(pattern);
    DIR *stream = opendir(directory);
    if (!stream)
        return error_set_errno(error, "cannot list %s", directory);
    int failed = 0;
    for (struct dirent *entry = readdir(stream); entry && !failed; entry = readdir(stream))
        if (fnmatch(shell, entry->d_name, FNM_PERIOD) == 0)
            failed = add_path(set, memory_format("%s/%s", directory, entry->d_name), error);
    closedir(stream);
    return failed;
}

static int find_paths(struct file_set *set, const char *path, struct error *error)
{
    const char *slash = strrchr(path, '/'), *star = strchr(path, '*');
    if (!star || access(path, F_OK) == 0) /* a file's own name comes first */
        return add_path(set, memory_copy_string(path), error);
    if (slash && star < slash)
        return error_set(error, ERROR_INVALID, "%s: \"*\" is allowed only in the last part of a path", path);
    SCOPED_FREE char *directory =
        slash ? memory_copy_bytes(path, slash == path ? 1 : (size_t)(slash - path)) : memory_copy_string(".");
    if (list_directory(set, directory, slash ? slash + 1 : path, error) < 0)
        return error_wrap(error, "%s", path);
    if (set->count == 0)
        return error_set(error, ERROR_NOT_FOUND, "no file matches %s", path);
    qsort(set->entries, set->count, sizeof *set->entries, compare_paths);
    return 0;
}

static int open_files(struct file_set *set, const char *path, struct error *error)
{
    if (find_paths(set, path, error) < 0)
        return -1;
    for (unsigned i = 0; i < set->count; i++)
        if (file_bytes_open(set->entries[i].path, &set->entries[i].file, error) < 0)
            return -1;
    return 0;
}

int file_set_open(const struct dataset_source *source, const char *pattern, struct file_set *ret_set,
                  struct error *error)
{
    SCOPED_FREE char *path = NULL;
    if (!pattern)
        return error_set(error, ERROR_INVALID, "%s: this format needs files", dataset_section(source));
    if (dataset_path(source, pattern, &path, error) < 0)
        return -1;
    struct file_set set = {0};
    if (open_files(&set, path, error) < 0) {
        file_set_release(&set);
        return -1;
    }
    *ret_set = set;
    return 0;
}

void file_set_release(struct file_set *set)
{
    for (unsigned i = 0; i < set->count; i++) {
        file_bytes_release(&set->entries[i].file);
        free(set->entries[i].path);
    }
    free(set->entries);
    *set = (struct file_set){0};
}

int64_t file_set_count(const struct file_set *set)
{
    return set->count > 0 ? set->entries[set->count - 1].end : 0;
}

const struct file_set_entry *file_set_find(const struct file_set *set, int64_t index, int64_t *ret_within)
{
    unsigned low = 0, high = set->count - 1;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (set->entries[middle].end > index)
            high = middle;
        else
            low = middle + 1;
    }
    *ret_within = index - (low > 0 ? set->entries[low - 1].end : 0);
    return &set->entries[low];
}

int file_set_check(const struct file_set *set, int64_t index, uint64_t round, struct error *error)
{
    int64_t within;
    return file_bytes_check(&file_set_find(set, index, &within)->file, round, error);
}

void file_set_describe(const struct file_set *set, const char *pattern, char *text, size_t size)
{
    const char *name = file_name_of(pattern);
    if (set->count == 1)
        snprintf(text, size, "%s (%s)", name, set->entries[0].file.how);
    else
        snprintf(text, size, "%s (%u files, %s)", name, set->count, set->entries[0].file.how);
}
