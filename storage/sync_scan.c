/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/sync_scan.h"

#include <errno.h>
#include <fnmatch.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/memory.h"
#include "common/s3_transfer.h"

static bool matches_any(const char *name, const char *const *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fnmatch(patterns[i], name, 0) == 0)
            return true;
    return false;
}

static bool is_unfinished(const char *name)
{
    static const char *const patterns[] = {S3_PARTIAL_PREFIX "*", "tmp-*", "*.tmp", "*.orbax-checkpoint-tmp*",
                                           "*.incomplete*"};
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ')
            return true;
    return matches_any(name, patterns, sizeof patterns / sizeof *patterns);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool sync_scan_is_log(const char *path)
{
    static const char *const patterns[] = {"*.log", "*.tfevents.*"};
    return matches_any(base_name(path), patterns, sizeof patterns / sizeof *patterns);
}

/* One part more than the path has in common with that of the checkpoints. */
static size_t unit_length(const char *path, const char *checkpoints)
{
    size_t at = 0;
    for (;;) {
        size_t part = strcspn(path + at, "/"), other = strcspn(checkpoints, "/");
        if (path[at + part] == '\0' || part != other || strncmp(path + at, checkpoints, part) != 0)
            return at + part;
        at += part + 1;
        checkpoints += other + (checkpoints[other] == '/');
    }
}

static int64_t nanoseconds(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int add_file(struct sync_scan *scan, const char *path, const char *checkpoints, const struct stat *status,
                    struct error *error)
{
    if (scan->file_count == SYNC_FILES_MAX)
        return error_set(error, ERROR_TOO_LARGE,
                         "the folder has more than %zu files; write fewer, or remove those that are not needed",
                         SYNC_FILES_MAX);
    if ((scan->file_count & (scan->file_count - 1)) == 0)
        scan->files = memory_resize(scan->files, scan->file_count ? 2 * scan->file_count : 1, sizeof *scan->files);
    int64_t modified = nanoseconds(status->st_mtim), changed = nanoseconds(status->st_ctim);
    scan->files[scan->file_count++] = (struct sync_file){.path = memory_copy_string(path),
                                                         .unit_length = unit_length(path, checkpoints),
                                                         .size = status->st_size,
                                                         .modified_ns = modified,
                                                         .changed_ns = changed > modified ? changed : modified,
                                                         .is_log = sync_scan_is_log(path)};
    return 0;
}

static int by_path(const void *left, const void *right)
{
    return strcmp(((const struct sync_file *)left)->path, ((const struct sync_file *)right)->path);
}

static int walk(const char *folder, const char *checkpoints, struct sync_scan *scan, struct error *error)
{
    char *roots[] = {(char *)folder, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    if (!tree)
        return error_set_errno(error, "read the folder %s", folder);
    int result = 0;
    for (FTSENT *entry; result == 0 && (entry = fts_read(tree));) {
        if (entry->fts_level > 0 && (is_unfinished(entry->fts_name) ||
                                     (entry->fts_level == 1 && strcmp(entry->fts_name, ".coxswain-sync") == 0))) {
            fts_set(tree, entry, FTS_SKIP);
            continue;
        }
        bool is_unread = entry->fts_info == FTS_DNR || entry->fts_info == FTS_NS || entry->fts_info == FTS_ERR;
        if (is_unread && entry->fts_level == 0) {
            errno = entry->fts_errno;
            result = error_set_errno(error, "read the folder %s", folder);
        } else if (is_unread && entry->fts_errno != ENOENT && !scan->unreadable)
            scan->unreadable = memory_copy_string(entry->fts_path);
        if (entry->fts_info == FTS_F && S_ISREG(entry->fts_statp->st_mode)) {
            const char *path = entry->fts_path + strlen(folder);
            result = add_file(scan, path + (*path == '/'), checkpoints, entry->fts_statp, error);
        }
    }
    if (result == 0 && errno != 0) /* fts_read has set it to 0 at the end of the tree */
        result = error_set_errno(error, "read the folder %s", folder);
    fts_close(tree);
    return result;
}

struct sync_file *sync_scan_find(const struct sync_scan *scan, const char *path)
{
    struct sync_file wanted = {.path = (char *)path};
    return scan->file_count == 0 ? NULL : bsearch(&wanted, scan->files, scan->file_count, sizeof *scan->files, by_path);
}

const struct sync_file *sync_scan_newest(const struct sync_scan *scan, const struct sync_unit *unit)
{
    const struct sync_file *file = &scan->files[unit->first];
    while (file->is_log || file->changed_ns != unit->changed_ns)
        file++;
    return file;
}

bool sync_scan_has_folder(const struct sync_scan *scan, const char *folder)
{
    size_t length = strlen(folder);
    for (size_t i = 0; i < scan->file_count; i++) {
        const char *path = scan->files[i].path;
        if (!scan->files[i].is_log && (size_t)(base_name(path) - path) == length + 1 &&
            strncmp(path, folder, length) == 0)
            return true;
    }
    return false;
}

/* Whether a file is of a kind of checkpoint whose last file is not there. */
static bool lacks_mark(const struct sync_scan *scan, const struct sync_file *file)
{
    const char *name = base_name(file->path), *mark = NULL;
    SCOPED_FREE char *folder = memory_copy_bytes(file->path, (size_t)(name - file->path));
    if (fnmatch("*.distcp", name, 0) == 0)
        mark = ".metadata";
    else if (strcmp(name, "training_args.bin") == 0 &&
             (strncmp(folder, "checkpoint-", 11) == 0 || strstr(folder, "/checkpoint-")))
        mark = "trainer_state.json";
    SCOPED_FREE char *wanted = memory_format("%s%s", folder, mark ? mark : "");
    return mark && !sync_scan_find(scan, wanted);
}

static int by_change(const void *left, const void *right)
{
    const struct sync_unit *a = left, *b = right;
    if (a->changed_ns != b->changed_ns)
        return a->changed_ns < b->changed_ns ? -1 : 1;
    if (a->is_folder != b->is_folder)
        return a->is_folder ? -1 : 1;
    return a->first < b->first ? -1 : 1;
}

static void find_units(struct sync_scan *scan, int64_t now_ns, int64_t settle_ns)
{
    scan->units = memory_allocate(scan->file_count + 1, sizeof *scan->units);
    for (size_t i = 0; i < scan->file_count; i++) {
        const struct sync_file *file = &scan->files[i], *before = i > 0 ? file - 1 : NULL;
        struct sync_unit *unit = &scan->units[scan->unit_count];
        if (!before || before->unit_length != file->unit_length ||
            strncmp(before->path, file->path, file->unit_length) != 0)
            scan->unit_count++;
        else
            unit--;
        if (unit->count++ == 0)
            unit->first = i;
        unit->is_folder = file->path[file->unit_length] != '\0';
        if (!file->is_log && file->changed_ns > unit->changed_ns)
            unit->changed_ns = file->changed_ns;
        if (lacks_mark(scan, file))
            unit->state = SYNC_INCOMPLETE;
    }
    for (size_t i = 0; i < scan->unit_count; i++)
        if (settle_ns > 0 && scan->units[i].changed_ns > now_ns - settle_ns)
            scan->units[i].state = SYNC_CHANGING;
    qsort(scan->units, scan->unit_count, sizeof *scan->units, by_change);
}

int sync_scan(const char *folder, const char *checkpoints, int64_t now_ns, int64_t settle_ns,
              struct sync_scan *ret_scan, struct error *error)
{
    *ret_scan = (struct sync_scan){.files = NULL};
    if (walk(folder, checkpoints, ret_scan, error) < 0)
        return -1;
    if (ret_scan->file_count > 0)
        qsort(ret_scan->files, ret_scan->file_count, sizeof *ret_scan->files, by_path);
    find_units(ret_scan, now_ns, settle_ns);
    return 0;
}

void sync_scan_release(struct sync_scan *scan)
{
    for (size_t i = 0; i < scan->file_count; i++)
        free(scan->files[i].path);
    free(scan->files);
    free(scan->units);
    free(scan->unreadable);
    *scan = (struct sync_scan){.files = NULL};
}

static bool is_mark(const char *path)
{
    static const char *const names[] = {".metadata", "trainer_state.json", "commit_success.txt"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(base_name(path), names[i]) == 0)
            return true;
    return false;
}

static int by_writing(const void *left, const void *right)
{
    const struct sync_file *a = *(struct sync_file *const *)left, *b = *(struct sync_file *const *)right;
    if (is_mark(a->path) != is_mark(b->path))
        return is_mark(a->path) ? 1 : -1;
    if (a->modified_ns != b->modified_ns)
        return a->modified_ns < b->modified_ns ? -1 : 1;
    return strcmp(a->path, b->path);
}

void sync_scan_order(const struct sync_scan *scan, const struct sync_unit *unit, struct sync_file **ret_files)
{
    for (size_t i = 0; i < unit->count; i++)
        ret_files[i] = &scan->files[unit->first + i];
    qsort(ret_files, unit->count, sizeof *ret_files, by_writing);
}
