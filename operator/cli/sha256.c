/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/sha256.h"

#include <zlib.h>

#include "common/scope.h"

#define READ_CHUNK (64 * 1024)

static void gzclose_scope(gzFile *file)
{
    if (*file)
        gzclose(*file);
}

int sha256_unpacked(const char *path, size_t ceiling, char ret_text[DIGEST_TEXT_MAX], struct error *error)
{
    SCOPED(gzclose_scope) gzFile file = gzopen(path, "rb");
    struct digest *digest = NULL;
    if (!file)
        return error_set_errno(error, "open %s", path);
    if (digest_start(DIGEST_SHA256, &digest, error) < 0)
        return -1;
    unsigned char bytes[READ_CHUNK];
    size_t total = 0;
    int length;
    while ((length = gzread(file, bytes, sizeof bytes)) > 0 && (total += (size_t)length) <= ceiling)
        digest_add(digest, bytes, (size_t)length);
    bool is_whole = length == 0 && gzeof(file);
    digest_finish(digest, is_whole ? ret_text : NULL);
    if (total > ceiling)
        return error_set(error, ERROR_TOO_LARGE, "%s holds more than %zu bytes", path, ceiling);
    return is_whole ? 0 : error_set(error, ERROR_CORRUPT, "%s cannot be unpacked", path);
}
