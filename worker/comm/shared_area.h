/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that two processes map, for bulk data that one writes and the other
 * reads in place; who may touch it when is agreed by messages elsewhere.
 *
 * As with shared_ring, sharing is never assumed: the one side creates the file
 * with a nonce in it, the other must be able to open it and find the nonce.
 */
#ifndef COXSWAIN_COMM_SHARED_AREA_H
#define COXSWAIN_COMM_SHARED_AREA_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define SHARED_AREA_PATH_MAX 64

struct shared_area {
    unsigned char *bytes; /* page-aligned, `length` of them */
    size_t length;
    void *mapping;
};

/* Creates the file in /dev/shm and maps it; `path` holds its name. ERROR_UNSUPPORTED where there is no such directory or no
 * room in it. */
int shared_area_create(uint64_t nonce, size_t length, char path[SHARED_AREA_PATH_MAX], struct shared_area *ret_area,
                       struct error *error);
/* Opens what another process has created; its length must be `length`. Only names that shared_area_create makes are accepted. */
int shared_area_open(const char *path, uint64_t nonce, size_t length, struct shared_area *ret_area,
                     struct error *error);
/* Removes the name; mappings stay. */
void shared_area_unlink(const char *path);
void shared_area_release(struct shared_area *area);

#endif
