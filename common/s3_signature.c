/* SPDX-License-Identifier: Apache-2.0 */
#include "common/s3_signature.h"

#include <openssl/sha.h>
#include <string.h>
#include <time.h>

#include "common/hexadecimal.h"
#include "common/hmac.h"
#include "common/memory.h"
#include "common/scope.h"

#define DIGEST_TEXT (2 * SHA256_DIGEST_LENGTH + 1)

static void digest(const void *bytes, size_t length, char ret_text[DIGEST_TEXT])
{
    unsigned char binary[SHA256_DIGEST_LENGTH];
    SHA256(bytes, length, binary);
    hexadecimal_write(binary, sizeof binary, ret_text);
}

/* The signature of `text` under a key that is good for one day, region and service. */
static void sign(const struct s3_signing *signing, const char *day, const char *text, char ret_text[DIGEST_TEXT])
{
    unsigned char code[HMAC_BYTES];
    SCOPED_FREE char *first = memory_format("AWS4%s", signing->secret);
    const char *steps[] = {day, signing->region, "s3", "aws4_request", text};
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
    char body[DIGEST_TEXT], request[DIGEST_TEXT], signature[DIGEST_TEXT], stamp[20], day[12];
    time_t seconds = (time_t)(signing->now_ms / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &parts);
    strftime(day, sizeof day, "%Y%m%d", &parts);
    digest(signing->length ? signing->body : "", signing->length, body);

    const char *crc = signing->crc, *token = signing->token;
    SCOPED_FREE char *names = memory_format("host;x-amz-content-sha256;x-amz-date%s%s", crc ? ";" S3_META_CRC : "",
                                            token ? ";x-amz-security-token" : "");
    SCOPED_FREE char *canonical = memory_format(
        "%s\n%s\n%s\nhost:%s\nx-amz-content-sha256:%s\nx-amz-date:%s\n%s%s%s%s%s%s\n%s\n%s", signing->method,
        signing->path, signing->query, signing->host, body, stamp, crc ? S3_META_CRC ":" : "", crc ? crc : "",
        crc ? "\n" : "", token ? "x-amz-security-token:" : "", token ? token : "", token ? "\n" : "", names, body);
    digest(canonical, strlen(canonical), request);
    SCOPED_FREE char *scope = memory_format("%s/%s/s3/aws4_request", day, signing->region);
    SCOPED_FREE char *text = memory_format("AWS4-HMAC-SHA256\n%s\n%s\n%s", stamp, scope, request);
    sign(signing, day, text, signature);

    unsigned count = 0;
    ret_lines[count++] = memory_format("x-amz-content-sha256: %s", body);
    ret_lines[count++] = memory_format("x-amz-date: %s", stamp);
    if (crc)
        ret_lines[count++] = memory_format(S3_META_CRC ": %s", crc);
    if (token)
        ret_lines[count++] = memory_format("x-amz-security-token: %s", token);
    ret_lines[count++] = memory_format("Authorization: AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s",
                                       signing->key, scope, names, signature);
    return count;
}
