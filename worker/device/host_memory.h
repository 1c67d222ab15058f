/* SPDX-License-Identifier: Apache-2.0
 *
 * How much memory this process may have, and how much of it its CPU devices hold.
 * A process that takes more than its cgroup allows is killed without a word; so
 * what devices are asked for beyond the limit is refused with ERROR_NO_SPACE.
 */
#ifndef COXSWAIN_DEVICE_HOST_MEMORY_H
#define COXSWAIN_DEVICE_HOST_MEMORY_H

#include <stdint.h>

#include "common/error.h"

/* Who sets the least limit: the machine by what it has, a cgroup (v2 or v1; the process's own or one above it), or the process's
 * own limit on data (ulimit -d). */
enum host_memory_limiter { HOST_MEMORY_OF_MACHINE, HOST_MEMORY_OF_CGROUP, HOST_MEMORY_OF_PROCESS };
struct host_memory_limit {
    int64_t bytes;
    enum host_memory_limiter limiter;
};

/* As the files under `root` say: "" for this machine's own, with the process's limit. INT64_MAX where they say nothing. */
struct host_memory_limit host_memory_limit_read(const char *root);
/* What the process has besides mapped files, now. */
int64_t host_memory_resident(void);

/* What devices may hold in all from now on, and hold now. */
void host_memory_allow(int64_t bytes);
int64_t host_memory_held(void);

/* For devices: ERROR_NO_SPACE when it would be more than is allowed; each taking has its giving back. */
int host_memory_take(int64_t bytes, struct error *error);
void host_memory_give_back(int64_t bytes);

#endif
