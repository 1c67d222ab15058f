/* SPDX-License-Identifier: Apache-2.0
 *
 * clock-shift.so, for LD_PRELOAD: the wall clock of one program, set by a file.
 *
 *   CLOCK_SHIFT=FILE   the seconds by which the program's wall clock is ahead of the machine's, as text ("-3600"); read
 *                      each time the clock is
 *
 * Clocks that cannot be set stay what they are.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t shift_s(void)
{
    char text[24] = "";
    const char *path = getenv("CLOCK_SHIFT");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    return length > 0 ? (time_t)strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*next)(clockid_t, struct timespec *);
    if (!next)
        next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int status = next(clock, now);
    if (status == 0 && clock == CLOCK_REALTIME)
        now->tv_sec += shift_s();
    return status;
}

time_t time(time_t *ret_seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret_seconds)
        *ret_seconds = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict ret_now, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *ret_now = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}
