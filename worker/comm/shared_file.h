/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates and opens files in memory (/dev/shm), which processes on one machine map to share data; shared_ring.h and
 * shared_area.h are built on it. A file's space is reserved when it is created, because without space a later write
 * would kill the process with SIGBUS; if there is not enough, creating fails.
 *
 * The file has a name only while other processes are asked to open it. Its creator holds a lock on it as long as the descriptor is open. A
 * named file that a killed process leaves behind is therefore not locked, and the next process that shares memory removes it.
 */
#ifndef COXSWAIN_COMM_SHARED_FILE_H
#define COXSWAIN_COMM_SHARED_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define SHARED_FILE_PATH_MAX 64

/* Creates a locked file without a name. ERROR_UNSUPPORTED if there is no shared memory, or not enough. */
int shared_file_create(size_t bytes, int *ret_descriptor, struct error *error);
/* Gives the file a name by which other processes can open it; the name consists of `kind` ("ring"), this process's ID and the nonce. Does
 * nothing if the file has that name already. */
int shared_file_publish(int descriptor, const char *kind, uint64_t nonce, char path[SHARED_FILE_PATH_MAX],
                        struct error *error);
/* Opens a file of exactly this size that another process has published. ERROR_FORBIDDEN if the name is not of this kind; ERROR_UNSUPPORTED
 * if there is no such file here. The caller must check the nonce. */
int shared_file_open(const char *path, const char *kind, size_t bytes, int *ret_descriptor, struct error *error);
/* Removes the file's name; processes that have opened it keep their mappings. */
void shared_file_withdraw(const char *path);
/* Removes the named files that processes have left behind that no longer exist. */
void shared_file_sweep(void);

#endif
