/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes and decodes the fields of a message, for the worker's message formats (coordination/message.c,
 * parameter_server/message.c, strategy/peer_message.c). Each format lists its fields once, and the same code runs in
 * both directions, so that they cannot diverge: each function here writes its field if `writes` is set and reads it
 * otherwise. A field that does not fit sets `failed`; from then on all functions do nothing, so the caller checks
 * `failed` once, at the end.
 */
#ifndef COXSWAIN_COMM_CODEC_H
#define COXSWAIN_COMM_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct codec {
    unsigned char *bytes;
    size_t length, at;
    bool writes, failed;
};

void codec_u16(struct codec *codec, uint16_t *value);
void codec_u32(struct codec *codec, uint32_t *value);
void codec_u64(struct codec *codec, uint64_t *value);
void codec_i64(struct codec *codec, int64_t *value);
void codec_bool(struct codec *codec, bool *value);
void codec_double(struct codec *codec, double *value);
/* A text, preceded by its length. `size` is the size in bytes of the array `text`. */
void codec_text(struct codec *codec, char *text, size_t size);

#endif
