/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as the body of a watch. The first byte selects where they are cut, on which the events must not depend.
 */
#include <stdint.h>
#include <stdlib.h>

#include "operator/kube/watch_stream.h"

#define OBJECT_MAX 4096

static int count(void *context, const struct watch_event *event, struct error *error)
{
    (void)error;
    *(size_t *)context = *(size_t *)context * 31 + (size_t)event->type + json_count(event->object);
    return 0;
}

static int feed(const char *bytes, size_t length, size_t piece, size_t *ret_digest)
{
    struct watch_stream stream;
    int result = 0;
    *ret_digest = 7;
    watch_stream_init(&stream, OBJECT_MAX, count, ret_digest);
    for (size_t at = 0; at < length && result == 0; at += piece)
        result = watch_stream_feed(&stream, bytes + at, length - at < piece ? length - at : piece, NULL);
    watch_stream_release(&stream);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t cut_digest, whole_digest;
    if (size < 2)
        return 0;
    const char *bytes = (const char *)data + 1;
    int cut = feed(bytes, size - 1, (size_t)data[0] % 64 + 1, &cut_digest);
    int whole = feed(bytes, size - 1, size, &whole_digest);
    if (cut != whole || cut_digest != whole_digest)
        abort();
    return 0;
}
