/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/shared_area.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/scope.h"

#define KIND "area"
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

int shared_area_create(uint64_t nonce, size_t length, struct shared_area *ret_area, struct error *error)
{
    int descriptor;
    shared_file_sweep();
    if (shared_file_create(HEADER_BYTES + length, &descriptor, error) < 0)
        return -1;
    if (map_file(descriptor, length, ret_area, NULL) < 0) {
        close(descriptor);
        return error_set(error, ERROR_UNSUPPORTED, "not enough memory to map %zu bytes that are shared with a peer",
                         length);
    }
    ret_area->descriptor = descriptor;
    memcpy(ret_area->mapping, &nonce, sizeof nonce);
    return 0;
}

int shared_area_publish(const struct shared_area *area, char path[SHARED_FILE_PATH_MAX], struct error *error)
{
    uint64_t nonce;
    memcpy(&nonce, area->mapping, sizeof nonce);
    return shared_file_publish(area->descriptor, KIND, nonce, path, error);
}

int shared_area_open(const char *path, uint64_t nonce, size_t length, struct shared_area *ret_area, struct error *error)
{
    struct shared_area area;
    uint64_t found;
    SCOPED_CLOSE int descriptor = -1;
    if (shared_file_open(path, KIND, HEADER_BYTES + length, &descriptor, error) < 0 ||
        map_file(descriptor, length, &area, error) < 0)
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
