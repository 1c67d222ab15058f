/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/shared_area.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"

#define DIRECTORY "/dev/shm"
#define NAME_PREFIX "coxswain-area-"
/* In front of the bytes: the nonce. */
#define HEADER_BYTES 4096

static int map_file(int descriptor, size_t length, struct shared_area *ret_area, struct error *error)
{
    void *mapping = mmap(NULL, HEADER_BYTES + length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (mapping == MAP_FAILED)
        return error_set_errno(error, "map %zu shared bytes", length);
    *ret_area = (struct shared_area){
        .bytes = (unsigned char *)mapping + HEADER_BYTES, .length = length, .mapping = mapping, .descriptor = -1};
    return 0;
}

/* Unlinks a name whose maker is gone. Nobody but the maker locks it for more than this moment. */
static void sweep_name(const char *name)
{
    char path[SHARED_AREA_PATH_MAX];
    if (strncmp(name, NAME_PREFIX, strlen(NAME_PREFIX)) != 0 ||
        snprintf(path, sizeof path, DIRECTORY "/%s", name) >= (int)sizeof path)
        return;
    SCOPED_CLOSE int descriptor = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        unlink(path);
}

static void sweep(void)
{
    DIR *directory = opendir(DIRECTORY);
    if (directory == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        sweep_name(entry->d_name);
    closedir(directory);
}

int shared_area_create(uint64_t nonce, size_t length, struct shared_area *ret_area, struct error *error)
{
    sweep();
    int descriptor = open(DIRECTORY, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor < 0)
        return error_set(error, ERROR_UNSUPPORTED, "no shared memory in " DIRECTORY ": %s", strerror(errno));
    /* Reserved now: where there is too little, a later write would end the process. */
    int number = posix_fallocate(descriptor, 0, (off_t)(HEADER_BYTES + length));
    if (number != 0 || map_file(descriptor, length, ret_area, error) < 0) {
        close(descriptor);
        return error_set(error, ERROR_UNSUPPORTED, "no shared memory of %zu bytes in " DIRECTORY, length);
    }
    flock(descriptor, LOCK_EX | LOCK_NB);
    ret_area->descriptor = descriptor;
    memcpy(ret_area->mapping, &nonce, sizeof nonce);
    return 0;
}

int shared_area_publish(const struct shared_area *area, char path[SHARED_AREA_PATH_MAX], struct error *error)
{
    uint64_t nonce;
    char own[64];
    memcpy(&nonce, area->mapping, sizeof nonce);
    snprintf(path, SHARED_AREA_PATH_MAX, DIRECTORY "/" NAME_PREFIX "%016llx", (unsigned long long)nonce);
    snprintf(own, sizeof own, "/proc/self/fd/%d", area->descriptor);
    if (linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0 && errno != EEXIST)
        return error_set_errno(error, "give shared memory the name %s", path);
    return 0;
}

void shared_area_withdraw(const char *path)
{
    unlink(path);
}

int shared_area_open(const char *path, uint64_t nonce, size_t length, struct shared_area *ret_area, struct error *error)
{
    struct shared_area area;
    struct stat status;
    uint64_t found;
    if (strncmp(path, DIRECTORY "/" NAME_PREFIX, strlen(DIRECTORY "/" NAME_PREFIX)) != 0 ||
        strchr(path + strlen(DIRECTORY "/"), '/') != NULL)
        return error_set(error, ERROR_FORBIDDEN, "%s is not an area of ours", path);
    SCOPED_CLOSE int descriptor = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &status) < 0 || !S_ISREG(status.st_mode) ||
        status.st_size != (off_t)(HEADER_BYTES + length))
        return error_set(error, ERROR_UNSUPPORTED, "%s is not shared", path);
    if (map_file(descriptor, length, &area, error) < 0)
        return -1;
    memcpy(&found, area.mapping, sizeof found);
    if (found != nonce) {
        shared_area_release(&area);
        return error_set(error, ERROR_UNSUPPORTED, "%s is another area", path);
    }
    *ret_area = area;
    return 0;
}

void shared_area_release(struct shared_area *area)
{
    if (area->mapping)
        munmap(area->mapping, HEADER_BYTES + area->length);
    if (area->mapping && area->descriptor >= 0)
        close(area->descriptor);
    *area = (struct shared_area){0};
}
