/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/codec.h"

#include <string.h>

#include "worker/comm/little_endian.h"

static unsigned char *codec_take(struct codec *codec, size_t size)
{
    if (codec->failed || codec->length - codec->at < size) {
        codec->failed = true;
        return NULL;
    }
    codec->at += size;
    return codec->bytes + codec->at - size;
}

void codec_u16(struct codec *codec, uint16_t *value)
{
    unsigned char *bytes = codec_take(codec, sizeof(*value));
    if (bytes != NULL && codec->writes)
        put_u16(bytes, *value);
    else if (bytes != NULL)
        *value = get_u16(bytes);
}

void codec_u32(struct codec *codec, uint32_t *value)
{
    unsigned char *bytes = codec_take(codec, sizeof(*value));
    if (bytes != NULL && codec->writes)
        put_u32(bytes, *value);
    else if (bytes != NULL)
        *value = get_u32(bytes);
}

void codec_u64(struct codec *codec, uint64_t *value)
{
    unsigned char *bytes = codec_take(codec, sizeof(*value));
    if (bytes != NULL && codec->writes)
        put_u64(bytes, *value);
    else if (bytes != NULL)
        *value = get_u64(bytes);
}

void codec_i64(struct codec *codec, int64_t *value)
{
    uint64_t bits = (uint64_t)*value;
    codec_u64(codec, &bits);
    *value = (int64_t)bits;
}

void codec_bool(struct codec *codec, bool *value)
{
    unsigned char *byte = codec_take(codec, 1);
    if (byte != NULL && codec->writes)
        *byte = *value;
    else if (byte != NULL)
        *value = *byte != 0;
}

void codec_text(struct codec *codec, char *text, size_t size)
{
    uint16_t length = codec->writes ? (uint16_t)strnlen(text, size - 1) : 0;
    codec_u16(codec, &length);
    if (length >= size)
        codec->failed = true;
    unsigned char *bytes = codec_take(codec, length);
    if (bytes == NULL)
        return;
    if (codec->writes) {
        memcpy(bytes, text, length);
    } else {
        memcpy(text, bytes, length);
        text[length] = '\0';
    }
}

void codec_double(struct codec *codec, double *value)
{
    uint64_t bits;
    memcpy(&bits, value, sizeof bits);
    codec_u64(codec, &bits);
    memcpy(value, &bits, sizeof bits);
}
