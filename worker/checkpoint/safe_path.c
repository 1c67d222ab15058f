/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/safe_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/contract/checkpoint_layout.h"
#include "common/memory.h"
#include "common/scope.h"

static bool is_created_by_us(const char *name)
{
    static const char *const prefixes[] = {CHECKPOINT_STEP_PREFIX, CHECKPOINT_SAVING_PREFIX, CHECKPOINT_REPLACED_PREFIX,
                                           CHECKPOINT_BAD_PREFIX};
    size_t length = strlen(name), suffix = strlen(CHECKPOINT_CLAIMS_SUFFIX);
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    if (name[0] == '.' && length > suffix && strcmp(name + length - suffix, CHECKPOINT_CLAIMS_SUFFIX) == 0)
        return true;
    return strcmp(name, CHECKPOINT_TENSORBOARD) == 0 || strcmp(name, CHECKPOINT_TENSORBOARD_EVALUATOR_NAME) == 0;
}

/* A path without slashes at its end, and its last part. free() the path. */
static char *split(const char *path, const char **ret_name)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    char *whole = memory_copy_bytes(path, length), *slash = strrchr(whole, '/');
    *ret_name = slash && slash[1] ? slash + 1 : whole;
    return whole;
}

static int open_parent(const char *path, const char *name);

static int open_directory(const char *path, int flags)
{
    const char *name;
    struct stat status;
    SCOPED_FREE char *whole = split(path, &name);
    flags |= O_DIRECTORY | O_CLOEXEC;
    if (!is_created_by_us(name))
        return open(whole, flags);
    SCOPED_CLOSE int parent = open_parent(whole, name);
    if (parent < 0)
        return -1;
    int descriptor = openat(parent, name, flags | O_NOFOLLOW);
    if (descriptor < 0 && errno == ENOTDIR && fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
        errno = S_ISLNK(status.st_mode) ? ELOOP : ENOTDIR;
    return descriptor;
}

/* `name` is the last part of `path`. */
static int open_parent(const char *path, const char *name)
{
    SCOPED_FREE char *parent =
        name == path ? memory_copy_string(path[0] == '/' ? "/" : ".") : memory_copy_bytes(path, (size_t)(name - path));
    return open_directory(parent, O_PATH);
}

int safe_open(const char *path, int flags, mode_t mode)
{
    const char *name;
    if (flags & O_DIRECTORY)
        return open_directory(path, flags);
    SCOPED_FREE char *whole = split(path, &name);
    SCOPED_CLOSE int parent = open_parent(whole, name);
    return parent < 0 ? -1 : openat(parent, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode);
}

int safe_mkdir(const char *path, mode_t mode)
{
    const char *name;
    SCOPED_FREE char *whole = split(path, &name);
    SCOPED_CLOSE int parent = open_parent(whole, name);
    return parent < 0 ? -1 : mkdirat(parent, name, mode);
}

static int rename_with_flags(const char *from, const char *to, unsigned flags)
{
    const char *from_name, *to_name;
    SCOPED_FREE char *whole_from = split(from, &from_name);
    SCOPED_FREE char *whole_to = split(to, &to_name);
    SCOPED_CLOSE int from_parent = open_parent(whole_from, from_name);
    SCOPED_CLOSE int to_parent = from_parent < 0 ? -1 : open_parent(whole_to, to_name);
    return to_parent < 0 ? -1 : renameat2(from_parent, from_name, to_parent, to_name, flags);
}

int safe_rename(const char *from, const char *to)
{
    return rename_with_flags(from, to, 0);
}

int safe_exchange(const char *one, const char *other)
{
    return rename_with_flags(one, other, RENAME_EXCHANGE);
}

int safe_link(const char *from, const char *to)
{
    const char *from_name, *to_name;
    SCOPED_FREE char *whole_from = split(from, &from_name);
    SCOPED_FREE char *whole_to = split(to, &to_name);
    SCOPED_CLOSE int from_parent = open_parent(whole_from, from_name);
    SCOPED_CLOSE int to_parent = from_parent < 0 ? -1 : open_parent(whole_to, to_name);
    return to_parent < 0 ? -1 : linkat(from_parent, from_name, to_parent, to_name, 0);
}

static int unlink_with_flags(const char *path, int flags)
{
    const char *name;
    SCOPED_FREE char *whole = split(path, &name);
    SCOPED_CLOSE int parent = open_parent(whole, name);
    return parent < 0 ? -1 : unlinkat(parent, name, flags);
}

int safe_unlink(const char *path)
{
    return unlink_with_flags(path, 0);
}

int safe_rmdir(const char *path)
{
    return unlink_with_flags(path, AT_REMOVEDIR);
}

int safe_stat(const char *path, struct stat *ret_status)
{
    const char *name;
    SCOPED_FREE char *whole = split(path, &name);
    SCOPED_CLOSE int parent = open_parent(whole, name);
    return parent < 0 ? -1 : fstatat(parent, name, ret_status, AT_SYMLINK_NOFOLLOW);
}
