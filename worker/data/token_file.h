/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses token files as llm.c writes them, in memory, for the data format tokens (dataset_tokens.c). The
 * header is 256 little-endian int32 (magic, version, number of tokens). The tokens follow, and nothing else:
 * uint16 for magic 20240520 and version 1, uint32 for magic 20240801 and version 7.
 */
#ifndef COXSWAIN_DATA_TOKEN_FILE_H
#define COXSWAIN_DATA_TOKEN_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct token_file {
    const uint8_t *tokens; /* points into the bytes given */
    int64_t count;
    unsigned token_bytes; /* 2 or 4 */
};

/* ERROR_INVALID if it is not such a file, ERROR_CORRUPT if its length does not match its header. */
int token_file_parse(const uint8_t *bytes, size_t length, struct token_file *ret_file, struct error *error);

int64_t token_file_at(const struct token_file *file, int64_t index);

#endif
