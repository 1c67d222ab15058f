/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/shared_area.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"

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

int shared_area_create(uint64_t nonce, size_t length, char path[SHARED_AREA_PATH_MAX], struct shared_area *ret_area,
                       struct error *error)
{
    int descriptor = memfd_create("coxswain-area", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0)
        return error_set(error, ERROR_UNSUPPORTED, "no shared memory: %s", strerror(errno));
    /* Reserved now: where there is too little, a later write would end the process. Sealed, so that nobody can take it away. */
    int number = posix_fallocate(descriptor, 0, (off_t)(HEADER_BYTES + length));
    if (number != 0 || fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0 ||
        map_file(descriptor, length, ret_area, error) < 0) {
        close(descriptor);
        return error_set(error, ERROR_UNSUPPORTED, "no shared memory of %zu bytes", length);
    }
    ret_area->descriptor = descriptor;
    memcpy(ret_area->mapping, &nonce, sizeof nonce);
    snprintf(path, SHARED_AREA_PATH_MAX, "/proc/%d/fd/%d", (int)getpid(), descriptor);
    return 0;
}

static bool is_descriptor_path(const char *path)
{
    int process, number, length = 0;
    return sscanf(path, "/proc/%9d/fd/%9d%n", &process, &number, &length) == 2 && path[length] == '\0';
}

/* A file that could be cut short would end us at the next access. */
static bool is_sound(int descriptor, size_t length)
{
    struct stat status;
    if (descriptor < 0 || fstat(descriptor, &status) < 0 || !S_ISREG(status.st_mode) ||
        status.st_size != (off_t)(HEADER_BYTES + length))
        return false;
    int seals = fcntl(descriptor, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK);
}

int shared_area_open(const char *path, uint64_t nonce, size_t length, struct shared_area *ret_area, struct error *error)
{
    struct shared_area area;
    uint64_t found;
    if (!is_descriptor_path(path))
        return error_set(error, ERROR_FORBIDDEN, "%s is not an area of ours", path);
    SCOPED_CLOSE int descriptor = open(path, O_RDWR | O_CLOEXEC);
    if (!is_sound(descriptor, length))
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
