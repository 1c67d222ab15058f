/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps files for reading, safe against truncation: if somebody makes a mapped file
 * shorter, a program that reads the missing bytes is normally killed by SIGBUS. Here they
 * read as zeros, and mapped_file_check, to be called after reading, returns an error. Bytes
 * that the disk fails to read are treated the same way.
 *
 * The first call of mapped_file_open installs a handler for SIGBUS. Signals that concern
 * other memory do what they did before.
 */
#ifndef COXSWAIN_COMMON_DATA_MAPPED_FILE_H
#define COXSWAIN_COMMON_DATA_MAPPED_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define MAPPED_FILES_MAX 16384

struct mapped_file;

/* Maps a whole regular file of at least one byte. The descriptor may be closed afterwards.
 * ERROR_TOO_LARGE if MAPPED_FILES_MAX files are open. */
int mapped_file_open(int descriptor, const char *path, struct mapped_file **ret_file, struct error *error);
void mapped_file_close(struct mapped_file *file);

const uint8_t *mapped_file_bytes(const struct mapped_file *file);
size_t mapped_file_length(const struct mapped_file *file);

/* Fails with ERROR_NOT_FOUND if the file is shorter than when it was opened, or if a part of it could not be read. Looks up the file's size
 * only if `round` differs from that of the last call for this file: a caller that checks a file often gets a number from mapped_file_round,
 * which returns a new one each time, and passes it to all calls that may share one look. May be called from any thread. */
int mapped_file_check(struct mapped_file *file, uint64_t round, struct error *error);
uint64_t mapped_file_round(void);

#endif
