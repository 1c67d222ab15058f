/* SPDX-License-Identifier: Apache-2.0
 *
 * Downloads files by HTTPS, and models or data sets from the Hugging Face hub, into a volume, before a job's program starts. Several pods
 * and jobs may share the volume: a lock (flock) of each source's folder lets one of them download while the others wait, and a file that
 * is there and has its digest is kept. A download that was killed goes on where it ended. Other pods may write anything to the volume:
 * notes, lists and partial files that are links or not regular files are not used.
 *
 * A source is one word:
 *
 *   https://HOST/PATH#sha256=DIGEST          becomes the file HOST/PATH
 *   hf://ORG/NAME[@REVISION][/PATTERN]       becomes the folder ORG/NAME[@REVISION]. PATTERN selects files or folders; "*" in it stands for
 *                                            any characters. Default revision: main
 *   hf://datasets/ORG/NAME…                  the same for a data set; the folder is datasets/ORG/NAME…
 *
 * The bytes go to a partial file, which is renamed when they have been verified: by the SHA-256 of the source, or by the digest that the
 * hub lists. Beside the file, the note `.verified-NAME` holds its digest, size and time, so that the next pod need not read the file. The
 * hub's list of a revision is kept as well, in `.verified-listing`. If the revision is a commit, the hub is not asked for it again; if it
 * is a branch, the kept list is used when the hub cannot be reached.
 *
 * Failures that may pass (429, 5xx, a lost or refused connection, silence) are repeated until no new byte has come for `patience_ms`. Waits
 * that a server asks for by Retry-After do not count, up to 15 minutes. Redirects are followed five times, and from https only to https.
 */
#ifndef COXSWAIN_STORAGE_DOWNLOAD_H
#define COXSWAIN_STORAGE_DOWNLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/job_document.h" /* DOWNLOAD_SOURCES_MAX */

#define DOWNLOAD_HUB "https://huggingface.co"

/* Called every 10 s during a download. `file` is NULL while it waits for another pod that downloads into the volume. `total` and `left_ms`
 * are -1 while they are unknown. */
typedef void download_report(const char *file, int64_t bytes, int64_t total, int64_t left_ms);

struct download_request {
    const char *folder; /* exists */
    const char *const *sources;
    size_t source_count;
    const char *hub; /* the hub's address, without a path; NULL: DOWNLOAD_HUB */
    /* A folder with the optional files `token`, sent to the sources' host and to no other, and `ca.crt`, the certificates (PEM) that
     * servers are verified with instead of the system's. NULL: neither. */
    const char *secrets;
    int64_t ceiling; /* bytes of all files together; 0: no ceiling */
    int64_t patience_ms;
    download_report *report; /* may be NULL */
};

struct download_result {
    size_t files, kept; /* files that were downloaded, and files that were there */
    int64_t bytes;      /* transferred */
};

/* ERROR_INVALID for a wrong source, NOT_FOUND (404), FORBIDDEN (401, 403, a certificate that is not trusted), CORRUPT (wrong digest),
 * TOO_LARGE (more than the ceiling), NO_SPACE, UNAVAILABLE and TIMEOUT (still failing after `patience_ms`). */
int download(const struct download_request *request, struct download_result *ret_result, struct error *error);

#endif
