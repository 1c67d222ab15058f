/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits the host memory that this process's CPU devices hold. A device counts each of its
 * allocations here; one that would exceed the limit fails with ERROR_NO_SPACE and a message.
 * Without this, the kernel would kill a process that exceeds its cgroup's limit, and nothing would
 * say why.
 *
 * There is no limit until host_memory_allow sets one. host_memory_limit_read finds the lowest of
 * the limits of the machine, the process's cgroups and the process.
 */
#ifndef COXSWAIN_DEVICE_HOST_MEMORY_H
#define COXSWAIN_DEVICE_HOST_MEMORY_H

#include <stdint.h>

#include "common/error.h"

/* The origin of the lowest limit: the machine's memory, a cgroup (v2 or v1; the process's own or a parent), or the process's data limit
 * (ulimit -d). */
enum host_memory_limiter { HOST_MEMORY_OF_MACHINE, HOST_MEMORY_OF_CGROUP, HOST_MEMORY_OF_PROCESS };
struct host_memory_limit {
    int64_t bytes;
    enum host_memory_limiter limiter;
};

/* Reads the limit from files under `root`; "" reads this machine's, and the process's own limit.
 * INT64_MAX if there is none. */
struct host_memory_limit host_memory_limit_read(const char *root);
/* Returns the process's anonymous resident memory (RssAnon) in bytes. */
int64_t host_memory_resident(void);

/* Set the bytes that devices may hold in total from now on; return the bytes that they hold now. */
void host_memory_allow(int64_t bytes);
int64_t host_memory_held(void);

/* For devices: reserve bytes, and release them. ERROR_NO_SPACE: more than is allowed. Each
 * host_memory_take that succeeds needs one host_memory_give_back. */
int host_memory_take(int64_t bytes, struct error *error);
void host_memory_give_back(int64_t bytes);

#endif
