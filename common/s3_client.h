/* SPDX-License-Identifier: Apache-2.0
 *
 * A client of object storage with the interface of S3: AWS, Google Cloud Storage, MinIO, Ceph and others. Calls block. Any number of
 * threads may use one client at the same time; each call has a connection of its own, which is kept for later calls. Uses libcurl;
 * s3_signature.h signs the requests. s3_transfer.h copies whole files over several connections.
 *
 * Endpoints at googleapis.com get Google's headers and signature (GOOG4-HMAC-SHA256, for an HMAC key), because Google Cloud Storage ignores
 * If-None-Match on writes: its own condition is x-goog-if-generation-match. Other servers get those of S3.
 *
 * Buckets are addressed by path (https://endpoint/bucket/key), which every server understands.
 *
 * Credentials are read again for each request, so that a rotated Secret takes effect in the middle of a transfer. Each is a file in the
 * folder `credentials`, or else an environment variable of the same name:
 *
 *   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
 *   AWS_SESSION_TOKEN     only for temporary credentials
 *   ca.crt                optional, only as a file: the CA certificates (PEM) with which the certificates of the server, and of the one
 *                         that gives temporary credentials, are verified
 *
 * If there is no AWS_ACCESS_KEY_ID when the client is created, the credentials of the pod's service account are used if it has an identity
 * (s3_identity.h). Without that, a key and a folder, requests are not signed, which suffices for public buckets.
 *
 * Requests that fail temporarily (500, 502, 503, 504, 429, SlowDown, a time-out, a connection cut or refused) are sent again, after
 * 100 ms, then after twice as long each time, up to 5 s, until no 256 KiB have arrived for `patience_ms`. Refused credentials, and
 * a server's certificate that is not trusted, count as a temporary failure once a request of this client has succeeded: the Secret may be
 * about to be rotated. Before that, credentials that come from files or from the pod's identity are read once more, after 3 s. What time
 * does not cure fails at once: no such bucket or object, a bucket in another region, a malformed request.
 *
 * Errors: NOT_FOUND (no such object, or bucket), FORBIDDEN (credentials refused), ALREADY_EXISTS (a conditional write found an object),
 * CONFLICT (the object changed while it was read), CORRUPT (wrong bytes), TOO_LARGE, UNAVAILABLE (still failing after `patience_ms`),
 * INVALID (wrong options).
 */
#ifndef COXSWAIN_COMMON_S3_CLIENT_H
#define COXSWAIN_COMMON_S3_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"
#include "common/s3_answer.h"

struct s3_client;

/* Strings are copied. */
struct s3_options {
    const char *endpoint; /* "https://s3.eu-central-1.amazonaws.com", "http://minio:9000": without a path */
    const char *bucket;
    const char *region;      /* NULL: us-east-1, which servers other than AWS accept; auto for Google */
    const char *credentials; /* folder; NULL: only the environment */
    int64_t patience_ms;     /* 0: two minutes */
};

int s3_client_new(const struct s3_options *options, struct s3_client **ret_client, struct error *error);
/* The bucket's address for messages: "https://s3.eu-central-1.amazonaws.com/my-corpus". */
const char *s3_client_url(const struct s3_client *client);
/* No call may be running. */
void s3_client_free(struct s3_client *client);

/* Size, version and checksum of an object, as the server reports them. s3_put and s3_upload store the CRC; objects of other programs have
 * none. */
struct s3_head {
    int64_t size;
    char etag[S3_ETAG_MAX];
    bool has_crc;
    uint32_t crc; /* CRC-32C of the whole object */
};
int s3_head(struct s3_client *client, const char *key, struct s3_head *ret_head, struct error *error);

/* Part of an object. The bytes go to `memory`, or into a file from `file_offset` on. */
struct s3_range {
    const char *key;
    const char *etag; /* ERROR_CONFLICT if the object has another one now; NULL: any */
    int64_t offset, length;
    void *memory; /* NULL: the file */
    int file;
    int64_t file_offset;
    uint32_t *crc; /* is set to the CRC-32C of these bytes if the object has one; NULL: not wanted */
};
/* Reads exactly `length` bytes; after a lost connection, continues with the first byte that is missing. ERROR_CORRUPT if the object ends
 * earlier. ret_head (may be NULL) describes the whole object. */
int s3_get(struct s3_client *client, const struct s3_range *range, struct s3_head *ret_head, struct error *error);

/* Appends a whole object, verified if it has a CRC, to the buffer. ERROR_TOO_LARGE beyond the buffer's ceiling. */
int s3_get_whole(struct s3_client *client, const char *key, struct buffer *buffer, struct error *error);

enum s3_put_condition {
    S3_PUT_ALWAYS,
    /* Fails with ERROR_ALREADY_EXISTS if there is an object of that name: of any number of writers exactly one succeeds. If the answer
     * to an attempt was lost, and the object then holds exactly these bytes, it counts as written by this call. */
    S3_PUT_IF_ABSENT,
};
/* Writes a whole object of at most 5 GiB. The server verifies the bytes by their SHA-256, which only signed requests have. */
int s3_put(struct s3_client *client, const char *key, const void *bytes, size_t length, enum s3_put_condition condition,
           struct error *error);

/* Deletes an object. Succeeds if there is no such object. */
int s3_delete(struct s3_client *client, const char *key, struct error *error);

/* Lists all objects whose keys begin with `prefix`. ERROR_TOO_LARGE if there are more than `most`. */
int s3_list(struct s3_client *client, const char *prefix, size_t most, struct s3_list *ret_list, struct error *error);

/* Upload an object in parts, which are numbered from 1; each but the last one has at least 5 MiB. s3_parts_begin starts the upload,
 * s3_parts_put sends one part, and s3_parts_end makes the whole object appear. */
int s3_parts_begin(struct s3_client *client, const char *key, uint32_t crc, char **ret_id, struct error *error);
int s3_parts_put(struct s3_client *client, const char *key, const char *id, unsigned number, const void *bytes,
                 size_t length, char ret_etag[S3_ETAG_MAX], struct error *error);
/* `crc` and `size` are those of the whole object. If the answer to an attempt is lost, the object is compared with them to find out whether
 * the attempt succeeded. */
int s3_parts_end(struct s3_client *client, const char *key, const char *id, char (*etags)[S3_ETAG_MAX], unsigned count,
                 uint32_t crc, int64_t size, struct error *error);
/* Cancels an upload and removes its parts from the server. */
void s3_parts_abort(struct s3_client *client, const char *key, const char *id);

#endif
