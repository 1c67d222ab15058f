/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/read_delay.h"

#include <stddef.h>
#include <stdio.h>
#include <time.h>

#define DELAY_MAX_MS 60000

static const char *delay_path;

void read_delay_follow(const char *path)
{
    delay_path = path;
}

static long read_delay_ms(void)
{
    long ms = 0;
    FILE *file = fopen(delay_path, "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%ld", &ms) != 1 || ms < 0 || ms > DELAY_MAX_MS)
        ms = 0;
    fclose(file);
    return ms;
}

void read_delay_sleep(void)
{
    if (delay_path == NULL)
        return;
    long ms = read_delay_ms();
    if (ms > 0)
        nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}
