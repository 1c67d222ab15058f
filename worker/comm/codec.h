/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of a message into bytes and back. One walk over the fields serves both
 * directions, so that they cannot drift apart: each codec_… writes its field when
 * `writes`, else reads it. A field that does not fit sets `failed`, and nothing is
 * done from then on.
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
/* Text with its length in front; `size` is that of the field. */
void codec_text(struct codec *codec, char *text, size_t size);

#endif
