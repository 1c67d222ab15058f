/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/sha256.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>
#include <zlib.h>

#include "common/hexadecimal.h"
#include "common/scope.h"

#define READ_CHUNK (64 * 1024)

DEFINE_SCOPE_FREE(EVP_MD_CTX *, EVP_MD_CTX_free)

static int digest_start(EVP_MD_CTX **ret_digest, struct error *error)
{
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    if (digest && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1) {
        *ret_digest = digest;
        return 0;
    }
    EVP_MD_CTX_free(digest);
    return error_set(error, ERROR_UNSUPPORTED, "OpenSSL has no SHA-256 here");
}

static void digest_finish(EVP_MD_CTX *digest, char *text)
{
    unsigned char result[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    EVP_DigestFinal_ex(digest, result, &length);
    hexadecimal_write(result, length, text);
}

int sha256_file(const char *path, char ret_text[SHA256_TEXT_MAX], struct error *error)
{
    SCOPED_CLOSE int file = open(path, O_RDONLY | O_CLOEXEC);
    SCOPED(EVP_MD_CTX_free_scope) EVP_MD_CTX *digest = NULL;
    if (file < 0)
        return error_set_errno(error, "open %s", path);
    if (digest_start(&digest, error) < 0)
        return -1;
    unsigned char bytes[READ_CHUNK];
    ssize_t length;
    while ((length = read(file, bytes, sizeof bytes)) > 0)
        EVP_DigestUpdate(digest, bytes, (size_t)length);
    if (length < 0)
        return error_set_errno(error, "read %s", path);
    digest_finish(digest, ret_text);
    return 0;
}

static void gzclose_scope(gzFile *file)
{
    if (*file)
        gzclose(*file);
}

int sha256_unpacked(const char *path, size_t ceiling, char ret_text[SHA256_TEXT_MAX], struct error *error)
{
    SCOPED(gzclose_scope) gzFile file = gzopen(path, "rb");
    SCOPED(EVP_MD_CTX_free_scope) EVP_MD_CTX *digest = NULL;
    if (!file)
        return error_set_errno(error, "open %s", path);
    if (digest_start(&digest, error) < 0)
        return -1;
    unsigned char bytes[READ_CHUNK];
    size_t total = 0;
    int length;
    while ((length = gzread(file, bytes, sizeof bytes)) > 0) {
        total += (size_t)length;
        if (total > ceiling)
            return error_set(error, ERROR_TOO_LARGE, "%s holds more than %zu bytes", path, ceiling);
        EVP_DigestUpdate(digest, bytes, (size_t)length);
    }
    if (length < 0 || !gzeof(file))
        return error_set(error, ERROR_CORRUPT, "%s cannot be unpacked", path);
    digest_finish(digest, ret_text);
    return 0;
}
