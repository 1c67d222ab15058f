/* SPDX-License-Identifier: Apache-2.0 */
#include "common/s3_signature.h"

#include <openssl/sha.h>
#include <string.h>
#include <time.h>

#include "common/buffer.h"
#include "common/hexadecimal.h"
#include "common/hmac.h"
#include "common/memory.h"
#include "common/scope.h"

#define DIGEST_TEXT (2 * SHA256_DIGEST_LENGTH + 1)
#define HEADERS_MAX ((size_t)64 * 1024) /* a token has at most 16 KiB */

static void digest(const void *bytes, size_t length, char ret_text[DIGEST_TEXT])
{
    unsigned char binary[SHA256_DIGEST_LENGTH];
    SHA256(bytes, length, binary);
    hexadecimal_write(binary, sizeof binary, ret_text);
}

/* The names that differ between the two families. */
struct family {
    const char *prefix, *algorithm, *service, *request;
};
static const struct family amazon = {S3_AMAZON_PREFIX, "AWS4", "s3", "aws4_request"},
                           google = {S3_GOOGLE_PREFIX, "GOOG4", "storage", "goog4_request"};

/* The signature of `text` under a key that is good for one day, region and service. */
static void sign(const struct s3_signing *signing, const struct family *family, const char *day, const char *text,
                 char ret_text[DIGEST_TEXT])
{
    unsigned char code[HMAC_BYTES];
    SCOPED_FREE char *first = memory_format("%s%s", family->algorithm, signing->secret);
    const char *steps[] = {day, signing->region, family->service, family->request, text};
    hmac_sha256(first, strlen(first), steps[0], strlen(steps[0]), code);
    for (size_t i = 1; i < sizeof steps / sizeof *steps; i++) {
        unsigned char key[HMAC_BYTES];
        memcpy(key, code, sizeof key);
        hmac_sha256(key, sizeof key, steps[i], strlen(steps[i]), code);
    }
    hexadecimal_write(code, sizeof code, ret_text);
}

unsigned s3_sign(const struct s3_signing *signing, char *ret_lines[S3_SIGNED_HEADERS])
{
    const struct family *family = signing->is_google ? &google : &amazon;
    char body[DIGEST_TEXT], request[DIGEST_TEXT], signature[DIGEST_TEXT], stamp[20], day[12];
    time_t seconds = (time_t)(signing->now_ms / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &parts);
    strftime(day, sizeof day, "%Y%m%d", &parts);
    digest(signing->length ? signing->body : "", signing->length, body);

    const char *const headers[][2] = {/* sorted by name */
                                      {"content-sha256", body},
                                      {"date", stamp},
                                      {"if-generation-match", signing->is_google && signing->if_absent ? "0" : NULL},
                                      {S3_META_CRC, signing->crc},
                                      {"security-token", signing->is_google ? NULL : signing->token}};
    unsigned count = 0;
    SCOPED_BUFFER names;
    SCOPED_BUFFER lines;
    buffer_init(&names, HEADERS_MAX);
    buffer_init(&lines, HEADERS_MAX);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        const char *name = headers[i][0], *value = headers[i][1];
        if (!value)
            continue;
        buffer_format(&names, ";%s%s", family->prefix, name);
        buffer_format(&lines, "%s%s:%s\n", family->prefix, name, value);
        ret_lines[count++] = memory_format("%s%s: %s", family->prefix, name, value);
    }
    SCOPED_FREE char *canonical =
        memory_format("%s\n%s\n%s\nhost:%s\n%s\nhost%s\n%s", signing->method, signing->path, signing->query,
                      signing->host, buffer_text(&lines), buffer_text(&names), body);
    digest(canonical, strlen(canonical), request);
    SCOPED_FREE char *scope = memory_format("%s/%s/%s/%s", day, signing->region, family->service, family->request);
    SCOPED_FREE char *text = memory_format("%s-HMAC-SHA256\n%s\n%s\n%s", family->algorithm, stamp, scope, request);
    sign(signing, family, day, text, signature);
    ret_lines[count++] =
        memory_format("Authorization: %s-HMAC-SHA256 Credential=%s/%s,SignedHeaders=host%s,Signature=%s",
                      family->algorithm, signing->key, scope, buffer_text(&names), signature);
    return count;
}
