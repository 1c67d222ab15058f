/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/hub_listing.h"

#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/memory.h"
#include "storage/fetch.h"

bool hub_is_digest(const char *text, size_t count)
{
    return strlen(text) == count && strspn(text, "0123456789abcdef") == count;
}

void hub_listing_release(struct hub_listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        free(listing->files[i].path);
    free(listing->files);
    *listing = (struct hub_listing){0};
}

static bool is_own(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strncmp(name, HUB_VERIFIED_PREFIX, strlen(HUB_VERIFIED_PREFIX)) == 0 ||
           strncmp(name, HUB_OWN_PREFIX, strlen(HUB_OWN_PREFIX)) == 0;
}

static int read_file(const struct json *item, struct hub_file *ret_file, struct error *error)
{
    const char *path = json_string_at(item, "rfilename", ""), *large = json_string_at(item, "lfs.sha256", NULL);
    const char *digest = large ? large : json_string_at(item, "blobId", "");
    int64_t size = json_integer_at(item, "size", -1);
    if (!fetch_path_is_safe(path) || is_own(path))
        return error_set(error, ERROR_CORRUPT,
                         "the hub lists a file whose name has an empty part, \".\" or \"..\", or begins with "
                         "\"" HUB_VERIFIED_PREFIX "\", \"" HUB_OWN_PREFIX "\" or \".partial-\"");
    if (size < 0 || !hub_is_digest(digest, large ? SHA256_DIGITS : SHA1_DIGITS))
        return error_set(error, ERROR_CORRUPT, "the hub gives no valid size and digest for %s", path);
    *ret_file = (struct hub_file){
        .path = memory_copy_string(path), .size = size, .digest_kind = large ? DIGEST_SHA256 : DIGEST_GIT_BLOB};
    snprintf(ret_file->digest, sizeof ret_file->digest, "%s", digest);
    return 0;
}

int hub_listing_parse(const char *text, size_t length, struct hub_listing *ret_listing, struct error *error)
{
    SCOPED_JSON *answer = NULL;
    SCOPED(hub_listing_release) struct hub_listing listing = {0};
    struct error cause = ERROR_INIT;
    if (json_parse(text, length, HUB_LISTING_MAX, &answer, &cause) < 0)
        return error_set(error, ERROR_CORRUPT, "the hub's answer is not JSON: %s", cause.message);
    const char *commit = json_string_at(answer, "sha", "");
    const struct json *siblings = json_member(answer, "siblings");
    if (!hub_is_digest(commit, SHA1_DIGITS) || json_type(siblings) != JSON_ARRAY)
        return error_set(error, ERROR_CORRUPT, "the hub's answer has no commit or no list of files");
    if (json_count(siblings) > HUB_FILES_MAX)
        return error_set(error, ERROR_TOO_LARGE, "the repository has more than %d files", HUB_FILES_MAX);
    snprintf(listing.commit, sizeof listing.commit, "%s", commit);
    listing.files = memory_allocate(json_count(siblings) + 1, sizeof *listing.files);
    for (const struct json *item = json_first(siblings); item; item = json_next(item), listing.count++)
        if (read_file(item, &listing.files[listing.count], error) < 0)
            return -1;
    *ret_listing = listing;
    listing = (struct hub_listing){0};
    return 0;
}
