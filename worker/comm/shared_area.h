/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that two processes map, for bulk data that one writes and the other
 * reads in place; who may touch it when is agreed by messages elsewhere.
 *
 * As with shared_ring, sharing is never assumed: the one side creates a file
 * (shared_file.h) with a nonce in it, the other must be able to open it and find the nonce.
 */
#ifndef COXSWAIN_COMM_SHARED_AREA_H
#define COXSWAIN_COMM_SHARED_AREA_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/comm/shared_file.h"

struct shared_area {
    unsigned char *bytes; /* page-aligned, `length` of them */
    size_t length;
    void *mapping;
    int descriptor; /* of the creator, which has the file locked; -1 */
};

/* ERROR_UNSUPPORTED where there is no memory for it. */
int shared_area_create(uint64_t nonce, size_t length, struct shared_area *ret_area, struct error *error);
/* Gives it a name until shared_file_withdraw; fine when it has one. */
int shared_area_publish(const struct shared_area *area, char path[SHARED_FILE_PATH_MAX], struct error *error);
/* Opens what another process has created, of that very length. Only names that shared_area_publish gives are accepted. */
int shared_area_open(const char *path, uint64_t nonce, size_t length, struct shared_area *ret_area,
                     struct error *error);
void shared_area_release(struct shared_area *area);

#endif
