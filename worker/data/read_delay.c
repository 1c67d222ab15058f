/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/read_delay.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#define DELAY_MAX_MS 86400000
#define LOOK_EVERY_MS 50

static const char *delay_path;
static atomic_long readings; /* that have begun in this process */

void read_delay_follow(const char *path)
{
    delay_path = path;
}

/* The number of this reading, or the last one that there is. */
static long read_delay_ms(long reading)
{
    long ms = 0, next;
    FILE *file = fopen(delay_path, "re");
    if (file == NULL)
        return 0;
    for (long i = 0; i <= reading && fscanf(file, "%ld", &next) == 1; i++)
        ms = next < 0 || next > DELAY_MAX_MS ? 0 : next;
    fclose(file);
    return ms;
}

void read_delay_sleep(void)
{
    if (delay_path == NULL)
        return;
    long reading = atomic_fetch_add(&readings, 1), slept = 0;
    for (long ms = read_delay_ms(reading); slept < ms; ms = read_delay_ms(reading)) {
        long slice = ms - slept < LOOK_EVERY_MS ? ms - slept : LOOK_EVERY_MS;
        nanosleep(&(struct timespec){.tv_nsec = slice * 1000000}, NULL);
        slept += slice;
    }
}
