/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/memory.h"
#include "common/scope.h"

static int write_all(int file, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(file, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -1;
        bytes += written;
        length -= (size_t)written;
    }
    return fsync(file);
}

int private_file_write(const char *path, const void *bytes, size_t length, struct error *error)
{
    SCOPED_FREE char *beside = memory_format("%s.new", path);
    SCOPED_CLOSE int file = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0 || fchmod(file, 0600) < 0 || write_all(file, bytes, length) < 0 || rename(beside, path) < 0)
        return error_set_errno(error, "cannot write %s", path);
    return 0;
}

int private_directory_make(const char *path, struct error *error)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_set_errno(error, "cannot create the directory %s", path);
    return 0;
}
