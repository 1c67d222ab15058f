/* SPDX-License-Identifier: Apache-2.0
 *
 * slow-disk.so, for LD_PRELOAD: makes a program's disk slow.
 *
 *   SLOW_DISK=FILE   FILE has the line "MS WORD…": each write, read and fsync of a regular file with one of the words in its path
 *                    takes MS milliseconds longer. A waiting call continues once the file names fewer milliseconds or is gone.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOK_EVERY_MS 20

static ssize_t (*next_write)(int, const void *, size_t);
static ssize_t (*next_read)(int, void *, size_t);
static int (*next_fsync)(int);

__attribute__((constructor)) static void find_next(void)
{
    next_write = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    next_read = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    next_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
}

static bool read_text(const char *path, char *text, size_t room)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : next_read(file, text, room - 1);
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* For this file, now. */
static long delay_ms(const char *name)
{
    char text[256], *rest = NULL;
    const char *path = getenv("SLOW_DISK");
    if (path == NULL || !read_text(path, text, sizeof text))
        return 0;
    const char *ms = strtok_r(text, " \n", &rest);
    for (const char *word = strtok_r(NULL, " \n", &rest); ms && word; word = strtok_r(NULL, " \n", &rest))
        if (strstr(name, word))
            return strtol(ms, NULL, 10);
    return 0;
}

static void take_time(int descriptor)
{
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (length <= 0 || name[0] != '/')
        return;
    name[length] = '\0';
    for (long waited = 0; waited < delay_ms(name); waited += LOOK_EVERY_MS)
        nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY_MS * 1000000L}, NULL);
}

ssize_t write(int descriptor, const void *bytes, size_t length)
{
    take_time(descriptor);
    return next_write(descriptor, bytes, length);
}

ssize_t read(int descriptor, void *bytes, size_t length)
{
    take_time(descriptor);
    return next_read(descriptor, bytes, length);
}

int fsync(int descriptor)
{
    take_time(descriptor);
    return next_fsync(descriptor);
}
