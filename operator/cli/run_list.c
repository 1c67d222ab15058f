/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/run_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/contract/state_directory.h"
#include "common/memory.h"
#include "common/nearest_word.h"
#include "operator/cli/paths.h"
#include "operator/kube/hash_map.h"

#define NESTING_MAX 2 /* cox demo keeps its runs one level below the others */

char *run_list_folder(void)
{
    return path_user_directory("XDG_STATE_HOME", ".local/state");
}

char *run_list_directory_of(const struct manifest *manifest)
{
    SCOPED_FREE char *folder = run_list_folder();
    return memory_format("%s/%s-%s", folder, manifest->name_space, manifest->name);
}

/* ---------------------------------------------------------------- one directory */

static void explain(struct run_entry *entry, const struct error *cause)
{
    SCOPED_FREE char *shown = path_for_people(entry->directory);
    if (cause->kind == ERROR_NOT_FOUND)
        entry->trouble = memory_format("%s: it has no " STATE_RUN
                                       ": its run ended before it started a job, or was made by an older cox; "
                                       "`cox runs delete %s` deletes it",
                                       shown, shown);
    else
        entry->trouble = memory_copy_string(cause->message);
}

/* `before`: the entries of an earlier reading by their directories; NULL: there was none. */
struct reading {
    struct run_list *list;
    const struct hash_map *before;
};

static struct run_entry *add(struct run_list *list, const char *path)
{
    list->entries = memory_resize(list->entries, list->count + 1, sizeof *list->entries);
    struct run_entry *entry = &list->entries[list->count++];
    *entry = (struct run_entry){.directory = memory_copy_string(path)};
    run_record_init(&entry->record);
    return entry;
}

/* Copies the record from the earlier reading, unless its file has changed since. */
static bool take_over(const struct reading *reading, struct run_entry *entry)
{
    struct run_entry *before = reading->before ? hash_map_get(reading->before, entry->directory) : NULL;
    if (!before || before->trouble || before->file != entry->file ||
        before->file_time.tv_sec != entry->file_time.tv_sec || before->file_time.tv_nsec != entry->file_time.tv_nsec)
        return false;
    entry->record = before->record;
    if (before->record.volumes)
        entry->record.volumes = json_copy(before->record.volumes);
    if (before->record.command)
        entry->record.command = memory_copy_string(before->record.command);
    entry->state_in_file = entry->record.state = before->state_in_file;
    entry->is_same = true;
    return true;
}

static void read_record(const struct reading *reading, struct run_entry *entry)
{
    struct error cause = ERROR_INIT;
    struct stat about;
    SCOPED_FREE char *file = memory_format("%s/" STATE_RUN, entry->directory);
    if (stat(file, &about) == 0) {
        entry->file = about.st_ino;
        entry->file_time = about.st_mtim;
        if (take_over(reading, entry))
            return;
    }
    if (run_record_read(entry->directory, &entry->record, &cause) < 0)
        explain(entry, &cause);
    entry->state_in_file = entry->record.state;
}

static void add_run(const struct reading *reading, const char *path)
{
    struct run_entry *entry = add(reading->list, path);
    enum state_holder holder = state_directory_holder(path);
    entry->in_use = holder != STATE_FREE;
    read_record(reading, entry);
    entry->goes_on = (entry->record.state == RUN_RUNNING || entry->record.state == RUN_SUSPENDED) &&
                     holder != STATE_FREE && holder != STATE_READING;
    if (entry->record.state == RUN_RUNNING && !entry->goes_on)
        entry->record.state = RUN_INTERRUPTED;
}

static void add_foreign(struct run_list *list, const char *path)
{
    struct run_entry *entry = add(list, path);
    SCOPED_FREE char *shown = path_for_people(entry->directory);
    entry->trouble = memory_format("%s: it is not a state directory of cox run, and is not deleted", shown);
}

/* ---------------------------------------------------------------- all of them */

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Returns how many runs were found; -1 if the folder cannot be read. */
static int add_below(const struct reading *reading, const char *folder, unsigned nesting)
{
    struct dirent **names;
    int count = scandir(folder, &names, visible, alphasort), found = 0;
    for (int i = 0; i < count; i++) {
        SCOPED_FREE char *path = memory_format("%s/%s", folder, names[i]->d_name);
        struct stat about;
        bool is_directory = lstat(path, &about) == 0 && S_ISDIR(about.st_mode);
        int below = 1;
        if (is_directory && state_directory_is_one(path))
            add_run(reading, path);
        else if (is_directory)
            below = nesting + 1 < NESTING_MAX ? add_below(reading, path, nesting + 1) : 0;
        if (is_directory && below <= 0 && nesting == 0 && strcmp(names[i]->d_name, RUN_DEMO_FOLDER) != 0)
            add_foreign(reading->list, path);
        found += is_directory && below > 0;
        free(names[i]);
    }
    if (count >= 0)
        free(names);
    return count < 0 ? -1 : found;
}

static const char *below_folder(const char *folder, const char *directory)
{
    size_t length = strlen(folder);
    if (strncmp(directory, folder, length) == 0 && directory[length] == '/')
        return directory + length + 1;
    const char *slash = strrchr(directory, '/');
    return slash ? slash + 1 : directory;
}

static int by_name(const void *left, const void *right)
{
    return strcmp((*(struct run_entry *const *)left)->record.name, (*(struct run_entry *const *)right)->record.name);
}

static bool same_name(const struct run_entry *left, const struct run_entry *right)
{
    return strcmp(left->record.name, right->record.name) == 0;
}

/* `folder`: without symbolic links. */
static void label(struct run_list *list, const char *folder)
{
    struct run_entry **sorted = memory_allocate(list->count + 1, sizeof *sorted);
    for (size_t i = 0; i < list->count; i++)
        sorted[i] = &list->entries[i];
    qsort(sorted, list->count, sizeof *sorted, by_name);
    for (size_t i = 0; i < list->count; i++) {
        struct run_entry *entry = sorted[i];
        bool is_one = *entry->record.name && (i == 0 || !same_name(entry, sorted[i - 1])) &&
                      (i + 1 == list->count || !same_name(entry, sorted[i + 1]));
        entry->label = memory_copy_string(is_one ? entry->record.name : below_folder(folder, entry->directory));
    }
    free(sorted);
}

/* `folder` as for run_list_read. */
static int read_list(const char *folder, const struct reading *reading, struct error *error)
{
    SCOPED_FREE char *named = folder ? memory_copy_string(folder) : run_list_folder();
    SCOPED_FREE char *own = realpath(named, NULL);
    if (!own && !folder && errno == ENOENT)
        return 0;
    if (own && state_directory_is_one(own))
        add_run(reading, own);
    else if (!own || add_below(reading, own, 0) < 0)
        return error_set_errno(error, "read %s", named);
    label(reading->list, own);
    return 0;
}

int run_list_read(const char *folder, struct run_list *list, struct error *error)
{
    const struct reading reading = {.list = list};
    return read_list(folder, &reading, error);
}

int run_list_read_again(struct run_list *list, struct error *error)
{
    struct run_list again = {.count = 0};
    struct hash_map before;
    hash_map_init(&before);
    for (size_t i = 0; i < list->count; i++)
        hash_map_set(&before, list->entries[i].directory, &list->entries[i]);
    const struct reading reading = {.list = &again, .before = &before};
    int result = read_list(NULL, &reading, error);
    hash_map_release(&before, NULL);
    run_list_release(result == 0 ? list : &again);
    if (result == 0)
        *list = again;
    return result;
}

void run_list_release(struct run_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        run_record_release(&list->entries[i].record);
        free(list->entries[i].directory);
        free(list->entries[i].label);
        free(list->entries[i].trouble);
    }
    free(list->entries);
    *list = (struct run_list){.count = 0};
}

/* ---------------------------------------------------------------- by name */

static int refuse_unknown(const struct run_list *list, const char *word, struct error *error)
{
    const char **labels = memory_allocate(list->count + 1, sizeof *labels);
    for (size_t i = 0; i < list->count; i++)
        labels[i] = list->entries[i].label;
    const char *meant = nearest_word(word, labels, list->count);
    free(labels);
    return error_set(error, ERROR_NOT_FOUND, "there is no run \"%s\"%s%s%s; `cox runs` lists them", word,
                     meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
}

/* Whether the last parts of the path are those of the word: "default-digits", "demo/undisturbed". */
static bool ends_in(const char *path, const char *word)
{
    size_t length = strlen(path), end = strlen(word);
    return end > 0 && length > end && path[length - end - 1] == '/' && strcmp(path + length - end, word) == 0;
}

int run_list_find(const struct run_list *list, const char *word, const struct run_entry **ret_entry,
                  struct error *error)
{
    SCOPED_FREE char *path = realpath(word, NULL);
    const struct run_entry *found = NULL;
    unsigned count = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct run_entry *entry = &list->entries[i];
        if (strcmp(entry->label, word) == 0 || (path && strcmp(entry->directory, path) == 0)) {
            *ret_entry = entry;
            return 0;
        }
        if (strcmp(entry->record.name, word) == 0 || ends_in(entry->directory, word)) {
            found = entry;
            count++;
        }
    }
    if (count == 0)
        return refuse_unknown(list, word, error);
    if (count > 1)
        return error_set(error, ERROR_INVALID,
                         "there are %u runs \"%s\"; name one by its directory, as `cox runs` lists them", count, word);
    *ret_entry = found;
    return 0;
}

char *run_directory(const char *word, struct error *error)
{
    SCOPED(run_list_release) struct run_list list = {.count = 0};
    const struct run_entry *entry;
    if (state_directory_is_one(word))
        return memory_copy_string(word);
    if (run_list_read(NULL, &list, error) < 0 || run_list_find(&list, word, &entry, error) < 0)
        return NULL;
    return memory_copy_string(entry->directory);
}

char *run_state_directory(const char *word, struct error *error)
{
    struct error trouble = ERROR_INIT;
    char *directory = run_directory(word, &trouble);
    if (directory)
        return directory;
    if (trouble.kind == ERROR_NOT_FOUND && strchr(word, '/'))
        return memory_copy_string(word);
    *error = trouble;
    return NULL;
}

char *run_sweep_of_trial(const char *name)
{
    const char *dash = strrchr(name, '-');
    bool is_numbered = dash && dash[1] && dash[1 + strspn(dash + 1, "0123456789")] == '\0';
    return is_numbered ? memory_copy_bytes(name, (size_t)(dash - name)) : NULL;
}

char *run_list_word(const char *directory)
{
    SCOPED(run_list_release) struct run_list list = {.count = 0};
    SCOPED_FREE char *path = realpath(directory, NULL);
    if (run_list_read(NULL, &list, NULL) == 0)
        for (size_t i = 0; path && i < list.count; i++)
            if (strcmp(list.entries[i].directory, path) == 0)
                return memory_copy_string(list.entries[i].label);
    return memory_copy_string(directory);
}

/* ---------------------------------------------------------------- files that others use */

char *run_list_user_of(const struct run_list *list, const struct run_entry *entry)
{
    for (size_t i = 0; list && i < list->count; i++)
        if (run_record_uses(&list->entries[i].record, entry->directory))
            return memory_copy_string(list->entries[i].label);
    return NULL;
}
