/* SPDX-License-Identifier: Apache-2.0 */
#include "common/digest.h"

#include <fcntl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hexadecimal.h"
#include "common/scope.h"

#define READ_CHUNK (64 * 1024)

int digest_start(enum digest_kind kind, struct digest **ret_digest, struct error *error)
{
    EVP_MD_CTX *state = EVP_MD_CTX_new();
    if (!state || EVP_DigestInit_ex(state, kind == DIGEST_SHA256 ? EVP_sha256() : EVP_sha1(), NULL) != 1) {
        EVP_MD_CTX_free(state);
        return error_set(error, ERROR_UNSUPPORTED, "OpenSSL has no %s here",
                         kind == DIGEST_SHA256 ? "SHA-256" : "SHA-1");
    }
    *ret_digest = (struct digest *)state;
    return 0;
}

void digest_add(struct digest *digest, const void *bytes, size_t length)
{
    EVP_DigestUpdate((EVP_MD_CTX *)digest, bytes, length);
}

void digest_finish(struct digest *digest, char ret_text[DIGEST_TEXT_MAX])
{
    unsigned char result[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (digest && ret_text) {
        EVP_DigestFinal_ex((EVP_MD_CTX *)digest, result, &length);
        hexadecimal_write(result, length, ret_text);
    }
    EVP_MD_CTX_free((EVP_MD_CTX *)digest);
}

int digest_file(const char *path, enum digest_kind kind, char ret_text[DIGEST_TEXT_MAX], struct error *error)
{
    SCOPED_CLOSE int file = open(path, O_RDONLY | O_CLOEXEC);
    struct digest *digest = NULL;
    struct stat status;
    if (file < 0 || fstat(file, &status) < 0)
        return error_set_errno(error, "open %s", path);
    if (digest_start(kind, &digest, error) < 0)
        return -1;
    unsigned char bytes[READ_CHUNK];
    if (kind == DIGEST_GIT_BLOB) {
        int length = snprintf((char *)bytes, sizeof bytes, "blob %" PRId64, (int64_t)status.st_size);
        digest_add(digest, bytes, (size_t)length + 1); /* with the NUL */
    }
    ssize_t length;
    while ((length = read(file, bytes, sizeof bytes)) > 0)
        digest_add(digest, bytes, (size_t)length);
    digest_finish(digest, length < 0 ? NULL : ret_text);
    return length < 0 ? error_set_errno(error, "read %s", path) : 0;
}
