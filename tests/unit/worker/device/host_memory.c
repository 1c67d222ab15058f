/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/host_memory.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/memory.h"
#include "worker/device/device.h"

#define GIB ((int64_t)1 << 30)

static char root[64];

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

static void make_root(void)
{
    snprintf(root, sizeof root, "/tmp/coxswain-memory-XXXXXX");
    cr_assert_not_null(mkdtemp(root));
}

static void remove_root(void)
{
    nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* With the folders on its way. */
static void put(const char *path, const char *text)
{
    SCOPED_FREE char *whole = memory_format("%s%s", root, path);
    for (char *slash = whole + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        mkdir(whole, 0700);
    }
    FILE *file = fopen(whole, "w");
    cr_assert_not_null(file, "%s", whole);
    fputs(text, file);
    fclose(file);
}

static void expect_limit(int64_t bytes, enum host_memory_limiter limiter)
{
    struct host_memory_limit limit = host_memory_limit_read(root);
    cr_expect_eq(limit.bytes, bytes, "%lld, not %lld", (long long)limit.bytes, (long long)bytes);
    cr_expect_eq(limit.limiter, limiter);
}

Test(host_memory, without_files_there_is_no_limit, .init = make_root, .fini = remove_root)
{
    expect_limit(INT64_MAX, HOST_MEMORY_OF_MACHINE);
}

Test(host_memory, the_machine_limits_where_no_group_does, .init = make_root, .fini = remove_root)
{
    put("/proc/meminfo", "MemFree:  1 kB\nMemTotal:       16777216 kB\nMemTotals: 3 kB\n");
    expect_limit(16 * GIB, HOST_MEMORY_OF_MACHINE);
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/memory.max", "max\n");
    expect_limit(16 * GIB, HOST_MEMORY_OF_MACHINE);
    put("/sys/fs/cgroup/memory.max", "34359738368\n"); /* more than there is */
    expect_limit(16 * GIB, HOST_MEMORY_OF_MACHINE);
}

/* In a container the group is the mount. */
Test(host_memory, the_limit_of_a_container_counts, .init = make_root, .fini = remove_root)
{
    put("/proc/meminfo", "MemTotal:       16777216 kB\n");
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/memory.max", "1073741824\n");
    expect_limit(GIB, HOST_MEMORY_OF_CGROUP);
    put("/proc/self/cgroup", "0::/../../kubepods/pod7\n"); /* a path from outside the namespace */
    expect_limit(GIB, HOST_MEMORY_OF_CGROUP);
}

Test(host_memory, the_least_of_the_groups_above_counts, .init = make_root, .fini = remove_root)
{
    put("/proc/meminfo", "MemTotal:       16777216 kB\n");
    put("/proc/self/cgroup", "0::/kubepods/pod7/worker\n");
    put("/sys/fs/cgroup/kubepods/memory.max", "8589934592\n");
    put("/sys/fs/cgroup/kubepods/pod7/memory.max", "2147483648\n");
    put("/sys/fs/cgroup/kubepods/pod7/worker/memory.max", "4294967296\n");
    expect_limit(2 * GIB, HOST_MEMORY_OF_CGROUP);
}

Test(host_memory, the_first_version_of_cgroups_counts, .init = make_root, .fini = remove_root)
{
    put("/proc/meminfo", "MemTotal:       16777216 kB\n");
    put("/proc/self/cgroup", "12:cpu,cpuacct:/a\n9:memory:/a/b\nno line\n1:name=systemd:/x\n0::/a\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "3221225472\n");
    expect_limit(3 * GIB, HOST_MEMORY_OF_CGROUP);
    put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "-1\n");
    expect_limit(16 * GIB, HOST_MEMORY_OF_MACHINE);
}

Test(host_memory, this_machine_has_a_limit_and_this_process_has_memory)
{
    cr_expect_gt(host_memory_limit_read("").bytes, 1 << 20);
    cr_expect_lt(host_memory_limit_read("").bytes, INT64_MAX);
    cr_expect_gt(host_memory_resident(), 1 << 12);
}

/* Refused before it is touched, and again allowed when something has gone. */
Test(host_memory, a_device_holds_no_more_than_is_allowed)
{
    struct error error = ERROR_INIT;
    struct device *device;
    void *large, *larger, *small;
    cr_assert_eq(device_open(&(struct device_options){.threads = 1}, &device, NULL), 0);
    int64_t before = host_memory_held();
    host_memory_allow(before + (8 << 20));
    cr_assert_eq(device_allocate(device, MEMORY_DEVICE, 5 << 20, &large, &error), 0);
    cr_expect_geq(host_memory_held(), before + (5 << 20));
    cr_expect_eq(device_allocate(device, MEMORY_SHARED, 4 << 20, &larger, &error), -1);
    cr_expect_eq(error.kind, ERROR_NO_SPACE);
    cr_expect(strstr(error.message, "no memory for 4 MiB more"), "%s", error.message);
    cr_assert_eq(device_allocate(device, MEMORY_SHARED, 1 << 20, &small, NULL), 0);
    device_free(device, large);
    cr_assert_eq(device_allocate(device, MEMORY_SHARED, 4 << 20, &larger, NULL), 0);
    device_free(device, larger);
    device_free(device, small);
    cr_expect_eq(host_memory_held(), before);
    host_memory_allow(INT64_MAX);
    device_close(device);
}

/* The flags that the kernel keeps of the mapping around `memory`; false where it does not tell. */
static bool read_mapping_flags(const void *memory, char *flags, size_t size)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    unsigned long from, end, at = (unsigned long)memory;
    char line[512];
    bool within = false, found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%lx-%lx ", &from, &end) == 2)
            within = from <= at && at < end;
        found = within && strncmp(line, "VmFlags:", strlen("VmFlags:")) == 0;
    }
    snprintf(flags, size, "%s", found ? line : "");
    if (file)
        fclose(file);
    return found;
}

Test(host_memory, long_vectors_of_a_device_are_in_large_pages)
{
    struct device *device;
    void *memory;
    char flags[512];
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) != 0)
        cr_skip_test("this kernel has no large pages");
    cr_assert_eq(device_open(&(struct device_options){.threads = 1}, &device, NULL), 0);
    cr_assert_eq(device_allocate(device, MEMORY_DEVICE, 16 << 20, &memory, NULL), 0);
    if (!read_mapping_flags((char *)memory + (8 << 20), flags, sizeof flags))
        cr_skip_test("this kernel tells nothing of mappings");
    cr_expect(strstr(flags, " hg"), "%s", flags);
    device_free(device, memory);
    device_close(device);
}
