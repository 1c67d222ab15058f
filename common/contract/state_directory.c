/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contract/state_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/directory.h"
#include "common/memory.h"
#include "common/scope.h"
#include "common/terminal_text.h"

#define LOCK "lock"
#define STANDALONE_LOG "coxswain-standalone.log"

/* The database is the last one: by it a directory that is half forgotten is still known. */
static const char *const kept[] = {STATE_KUBECONFIG,
                                   STATE_KUBECONFIG ".new",
                                   STATE_PORT,
                                   STATE_PORT ".new",
                                   STATE_ALIVE,
                                   STATE_MADE_FROM,
                                   STATE_BEST,
                                   STATE_TRIALS,
                                   STATE_JOB,
                                   STATE_JOB ".new",
                                   STATE_RUN,
                                   STATE_RUN ".new",
                                   STANDALONE_LOG,
                                   "coxswain-operator.log",
                                   STATE_CHECK,
                                   STATE_PODS,
                                   STATE_CERTIFICATES,
                                   STATE_DATABASE "-shm",
                                   STATE_DATABASE "-journal",
                                   STATE_DATABASE "-wal",
                                   STATE_DATABASE};
#define KEPT (sizeof kept / sizeof *kept)

/* Bytes of the lock file. Each use locks some of them, which says what other uses it excludes. The file's text is a line for each of these
 * bytes: the process that has locked it last. */
#define START_AT 0
#define SERVE_AT 1
#define PODS_AT 2
#define SHARE_AT 3
#define LINE_BYTES 12

static const struct {
    off_t first, count;
    short type;
} ranges[] = {[STATE_TO_CLEAR] = {START_AT, 2, F_WRLCK}, [STATE_TO_START] = {START_AT, 1, F_WRLCK},
              [STATE_TO_READ] = {SERVE_AT, 1, F_WRLCK},  [STATE_TO_RUN] = {SERVE_AT, 2, F_WRLCK},
              [STATE_TO_SHARE] = {SHARE_AT, 1, F_RDLCK}, [STATE_TO_END] = {SHARE_AT, 1, F_WRLCK}};

#define HOLDER_MAX 160
#define PROC_FILE_MAX 4096

/* Returns the number after `key` in the status of a process; 0: it is not known. */
static long status_of(long process, const char *key)
{
    SCOPED_FREE char *path = memory_format("/proc/%ld/status", process);
    SCOPED_BUFFER text = BUFFER_INIT(PROC_FILE_MAX);
    const char *line = buffer_read_file(&text, path, NULL) == 0 ? strstr(buffer_text(&text), key) : NULL;
    return line ? strtol(line + strlen(key), NULL, 10) : 0;
}

/* Copies the beginning of a process's command line, whose words are then separated by spaces; empty if it cannot be read. */
static void command_line_of(long process, char words[HOLDER_MAX + 1])
{
    SCOPED_FREE char *path = memory_format("/proc/%ld/cmdline", process);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(words, 1, HOLDER_MAX, file) : 0;
    if (file)
        fclose(file);
    while (length > 0 && words[length - 1] == '\0')
        length--;
    for (size_t i = 0; i < length; i++)
        words[i] = words[i] == '\0' ? ' ' : words[i];
    char *copy = memory_copy_bytes(words, length);
    terminal_text_shorten(copy, length, HOLDER_MAX, words);
    free(copy);
}

static bool is_cox(const char *words)
{
    size_t length = strcspn(words, " ");
    return length >= 3 && strncmp(words + length - 3, "cox", 3) == 0 &&
           (length == 3 || words[length - 4] == '/' || words[length - 4] == '-');
}

/* Returns the lock that excludes one of these bytes; its l_type is F_UNLCK: there is none. */
static struct flock find_lock(int lock, off_t first, off_t count)
{
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = count};
    if (fcntl(lock, F_OFD_GETLK, &range) < 0)
        range.l_type = F_UNLCK;
    return range;
}

static bool is_locked(int lock, off_t first, off_t count)
{
    return find_lock(lock, first, count).l_type != F_UNLCK;
}

/* The kernel does not know the process of a lock that belongs to an open file. */
static void write_holder(int lock, off_t first, off_t count)
{
    for (off_t at = first; at < first + count; at++) {
        char line[LINE_BYTES + 1];
        int length = snprintf(line, sizeof line, "%*ld\n", LINE_BYTES - 1, (long)getpid());
        (void)!pwrite(lock, line, (size_t)length, at * LINE_BYTES); /* if it fails, a message lacks a name */
    }
}

/* Returns the process that has locked the directory, but does not only share it; 0: it is not known. */
static long read_holder(int lock)
{
    struct flock found = find_lock(lock, START_AT, SHARE_AT);
    char line[LINE_BYTES + 1] = "";
    if (found.l_type == F_UNLCK || pread(lock, line, LINE_BYTES, found.l_start * LINE_BYTES) < 0)
        return 0;
    return strtol(line, NULL, 10);
}

/* Says which command has locked the directory: the lock is its child's, coxswain-standalone, unless that has outlived it (STATE_TO_SHARE). */
static int refuse_locked(const char *path, int lock, struct error *error)
{
    char words[HOLDER_MAX + 1] = "";
    long holder = read_holder(lock);
    long parent = holder > 0 ? status_of(holder, "\nPPid:\t") : 0;
    if (parent > 1) {
        command_line_of(parent, words);
        holder = is_cox(words) ? parent : holder;
    }
    if (holder > 0)
        command_line_of(holder, words);
    if (holder <= 0 || words[0] == '\0')
        return error_set(error, ERROR_UNAVAILABLE,
                         "another control plane uses the state directory %s; end it, or take another directory", path);
    return error_set(
        error, ERROR_UNAVAILABLE,
        "another control plane uses the state directory %s: that of process %ld, `%s`; end it with Ctrl-C or "
        "kill %ld, or take another directory",
        path, holder, words, holder);
}

int state_directory_lock(const char *path, enum state_use use, int *ret_lock, struct error *error)
{
    struct stat about;
    SCOPED_FREE char *name = memory_format("%s/" LOCK, path);
    SCOPED_CLOSE int lock = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock < 0)
        return error_set_errno(error, "open %s", name);
    /* A lock of the open file: a record lock of the process would end when it closes another descriptor of that file. */
    struct flock range = {
        .l_type = ranges[use].type, .l_whence = SEEK_SET, .l_start = ranges[use].first, .l_len = ranges[use].count};
    if (fcntl(lock, F_OFD_SETLK, &range) < 0)
        return errno == EAGAIN || errno == EACCES ? refuse_locked(path, lock, error)
                                                  : error_set_errno(error, "lock %s", name);
    if (use == STATE_TO_START && is_locked(lock, SERVE_AT, 2))
        return refuse_locked(path, lock, error);
    if (fstat(lock, &about) == 0 && about.st_nlink == 0)
        return error_set(error, ERROR_UNAVAILABLE, "the state directory %s was deleted meanwhile; try again", path);
    write_holder(lock, ranges[use].first, ranges[use].count);
    *ret_lock = lock;
    lock = -1;
    return 0;
}

enum state_holder state_directory_holder(const char *path)
{
    SCOPED_FREE char *name = memory_format("%s/" LOCK, path);
    SCOPED_CLOSE int lock = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (lock < 0 || !is_locked(lock, START_AT, SHARE_AT))
        return STATE_FREE;
    return is_locked(lock, START_AT, 1)   ? STATE_STARTING
           : is_locked(lock, PODS_AT, 1)  ? STATE_RUNNING
           : is_locked(lock, SERVE_AT, 1) ? STATE_READING
                                          : STATE_FREE;
}

bool state_directory_is_shared(const char *path)
{
    SCOPED_FREE char *name = memory_format("%s/" LOCK, path);
    SCOPED_CLOSE int lock = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return lock >= 0 && find_lock(lock, SHARE_AT, 1).l_type == F_RDLCK;
}

static bool says_nothing(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, LOCK) == 0;
}

static bool has_file(const char *path, const char *file)
{
    SCOPED_FREE char *name = memory_format("%s/%s", path, file);
    struct stat about;
    return lstat(name, &about) == 0 && S_ISREG(about.st_mode);
}

DEFINE_SCOPE_FREE(DIR *, closedir)

bool state_directory_is_one(const char *path)
{
    return has_file(path, STATE_DATABASE) || has_file(path, STANDALONE_LOG);
}

int state_directory_check(const char *path, struct error *error)
{
    SCOPED(closedir_scope) DIR *directory = opendir(path);
    if (!directory)
        return errno == ENOENT ? 0 : error_set_errno(error, "open the state directory %s", path);
    if (state_directory_is_one(path))
        return 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (!says_nothing(entry->d_name))
            return error_set(error, ERROR_INVALID,
                             "%s is not a state directory of Coxswain: it contains %s but no %s; nothing was removed",
                             path, entry->d_name, STATE_DATABASE);
    }
    return 0;
}

int state_directory_forget(const char *path, bool volumes_too, struct error *error)
{
    if (state_directory_check(path, error) < 0)
        return -1;
    SCOPED_FREE char *volumes = memory_format("%s/" STATE_VOLUMES, path);
    SCOPED_FREE char *users = memory_format("%s/" STATE_USERS, path);
    if (volumes_too) {
        directory_remove(volumes);
        directory_remove(users);
    }
    for (size_t i = 0; i < KEPT; i++) {
        SCOPED_FREE char *name = memory_format("%s/%s", path, kept[i]);
        directory_remove(name);
    }
    return has_file(path, STATE_DATABASE) ? error_set(error, ERROR_SYSTEM, "cannot remove %s/" STATE_DATABASE, path)
                                          : 0;
}

int state_directory_delete(const char *path, bool *ret_gone, struct error *error)
{
    SCOPED_FREE char *name = memory_format("%s/" LOCK, path);
    SCOPED_CLOSE int lock = -1;
    if (!state_directory_is_one(path))
        return error_set(error, ERROR_INVALID, "%s is not a state directory of Coxswain; nothing was removed", path);
    if (state_directory_lock(path, STATE_TO_CLEAR, &lock, error) < 0 || state_directory_forget(path, true, error) < 0)
        return -1;
    (void)unlink(name);
    *ret_gone = rmdir(path) == 0;
    return 0;
}
