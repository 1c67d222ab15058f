/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/worker/checkpoint/held_disk.h"

#include <pthread.h>

#include "worker/checkpoint/file.h"

static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;
static int (*plain_fsync)(int descriptor);

static int fsync_with_the_disk(int descriptor)
{
    pthread_mutex_lock(&disk);
    pthread_mutex_unlock(&disk);
    return plain_fsync(descriptor);
}

void held_disk_hold(void)
{
    plain_fsync = file_calls.fsync;
    pthread_mutex_lock(&disk);
    file_calls.fsync = fsync_with_the_disk;
}

void held_disk_let_go(void)
{
    pthread_mutex_unlock(&disk);
}

void held_disk_end(void)
{
    file_calls.fsync = plain_fsync;
}
