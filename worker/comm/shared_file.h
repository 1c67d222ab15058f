/* SPDX-License-Identifier: Apache-2.0
 *
 * A file in memory that processes of one machine share: its room is reserved when
 * it is made, since where there is too little a later write would end the process.
 *
 * It has a name only while others are asked to open it. Its maker holds a lock on it as long as the
 * descriptor is open: what a killed process leaves behind is swept away by the
 * next that shares memory on the machine.
 */
#ifndef COXSWAIN_COMM_SHARED_FILE_H
#define COXSWAIN_COMM_SHARED_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define SHARED_FILE_PATH_MAX 64

/* Without a name yet, locked. ERROR_UNSUPPORTED where there is no memory for it, or none to share at all. */
int shared_file_create(size_t bytes, int *ret_descriptor, struct error *error);
/* Gives it a name, of its kind ("ring"), our process and the nonce; fine when it has that one. */
int shared_file_publish(int descriptor, const char *kind, uint64_t nonce, char path[SHARED_FILE_PATH_MAX],
                        struct error *error);
/* Opens what another process has published, of that very size. ERROR_FORBIDDEN for names of another kind, ERROR_UNSUPPORTED for
 * what is not shared. The caller looks for the nonce. */
int shared_file_open(const char *path, const char *kind, size_t bytes, int *ret_descriptor, struct error *error);
void shared_file_withdraw(const char *path);
/* Unlinks the files whose makers are gone. */
void shared_file_sweep(void);

#endif
