/* SPDX-License-Identifier: Apache-2.0
 *
 * Two rings of bytes in a file that two processes map, one for each direction:
 * single producer, single consumer, no locks. A side that finds nothing to do
 * raises its flag before it sleeps; the other side sees the flag after its next
 * move and rings the bell (a byte on the socket between them).
 *
 * Whether two processes share memory is never assumed: the one side creates the
 * file (shared_file.h) with a nonce in it, the other must be able to open it and find the nonce.
 */
#ifndef COXSWAIN_COMM_SHARED_RING_H
#define COXSWAIN_COMM_SHARED_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/comm/shared_file.h"

struct shared_ring;

/* Creates the file, with all its room, and maps it; `path` holds its name (ERROR_UNSUPPORTED where there is no memory for it).
 * `capacity`: the bytes of one direction, a power of two. */
int shared_ring_create(uint64_t nonce, size_t capacity, char path[SHARED_FILE_PATH_MAX], struct shared_ring **ret_ring,
                       struct error *error);
/* Opens what another process has created, of that very capacity. Only names that shared_ring_create makes are accepted. */
int shared_ring_open(const char *path, uint64_t nonce, size_t capacity, struct shared_ring **ret_ring,
                     struct error *error);
/* The creator removes the name; the mapping stays. */
void shared_ring_withdraw(struct shared_ring *ring, const char *path);
void shared_ring_free(struct shared_ring *ring);

/* As much as fits; the number of bytes moved. *ret_bell: the other side sleeps and must be woken. */
size_t shared_ring_write(struct shared_ring *ring, const void *bytes, size_t length, bool *ret_bell);
size_t shared_ring_read(struct shared_ring *ring, void *bytes, size_t length, bool *ret_bell);

/* Announces sleep until bytes are there (`reads`) or there is room (`writes`), so that the peer rings; false when there is
 * something to do after all (nothing is announced then). */
bool shared_ring_may_sleep(struct shared_ring *ring, bool reads, bool writes);

bool shared_ring_readable(const struct shared_ring *ring);

#endif
