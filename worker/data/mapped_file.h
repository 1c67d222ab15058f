/* SPDX-License-Identifier: Apache-2.0
 *
 * A file mapped for reading, which somebody may make shorter meanwhile: whoever
 * reads what is gone would be killed by SIGBUS. Here such bytes read as zeros, and
 * mapped_file_check, to be asked after the reading, says that they were none. The same
 * holds for what the disk fails to read.
 *
 * The first opening takes over SIGBUS; elsewhere it means what it meant before.
 */
#ifndef COXSWAIN_DATA_MAPPED_FILE_H
#define COXSWAIN_DATA_MAPPED_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define MAPPED_FILES_MAX 16384

struct mapped_file;

/* All of a regular file that has at least one byte; the descriptor may be closed after it. ERROR_TOO_LARGE: too many at a time. */
int mapped_file_open(int descriptor, const char *path, struct mapped_file **ret_file, struct error *error);
void mapped_file_close(struct mapped_file *file);

const uint8_t *mapped_file_bytes(const struct mapped_file *file);
size_t mapped_file_length(const struct mapped_file *file);

/* ERROR_NOT_FOUND once a part of it is gone. Looks at the file again, but only once in each round; numbers of rounds are
 * never used twice. From any thread. */
int mapped_file_check(struct mapped_file *file, uint64_t round, struct error *error);
uint64_t mapped_file_round(void);

#endif
