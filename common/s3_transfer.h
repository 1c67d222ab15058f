/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies files to and from object storage (s3_client.h) over several connections at once, each in a thread of its own. Large objects are
 * read in ranges and written in parts, many small ones side by side.
 *
 * A file has the version of its object in its time of change, so that a later download knows what it already has.
 *
 * A download goes to a file of another name in the same folder, whose name begins with S3_PARTIAL_PREFIX. It gets its own name when all its
 * bytes are there and verified, so that nobody opens half a file. What is verified: the size, that all ranges are of the same version of the
 * object (its ETag), and the CRC-32C if the object has one (s3_put and s3_upload store it).
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

/* Downloads all of them. On an error nothing more is begun; files that are complete stay. `ret_bytes` (may be NULL) counts what was read. */
/* Its ceiling of an object's size is S3_OBJECT_MAX; a listing that tells of another one is wrong (ERROR_CORRUPT). */
#define S3_OBJECT_MAX ((int64_t)1 << 46)
int s3_download(struct s3_client *client, const struct s3_download *files, size_t count, unsigned connections,
                int64_t *ret_bytes, struct error *error);

/* Whether the file is what s3_download made of this version of the object, and has not been changed since. Not after the machine has been
 * started again: what was not on the disk is lost then, and only the file's size is left. */
bool s3_download_is_there(const struct s3_download *file);

/* Uploads a file; the object appears, or is replaced, when all bytes are there. ERROR_CONFLICT if the file changes meanwhile. */
int s3_upload(struct s3_client *client, const char *key, const char *path, unsigned connections, struct error *error);

#endif
