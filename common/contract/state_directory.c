/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contract/state_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/directory.h"
#include "common/memory.h"
#include "common/scope.h"

#define LOCK "lock"
#define STANDALONE_LOG "coxswain-standalone.log"

/* The database is the last one: by it a directory that is half forgotten is still known. */
static const char *const kept[] = {STATE_KUBECONFIG,
                                   STATE_KUBECONFIG ".new",
                                   STATE_PORT,
                                   STATE_PORT ".new",
                                   STATE_MADE_FROM,
                                   STATE_BEST,
                                   STATE_TRIALS,
                                   STATE_JOB,
                                   STATE_JOB ".new",
                                   STATE_RUN,
                                   STATE_RUN ".new",
                                   STANDALONE_LOG,
                                   "coxswain-operator.log",
                                   STATE_PODS,
                                   STATE_CERTIFICATES,
                                   STATE_DATABASE "-shm",
                                   STATE_DATABASE "-journal",
                                   STATE_DATABASE "-wal",
                                   STATE_DATABASE};
#define KEPT (sizeof kept / sizeof *kept)

int state_directory_lock(const char *path, int *ret_lock, struct error *error)
{
    SCOPED_FREE char *name = memory_format("%s/" LOCK, path);
    SCOPED_CLOSE int lock = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock < 0)
        return error_set_errno(error, "open %s", name);
    /* A record lock: children do not inherit it. */
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(lock, F_SETLK, &whole) < 0)
        return errno == EAGAIN || errno == EACCES
                   ? error_set(error, ERROR_UNAVAILABLE,
                               "another control plane uses the state directory %s; end it, or take another directory",
                               path)
                   : error_set_errno(error, "lock %s", name);
    *ret_lock = lock;
    lock = -1;
    return 0;
}

bool state_directory_in_use(const char *path)
{
    SCOPED_FREE char *name = memory_format("%s/" LOCK, path);
    SCOPED_CLOSE int lock = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return lock >= 0 && fcntl(lock, F_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
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
                             "%s is no state directory of Coxswain's: it holds %s and no %s; nothing was removed", path,
                             entry->d_name, STATE_DATABASE);
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
        return error_set(error, ERROR_INVALID, "%s is no state directory of Coxswain's; nothing was removed", path);
    if (state_directory_lock(path, &lock, error) < 0 || state_directory_forget(path, true, error) < 0)
        return -1;
    (void)unlink(name);
    *ret_gone = rmdir(path) == 0;
    return 0;
}
