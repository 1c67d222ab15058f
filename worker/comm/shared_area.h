/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps memory that two processes on one machine share, so that one writes bulk data and the other reads it in place. A
 * worker uses it for the values and gradients that it exchanges with a parameter server. There is no lock in the
 * memory: the processes must agree by messages which of them may access it.
 *
 * Whether two processes share memory is tested, not assumed: one creates a file (shared_file.h) with a nonce in it, and
 * the other must be able to open the file and find the nonce.
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
    int descriptor; /* in the creator, which holds the lock of the file; -1 in the other process */
};

/* ERROR_UNSUPPORTED if there is not enough shared memory. */
int shared_area_create(uint64_t nonce, size_t length, struct shared_area *ret_area, struct error *error);
/* Gives the file a name by which the other process can open it, until shared_file_withdraw. Does nothing if it has that name already. */
int shared_area_publish(const struct shared_area *area, char path[SHARED_FILE_PATH_MAX], struct error *error);
/* Opens an area of exactly this length that another process has created. Errors: those of shared_file_open, and ERROR_UNSUPPORTED for a
 * file with another nonce. */
int shared_area_open(const char *path, uint64_t nonce, size_t length, struct shared_area *ret_area,
                     struct error *error);
/* Unmaps the memory; in the creator, also gives up the lock. */
void shared_area_release(struct shared_area *area);

#endif
