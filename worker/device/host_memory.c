/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/host_memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/memory.h"
#include "common/scope.h"

#define LINE_MAX_BYTES 4096
#define MIB (1024 * 1024)

/* ---------------------------------------------------------------- what the machine says */

/* Reads a limit. "max", or anything else that is not a number, means no limit; v1 writes a
 * number near 2^63. */
static int64_t read_limit(const char *path)
{
    FILE *file = fopen(path, "re");
    long long number = 0;
    int fields = 0;
    if (file) {
        fields = fscanf(file, "%lld", &number);
        fclose(file);
    }
    return fields == 1 && number > 0 ? number : INT64_MAX;
}

/* The least of the limits of a group and of those above it, up to the mount. A container sees its own group as the mount, under a
 * path that is not there: then the mount is all there is. */
static int64_t least_limit(const char *mount, const char *group, const char *file)
{
    SCOPED_FREE char *at = memory_copy_string(group);
    int64_t least = INT64_MAX;
    for (;;) {
        SCOPED_FREE char *path = memory_format("%s%s/%s", mount, strcmp(at, "/") == 0 ? "" : at, file);
        int64_t limit = read_limit(path);
        least = limit < least ? limit : least;
        char *slash = strrchr(at, '/');
        if (slash == NULL)
            return least;
        *slash = '\0';
    }
}

/* Reads the limit that a line of /proc/self/cgroup names: "0::/a/b" is v2, "9:memory:/a/b" is
 * v1. */
static int64_t line_limit(const char *root, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (group == NULL)
        return INT64_MAX;
    *group++ = '\0';
    controllers++;
    bool unified = *controllers == '\0';
    if (!unified && strcmp(controllers, "memory") != 0)
        return INT64_MAX;
    SCOPED_FREE char *mount = memory_format("%s/sys/fs/cgroup%s", root, unified ? "" : "/memory");
    return least_limit(mount, group, unified ? "memory.max" : "memory.limit_in_bytes");
}

static int64_t cgroup_limit(const char *root)
{
    SCOPED_FREE char *path = memory_format("%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    int64_t least = INT64_MAX;
    char line[LINE_MAX_BYTES];
    while (file && fgets(line, sizeof line, file)) {
        int64_t limit = line_limit(root, line);
        least = limit < least ? limit : least;
    }
    if (file)
        fclose(file);
    return least;
}

/* Reads a value from a file of lines such as "MemTotal:  16384 kB"; -1 if it is not there. */
static int64_t read_kilobytes(const char *path, const char *name)
{
    FILE *file = fopen(path, "re");
    char line[LINE_MAX_BYTES];
    int64_t bytes = -1;
    while (file && bytes < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            bytes = strtoll(line + strlen(name) + 1, NULL, 10) * 1024;
    if (file)
        fclose(file);
    return bytes;
}

static int64_t process_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur > (rlim_t)INT64_MAX)
        return INT64_MAX;
    return (int64_t)limit.rlim_cur;
}

struct host_memory_limit host_memory_limit_read(const char *root)
{
    SCOPED_FREE char *path = memory_format("%s/proc/meminfo", root);
    int64_t machine = read_kilobytes(path, "MemTotal"), cgroup = cgroup_limit(root);
    struct host_memory_limit limit = {.bytes = machine < 0 ? INT64_MAX : machine};
    if (cgroup < limit.bytes)
        limit = (struct host_memory_limit){cgroup, HOST_MEMORY_OF_CGROUP};
    if (*root == '\0' && process_limit() < limit.bytes)
        limit = (struct host_memory_limit){process_limit(), HOST_MEMORY_OF_PROCESS};
    return limit;
}

int64_t host_memory_resident(void)
{
    int64_t bytes = read_kilobytes("/proc/self/status", "RssAnon");
    return bytes < 0 ? 0 : bytes;
}

/* ---------------------------------------------------------------- what devices hold */

static _Atomic int64_t allowed = INT64_MAX, held;

void host_memory_allow(int64_t bytes)
{
    allowed = bytes;
}

int64_t host_memory_held(void)
{
    return held;
}

int host_memory_take(int64_t bytes, struct error *error)
{
    int64_t before = atomic_fetch_add(&held, bytes);
    if (bytes <= allowed && before <= allowed - bytes)
        return 0;
    atomic_fetch_sub(&held, bytes);
    return error_set(error, ERROR_NO_SPACE, "no memory for %lld MiB more: %lld MiB are held, of %lld MiB allowed",
                     (long long)(bytes / MIB), (long long)(before / MIB), (long long)(allowed / MIB));
}

void host_memory_give_back(int64_t bytes)
{
    atomic_fetch_sub(&held, bytes);
}
