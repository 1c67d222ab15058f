/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "worker/device/device.h"

/* The quota of a cgroup in whole CPUs, rounded up; `none` when there is no quota. */
static int quota_v2(int none)
{
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (!file)
        return none;
    long quota = 0, period = 0;
    int fields = fscanf(file, "%ld %ld", &quota, &period); /* "max 100000" reads no field */
    fclose(file);
    return fields == 2 && quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : none;
}

static long read_number(const char *path)
{
    FILE *file = fopen(path, "re");
    long number = -1;
    if (file) {
        if (fscanf(file, "%ld", &number) != 1)
            number = -1;
        fclose(file);
    }
    return number;
}

static int quota_v1(int none)
{
    long quota = read_number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    long period = read_number("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    return quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : none;
}

int device_available_cpus(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    int cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int quota = quota_v1(quota_v2(cpus));
    if (quota < cpus)
        cpus = quota;
    return cpus > 0 ? cpus : 1;
}
