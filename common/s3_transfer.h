/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies files to and from object storage (s3_client.h) over several connections at once, each in a thread of its own. Large objects are
 * read in ranges and written in parts, many small ones side by side.
 *
 * A download goes to a partial file in the same folder, whose name begins with S3_PARTIAL_PREFIX. The file gets its own name when all its
 * bytes are there and verified, so that no program opens half a file. These are verified: the size, that all ranges are of the same version
 * of the object (its ETag), and the CRC-32C if the object has one (s3_put and s3_upload store it).
 *
 * The nanoseconds of the file's modification time are a checksum of the object's version: s3_download_is_there compares them.
 */
#ifndef COXSWAIN_COMMON_S3_TRANSFER_H
#define COXSWAIN_COMMON_S3_TRANSFER_H

#include "common/s3_client.h"

#define S3_PARTIAL_PREFIX ".partial-"
#define S3_CONNECTIONS_MAX 64

struct s3_download {
    const char *key, *etag; /* as listed */
    int64_t size;
    const char *path; /* where it goes; its folder exists. A file of that name is replaced */
};

/* Bytes of an object; ERROR_CORRUPT if a listing reports a larger one. */
#define S3_OBJECT_MAX ((int64_t)1 << 46)

/* Downloads all files. After an error no further request begins; complete files stay. `ret_bytes` (may be NULL) is how many bytes were
 * read; it is set after an error, too. */
int s3_download(struct s3_client *client, const struct s3_download *files, size_t count, unsigned connections,
                int64_t *ret_bytes, struct error *error);

/* Returns whether s3_download has written the file from this version of the object and the file has not changed since. False for files that
 * were written before the machine was booted: after a crash a file may have its full size although its bytes never reached the disk. */
bool s3_download_is_there(const struct s3_download *file);

/* Uploads a file; the object appears, or is replaced, when all bytes are there. ERROR_CONFLICT if the file changes meanwhile. */
int s3_upload(struct s3_client *client, const char *key, const char *path, unsigned connections, struct error *error);

/* Returns 0 if an upload may be completed; otherwise -1 with `error` filled, and the upload is abandoned: the object stays as it was. */
typedef int s3_upload_check(const void *context, struct error *error);
/* Like s3_upload, but calls `check` (may be NULL) when all parts are uploaded, just before the request that makes the object appear. */
int s3_upload_if(struct s3_client *client, const char *key, const char *path, unsigned connections,
                 s3_upload_check *check, const void *context, struct error *error);

#endif
