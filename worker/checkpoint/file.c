/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crc32c.h"
#include "common/memory.h"
#include "common/regular_file.h"
#include "common/scope.h"
#include "worker/checkpoint/safe_path.h"

#define DIGEST_BLOCK (1 << 20)

struct file_calls file_calls = {
    .open = safe_open,
    .write = write,
    .fsync = fsync,
    .close = close,
    .mkdir = safe_mkdir,
    .rename = safe_rename,
    .link = safe_link,
    .unlink = safe_unlink,
    .rmdir = safe_rmdir,
    .exchange = safe_exchange,
    .sync_range = sync_file_range,
};

/* As error_set_errno: "cannot VERB PATH: why". A link is described in words of its own. */
static int set_error(struct error *error, const char *verb, const char *path)
{
    int number = errno;
    if (number != ELOOP) {
        error_set_errno(error, "cannot %s %s", verb, path);
        if (number == ENOTDIR && error)
            error->kind = ERROR_CORRUPT;
        return -1;
    }
    return error_set(error, ERROR_CORRUPT,
                     "cannot %s %s: it, or the checkpoint's directory that holds it, is a symbolic link; links in "
                     "place of a job's own files are not followed, remove it",
                     verb, path);
}

int file_open(const char *path, int *ret_descriptor, struct error *error)
{
    off_t size;
    int descriptor = file_calls.open(path, O_RDONLY | O_CLOEXEC, 0);
    if (descriptor < 0)
        return set_error(error, "open", path);
    if (regular_file_check(descriptor, path, &size, error) < 0) {
        close(descriptor);
        if (error && error->kind == ERROR_INVALID)
            error->kind = ERROR_CORRUPT;
        return -1;
    }
    *ret_descriptor = descriptor;
    return 0;
}

int file_read(const char *path, struct buffer *buffer, struct error *error)
{
    SCOPED_CLOSE int descriptor = -1;
    return file_open(path, &descriptor, error) < 0 ? -1 : buffer_read_descriptor(buffer, descriptor, path, error);
}

bool file_exists(const char *path)
{
    struct stat status;
    return safe_stat(path, &status) == 0;
}

int file_write_all(int descriptor, const void *bytes, size_t length, struct error *error)
{
    const char *next = bytes;
    while (length > 0) {
        ssize_t written = file_calls.write(descriptor, next, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return error_set_errno(error, "cannot write");
        next += written;
        length -= (size_t)written;
    }
    return 0;
}

static int write_and_sync(int descriptor, const void *bytes, size_t length, struct error *error)
{
    if (file_write_all(descriptor, bytes, length, error) < 0)
        return -1;
    if (file_calls.fsync(descriptor) < 0)
        return error_set_errno(error, "cannot sync");
    return 0;
}

#define CREATE_TRIES 3

int file_create(const char *path, int *ret_descriptor, struct error *error)
{
    int descriptor = -1;
    for (int i = 0; i < CREATE_TRIES && descriptor < 0; i++) {
        descriptor = file_calls.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (descriptor >= 0 || errno != EEXIST)
            break;
        if (file_calls.unlink(path) < 0 && errno != ENOENT)
            return set_error(error, "replace", path);
        errno = EEXIST;
    }
    if (descriptor < 0)
        return set_error(error, "create", path);
    *ret_descriptor = descriptor;
    return 0;
}

static int fill_and_close(int descriptor, const char *path, const void *bytes, size_t length, struct error *error)
{
    int result = write_and_sync(descriptor, bytes, length, error);
    if (file_calls.close(descriptor) < 0 && result == 0)
        result = error_set_errno(error, "cannot close");
    return result < 0 ? error_wrap(error, "%s", path) : 0;
}

int file_write(const char *path, const void *bytes, size_t length, struct error *error)
{
    int descriptor;
    if (file_create(path, &descriptor, error) < 0)
        return -1;
    return fill_and_close(descriptor, path, bytes, length, error);
}

static int write_exclusive(const char *path, const void *bytes, size_t length, struct error *error)
{
    int descriptor = file_calls.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor < 0)
        return set_error(error, "create", path);
    return fill_and_close(descriptor, path, bytes, length, error);
}

int file_draft_name(const char *path, char **ret_draft, struct error *error)
{
    uint64_t nonce;
    if (getrandom(&nonce, sizeof nonce, 0) != sizeof nonce)
        return error_set_errno(error, "cannot get a random number to name a draft of %s", path);
    *ret_draft = memory_format("%s" FILE_DRAFT_MARK "%016llx", path, (unsigned long long)nonce);
    return 0;
}

static int write_draft(const char *path, const void *bytes, size_t length, char **ret_draft, struct error *error)
{
    char *draft;
    if (file_draft_name(path, &draft, error) < 0)
        return -1;
    if (write_exclusive(draft, bytes, length, error) < 0) {
        free(draft);
        return -1;
    }
    *ret_draft = draft;
    return 0;
}

/* Over NFS the answer to a link may be lost: it is there, and the client, which asks again, hears
 * that the name is taken. Opened, since that asks the server how many names it has. */
static bool is_linked(const char *draft)
{
    struct stat status;
    int descriptor = file_calls.open(draft, O_RDONLY | O_CLOEXEC, 0);
    if (descriptor < 0)
        return false;
    bool twice = fstat(descriptor, &status) == 0 && status.st_nlink == 2;
    file_calls.close(descriptor);
    return twice;
}

/* A new chief may have swept the draft away before it was linked. */
#define LINK_TRIES 3

int file_write_exclusive(const char *path, const void *bytes, size_t length, struct error *error)
{
    for (int i = 0;; i++) {
        SCOPED_FREE char *draft = NULL;
        if (write_draft(path, bytes, length, &draft, error) < 0)
            return -1;
        int result = file_calls.link(draft, path), number = errno;
        bool linked = result == 0 || (number == EEXIST && is_linked(draft));
        file_calls.unlink(draft);
        if (linked)
            return 0;
        errno = number;
        /* Some storage has no hard links; there, the exclusive create must do. */
        if (number == EPERM || number == EOPNOTSUPP || number == ENOSYS)
            return write_exclusive(path, bytes, length, error);
        if (number != ENOENT || i + 1 == LINK_TRIES)
            return error_set_errno(error, "cannot create %s", path);
    }
}

int file_replace(const char *path, const void *bytes, size_t length, struct error *error)
{
    SCOPED_FREE char *draft = NULL;
    if (write_draft(path, bytes, length, &draft, error) < 0)
        return -1;
    if (file_calls.rename(draft, path) < 0)
        return set_error(error, "replace", path);
    return 0;
}

void file_remove_drafts(const char *directory, const char *name)
{
    SCOPED_FREE char *prefix = memory_format("%s" FILE_DRAFT_MARK, name);
    DIR *entries = opendir(directory);
    struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        SCOPED_FREE char *draft = file_path_join(directory, entry->d_name);
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            file_calls.unlink(draft);
    }
    if (entries != NULL)
        closedir(entries);
}

int file_each_entry(const char *directory, int (*act)(const void *context, const char *entry, struct error *error),
                    const void *context, struct error *error)
{
    DIR *entries = opendir(directory);
    struct dirent *entry;
    int result = 0;
    if (entries == NULL)
        return error_set_errno(error, "cannot open directory %s", directory);
    while (result == 0 && (entry = readdir(entries)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            result = act(context, entry->d_name, error);
    closedir(entries);
    return result;
}

struct dated_file {
    char *path;
    struct timespec changed;
};

struct dated_files {
    struct dated_file *files;
    size_t count;
};

static void add_dated_file(struct dated_files *list, char *path)
{
    struct stat found;
    if (lstat(path, &found) < 0 || !S_ISREG(found.st_mode)) {
        free(path);
        return;
    }
    list->files = memory_resize(list->files, list->count + 1, sizeof *list->files);
    list->files[list->count++] = (struct dated_file){path, found.st_mtim};
}

static int compare_newest_first(const void *left, const void *right)
{
    const struct dated_file *a = left, *b = right;
    if (a->changed.tv_sec != b->changed.tv_sec)
        return a->changed.tv_sec < b->changed.tv_sec ? 1 : -1;
    return (a->changed.tv_nsec < b->changed.tv_nsec) - (a->changed.tv_nsec > b->changed.tv_nsec);
}

void file_keep_newest(const char *directory, size_t most)
{
    struct dated_files list = {0};
    DIR *entries = opendir(directory);
    struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL)
        add_dated_file(&list, file_path_join(directory, entry->d_name));
    if (entries != NULL)
        closedir(entries);
    if (list.count > 1)
        qsort(list.files, list.count, sizeof *list.files, compare_newest_first);
    for (size_t i = 0; i < list.count; i++) {
        if (i >= most)
            (void)file_calls.unlink(list.files[i].path);
        free(list.files[i].path);
    }
    free(list.files);
}

int file_sync_directory(const char *path, struct error *error)
{
    int descriptor = file_calls.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (descriptor < 0)
        return set_error(error, "open", path);
    int result = 0;
    /* Some network file systems know no fsync on directories; their renames are durable by
     * themselves. */
    if (file_calls.fsync(descriptor) < 0 && errno != EINVAL)
        result = error_set_errno(error, "cannot sync directory %s", path);
    file_calls.close(descriptor);
    return result;
}

int file_make_directories(const char *path, struct error *error)
{
    SCOPED_FREE char *partial = memory_copy_string(path);
    for (char *slash = partial + 1;; slash++) {
        slash += strcspn(slash, "/");
        char end = *slash;
        *slash = '\0';
        if (file_calls.mkdir(partial, 0755) < 0 && errno != EEXIST)
            return error_set_errno(error, "cannot create directory %s", partial);
        *slash = end;
        if (end == '\0')
            return 0;
    }
}

static int remove_entries(const char *path, DIR *directory, struct error *error)
{
    struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        SCOPED_FREE char *name = file_path_join(path, entry->d_name);
        if (file_calls.unlink(name) < 0 && errno != ENOENT)
            return error_set_errno(error, "cannot remove %s", name);
    }
    return 0;
}

int file_remove_directory(const char *path, struct error *error)
{
    int descriptor = safe_open(path, O_RDONLY | O_DIRECTORY, 0);
    if (descriptor < 0 && (errno == ENOTDIR || errno == ELOOP))
        return file_calls.unlink(path) < 0 && errno != ENOENT ? set_error(error, "remove", path) : 0;
    if (descriptor < 0)
        return errno == ENOENT ? 0 : set_error(error, "open", path);
    DIR *directory = fdopendir(descriptor);
    if (directory == NULL) {
        close(descriptor);
        return set_error(error, "open", path);
    }
    int result = remove_entries(path, directory, error);
    closedir(directory);
    if (result == 0 && file_calls.rmdir(path) < 0 && errno != ENOENT)
        result = set_error(error, "remove", path);
    return result;
}

int file_digest(const char *path, uint32_t *ret_crc, int64_t *ret_size, struct error *error)
{
    SCOPED_CLOSE int descriptor = -1;
    if (file_open(path, &descriptor, error) < 0)
        return -1;
    SCOPED_FREE char *block = memory_allocate(DIGEST_BLOCK, 1);
    uint32_t crc = 0;
    int64_t size = 0;
    for (;;) {
        ssize_t got = read(descriptor, block, DIGEST_BLOCK);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(error, "cannot read %s", path);
        if (got == 0)
            break;
        crc = crc32c(crc, block, (size_t)got);
        size += got;
    }
    *ret_crc = crc;
    *ret_size = size;
    return 0;
}

char *file_path_join(const char *directory, const char *name)
{
    return memory_format("%s/%s", directory, name);
}
