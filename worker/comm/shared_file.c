/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/shared_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"

#define DIRECTORY "/dev/shm"
#define NAME_PREFIX "coxswain-"

static const char *const kinds[] = {"area", "ring"};

int shared_file_create(size_t bytes, int *ret_descriptor, struct error *error)
{
    int descriptor = open(DIRECTORY, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor < 0)
        return error_set(error, ERROR_UNSUPPORTED, "no shared memory in " DIRECTORY ": %s", strerror(errno));
    int number = posix_fallocate(descriptor, 0, (off_t)bytes);
    if (number != 0) {
        close(descriptor);
        return error_set(error, ERROR_UNSUPPORTED, "no shared memory of %zu bytes in " DIRECTORY ": %s", bytes,
                         strerror(number));
    }
    flock(descriptor, LOCK_EX | LOCK_NB);
    *ret_descriptor = descriptor;
    return 0;
}

int shared_file_publish(int descriptor, const char *kind, uint64_t nonce, char path[SHARED_FILE_PATH_MAX],
                        struct error *error)
{
    char own[64];
    snprintf(path, SHARED_FILE_PATH_MAX, DIRECTORY "/" NAME_PREFIX "%s-%ld-%016llx", kind, (long)getpid(),
             (unsigned long long)nonce);
    snprintf(own, sizeof own, "/proc/self/fd/%d", descriptor);
    if (linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0 && errno != EEXIST)
        return error_set(error, ERROR_UNSUPPORTED, "cannot give shared memory the name %s: %s", path, strerror(errno));
    return 0;
}

static bool is_of_kind(const char *name, const char *kind)
{
    size_t prefix = strlen(NAME_PREFIX), length = strlen(kind);
    return strncmp(name, NAME_PREFIX, prefix) == 0 && strncmp(name + prefix, kind, length) == 0 &&
           name[prefix + length] == '-' && strchr(name, '/') == NULL;
}

int shared_file_open(const char *path, const char *kind, size_t bytes, int *ret_descriptor, struct error *error)
{
    struct stat status;
    if (strncmp(path, DIRECTORY "/", strlen(DIRECTORY "/")) != 0 || !is_of_kind(path + strlen(DIRECTORY "/"), kind))
        return error_set(error, ERROR_FORBIDDEN, "%s is not shared memory of ours", path);
    int descriptor = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor >= 0 && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size == (off_t)bytes) {
        *ret_descriptor = descriptor;
        return 0;
    }
    if (descriptor >= 0)
        close(descriptor);
    return error_set(error, ERROR_UNSUPPORTED, "%s is not shared", path);
}

void shared_file_withdraw(const char *path)
{
    unlink(path);
}

/* Nobody but the maker locks it for more than this moment. */
static void sweep_name(const char *name)
{
    bool ours = false;
    char path[SHARED_FILE_PATH_MAX];
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        ours |= is_of_kind(name, kinds[i]);
    if (!ours || snprintf(path, sizeof path, DIRECTORY "/%s", name) >= (int)sizeof path)
        return;
    SCOPED_CLOSE int descriptor = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        unlink(path);
}

void shared_file_sweep(void)
{
    DIR *directory = opendir(DIRECTORY);
    if (directory == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        sweep_name(entry->d_name);
    closedir(directory);
}
