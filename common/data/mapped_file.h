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

/* Fails with ERROR_NOT_FOUND if a part of the file has been missing when it was read. `round` limits how often the file's size is looked up:
 * once for all calls with the same number. mapped_file_round returns a new number. Both functions may be called from any thread. */
int mapped_file_check(struct mapped_file *file, uint64_t round, struct error *error);
uint64_t mapped_file_round(void);

#endif
