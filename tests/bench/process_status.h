/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel says of a process's memory.
 */
#ifndef COXSWAIN_TESTS_BENCH_PROCESS_STATUS_H
#define COXSWAIN_TESTS_BENCH_PROCESS_STATUS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* "RssAnon:", "VmHWM:" and so on, in kB; -1 when the process has ended. */
static inline long process_status_kb(pid_t process, const char *key)
{
    char line[128], path[64];
    long kb = -1;
    size_t length = strlen(key);
    snprintf(path, sizeof path, "/proc/%d/status", (int)process);
    FILE *status = fopen(path, "r");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, key, length) == 0)
            kb = strtol(line + length, NULL, 10);
    if (status)
        fclose(status);
    return kb;
}

#endif
