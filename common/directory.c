/* SPDX-License-Identifier: Apache-2.0 */
#include "common/directory.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/memory.h"
#include "common/scope.h"

#define WALK_DESCRIPTORS 16

static bool is_directory(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

int directory_make(const char *path, struct error *error)
{
    if (!*path)
        return error_set(error, ERROR_INVALID, "the path of the directory is empty");
    SCOPED_FREE char *head = memory_copy_string(path);
    for (char *at = head + 1;; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char end = *at;
        *at = '\0';
        if (mkdir(head, 0755) < 0 && errno != EEXIST)
            return error_set_errno(error, "make the directory %s", head);
        if (!end && !is_directory(head))
            return error_set(error, ERROR_ALREADY_EXISTS, "make the directory %s: it exists and is not a directory",
                             head);
        if (!end)
            return 0;
        *at = end;
    }
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
    (void)about, (void)kind, (void)walk;
    (void)remove(path);
    return 0;
}

void directory_remove(const char *path)
{
    nftw(path, remove_entry, WALK_DESCRIPTORS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static _Thread_local int64_t measured;

static int measure_entry(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
    (void)path, (void)walk;
    if (kind != FTW_NS)
        measured += (int64_t)about->st_blocks * 512;
    return 0;
}

int64_t directory_bytes(const char *path)
{
    measured = 0;
    nftw(path, measure_entry, WALK_DESCRIPTORS, FTW_PHYS | FTW_MOUNT);
    return measured;
}
