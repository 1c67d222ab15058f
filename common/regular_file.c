/* SPDX-License-Identifier: Apache-2.0 */
#include "common/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int regular_file_check(int descriptor, const char *path, off_t *ret_size, struct error *error)
{
    struct stat status;
    if (fstat(descriptor, &status) < 0)
        return error_set_errno(error, "cannot read %s", path);
    if (!S_ISREG(status.st_mode))
        return error_set(error, ERROR_INVALID, "%s is not a regular file but a %s", path,
                         S_ISDIR(status.st_mode)    ? "directory"
                         : S_ISFIFO(status.st_mode) ? "FIFO"
                                                    : "device");
    *ret_size = status.st_size;
    return 0;
}

int regular_file_open(const char *path, int *ret_descriptor, off_t *ret_size, struct error *error)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return error_set_errno(error, "cannot open %s", path);
    if (regular_file_check(descriptor, path, ret_size, error) < 0) {
        close(descriptor);
        return -1;
    }
    *ret_descriptor = descriptor;
    return 0;
}
