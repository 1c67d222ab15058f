/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as the body of a list. The first byte selects where they are cut, on which the items must not depend.
 */
#include <stdint.h>
#include <stdlib.h>

#include "operator/kube/list_stream.h"

#define OBJECT_MAX 4096

static int count(void *context, const struct json *item, struct error *error)
{
    (void)error;
    *(size_t *)context = *(size_t *)context * 31 + json_count(item);
    return 0;
}

static int read_list(const char *bytes, size_t length, size_t piece, size_t *ret_digest)
{
    struct list_stream stream;
    SCOPED_JSON *envelope = NULL;
    int result = 0;
    *ret_digest = 7;
    list_stream_init(&stream, OBJECT_MAX, count, ret_digest);
    for (size_t at = 0; at < length && result == 0; at += piece)
        result = list_stream_feed(&stream, bytes + at, length - at < piece ? length - at : piece, NULL);
    if (result == 0)
        result = list_stream_finish(&stream, &envelope, NULL);
    list_stream_release(&stream);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t cut_digest, whole_digest;
    if (size < 2)
        return 0;
    const char *bytes = (const char *)data + 1;
    int cut = read_list(bytes, size - 1, (size_t)data[0] % 64 + 1, &cut_digest);
    int whole = read_list(bytes, size - 1, size, &whole_digest);
    if (cut != whole || cut_digest != whole_digest)
        abort();
    return 0;
}
