/* SPDX-License-Identifier: Apache-2.0
 *
 * Carries a stream of bytes in each direction between two processes through memory that both map; a link (link.h) uses
 * it instead of TCP when its two ends are on one machine. There is one lock-free ring buffer per direction, with a
 * single producer and a single consumer.
 *
 * A side that has nothing to do sets its flag before it sleeps. The other side sees the flag after its next write or
 * read, and wakes the sleeper by a byte on the socket between them.
 *
 * Whether two processes share memory is tested, not assumed: one creates the file (shared_file.h) with a nonce in it, and the other must
 * be able to open the file and find the nonce.
 */
#ifndef COXSWAIN_COMM_SHARED_RING_H
#define COXSWAIN_COMM_SHARED_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/comm/shared_file.h"

struct shared_ring;

/* Creates, publishes and maps the file; `path` receives its name. `capacity` is in bytes for each direction, a power of two.
 * ERROR_UNSUPPORTED if there is not enough shared memory. */
int shared_ring_create(uint64_t nonce, size_t capacity, char path[SHARED_FILE_PATH_MAX], struct shared_ring **ret_ring,
                       struct error *error);
/* Opens a ring of exactly this capacity that another process has created. Errors: those of shared_file_open, and ERROR_UNSUPPORTED for a
 * file with another nonce. */
int shared_ring_open(const char *path, uint64_t nonce, size_t capacity, struct shared_ring **ret_ring,
                     struct error *error);
/* Removes the file's name; the mapping stays. For the creator. */
void shared_ring_withdraw(struct shared_ring *ring, const char *path);
void shared_ring_free(struct shared_ring *ring);

/* Write or read as many bytes as possible and return their number. *ret_bell: the other side sleeps and must be woken. */
size_t shared_ring_write(struct shared_ring *ring, const void *bytes, size_t length, bool *ret_bell);
size_t shared_ring_read(struct shared_ring *ring, void *bytes, size_t length, bool *ret_bell);

/* Sets the flag, so that the peer wakes this side when there are bytes to read (`reads`) or there is room to write (`writes`). Returns
 * false, with the flag unset, if that is already so. */
bool shared_ring_may_sleep(struct shared_ring *ring, bool reads, bool writes);

bool shared_ring_readable(const struct shared_ring *ring);

#endif
