/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that a process does not change its environment once it has threads: setenv() may move it while another thread reads.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned threads(void)
{
    unsigned count = 0;
    DIR *directory = opendir("/proc/self/task");
    if (!directory)
        return 1;
    for (const struct dirent *entry; (entry = readdir(directory));)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

/* Replaces the C library's. */
int setenv(const char *name, const char *value, int overwrite)
{
    int (*change)(const char *, const char *, int);
    if (threads() > 1) {
        fprintf(stderr, "emulated: %s is set in the environment of a process that has threads\n", name);
        abort();
    }
    void *found = dlsym(RTLD_NEXT, "setenv");
    memcpy(&change, &found, sizeof change);
    return change(name, value, overwrite);
}
