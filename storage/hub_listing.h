/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the Hugging Face hub's answer about one revision of a repository (GET /api/models/ORG/NAME/revision/REVISION?blobs=true): the
 * commit, and the name, size and digest of each file.
 */
#ifndef COXSWAIN_STORAGE_HUB_LISTING_H
#define COXSWAIN_STORAGE_HUB_LISTING_H

#include <stdint.h>

#include "common/digest.h"

#define HUB_LISTING_MAX ((size_t)16 * 1024 * 1024) /* bytes of the answer */
#define HUB_FILES_MAX 20000

#define SHA1_DIGITS 40 /* of a commit, and of git's name of a file */
#define SHA256_DIGITS 64

/* Names of a download's own files begin with these; a repository that has such a file is refused. */
#define HUB_VERIFIED_PREFIX ".verified-"
#define HUB_OWN_PREFIX ".coxswain-"

struct hub_file {
    char *path; /* no part of it is empty, "." or ".."; see fetch_path_is_safe */
    int64_t size;
    enum digest_kind digest_kind; /* the hub lists the SHA-256 of large files, and git's name of the others */
    char digest[DIGEST_TEXT_MAX];
};

struct hub_listing {
    char commit[DIGEST_TEXT_MAX]; /* SHA1_DIGITS */
    struct hub_file *files;
    size_t count;
};

/* ERROR_CORRUPT if the answer is not of this form, ERROR_TOO_LARGE if it has more than HUB_FILES_MAX files. */
int hub_listing_parse(const char *text, size_t length, struct hub_listing *ret_listing, struct error *error);
void hub_listing_release(struct hub_listing *listing);

/* Whether the text consists of exactly `count` lower-case hexadecimal digits. */
bool hub_is_digest(const char *text, size_t count);

#endif
