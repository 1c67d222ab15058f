/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/fetch.h"

#include <fnmatch.h>
#include <ftw.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/directory.h"
#include "common/memory.h"
#include "common/s3_transfer.h"

bool fetch_path_is_safe(const char *path)
{
    for (const char *part = path;; part += strcspn(part, "/") + 1) {
        size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && *part == '.') || (length == 2 && strncmp(part, "..", 2) == 0) ||
            strncmp(part, S3_PARTIAL_PREFIX, strlen(S3_PARTIAL_PREFIX)) == 0)
            return false;
        if (part[length] == '\0')
            return true;
    }
}

bool fetch_path_matches(const char *path, const char *wanted, bool across_folders)
{
    size_t length = strlen(wanted);
    if (strchr(wanted, '*'))
        return fnmatch(wanted, path, across_folders ? 0 : FNM_PATHNAME) == 0;
    return length == 0 || (strncmp(path, wanted, length) == 0 && (path[length] == '\0' || path[length] == '/'));
}

#define BLOCK_BYTES 4096 /* of a disk; a file counts as one block more than its bytes fill, for its metadata */

struct plan {
    const struct fetch_request *request;
    struct s3_list lists[FETCH_PATHS_MAX];
    unsigned list_count;
    struct s3_download *files;
    size_t count, kept; /* files to fetch, and files that are there already */
    int64_t disk_bytes; /* of both */
};

static void plan_release(struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        free((char *)plan->files[i].path);
    free(plan->files);
    for (unsigned i = 0; i < plan->list_count; i++)
        s3_list_release(&plan->lists[i]);
}

static int make_parent(const char *path, struct error *error)
{
    SCOPED_FREE char *parent = memory_copy_bytes(path, (size_t)(strrchr(path, '/') - path));
    return directory_make(parent, error);
}

static int add_object(struct plan *plan, const struct s3_object *object, const char *path, struct error *error)
{
    SCOPED_FREE char *local = memory_format("%s/%s", plan->request->folder, path);
    struct s3_download file = {object->key, object->etag, object->size, local};
    int64_t blocks = object->size / BLOCK_BYTES + 1;
    if (blocks > (INT64_MAX - plan->disk_bytes) / BLOCK_BYTES)
        return error_set(error, ERROR_CORRUPT, "the server reports a size of %" PRId64 " bytes for %s", object->size,
                         object->key);
    plan->disk_bytes += blocks * BLOCK_BYTES;
    if (s3_download_is_there(&file)) {
        plan->kept++;
        return 0;
    }
    if (make_parent(local, error) < 0)
        return -1;
    if ((plan->count & (plan->count - 1)) == 0)
        plan->files = memory_resize(plan->files, plan->count ? 2 * plan->count : 1, sizeof *plan->files);
    plan->files[plan->count++] = file;
    local = NULL;
    return 0;
}

static int add_path(struct plan *plan, struct s3_client *client, const char *wanted, struct error *error)
{
    const struct fetch_request *request = plan->request;
    const char *slash = *request->prefix ? "/" : "";
    SCOPED_FREE char *prefix = memory_format("%s%s%.*s", request->prefix, slash, (int)strcspn(wanted, "*"), wanted);
    size_t skipped = strlen(request->prefix) + strlen(slash), found = 0;
    struct s3_list *list = &plan->lists[plan->list_count];
    if (s3_list(client, prefix, FETCH_OBJECTS_MAX, list, error) < 0)
        return -1;
    plan->list_count++;
    for (size_t i = 0; i < list->count; i++) {
        const struct s3_object *object = &list->objects[i];
        const char *path = object->key + skipped;
        if (!fetch_path_matches(path, wanted, false) || (*path && path[strlen(path) - 1] == '/'))
            continue;
        if (request->is_left_out && request->is_left_out(request->context, object, path))
            continue;
        if (!fetch_path_is_safe(path))
            return error_set(
                error, ERROR_INVALID,
                "the object \"%s\" cannot be a file: its key has an empty part, \".\", \"..\" or one that begins with "
                "\"" S3_PARTIAL_PREFIX "\"; rename it",
                object->key);
        if (add_object(plan, object, path, error) < 0)
            return -1;
        found++;
    }
    if (found == 0 && !request->is_left_out)
        return error_set(
            error, ERROR_NOT_FOUND,
            "%s: the bucket has no object at %s%s%s; correct the bucket, the prefix or the path, or upload "
            "it",
            s3_client_url(client), request->prefix, slash, wanted);
    return 0;
}

/* Whether another of the paths covers everything that this one covers. */
static bool is_covered(const struct fetch_request *request, unsigned index)
{
    const char *path = request->paths[index];
    for (unsigned i = 0; i < request->path_count; i++)
        if (i != index && fetch_path_matches(path, request->paths[i], false) &&
            (i < index || !fetch_path_matches(request->paths[i], path, false)))
            return true;
    return false;
}

static int remove_partial(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    if (type == FTW_F && strncmp(path + place->base, S3_PARTIAL_PREFIX, strlen(S3_PARTIAL_PREFIX)) == 0)
        unlink(path);
    return 0;
}

int fetch(struct s3_client *client, const struct fetch_request *request, struct fetch_result *ret_result,
          struct error *error)
{
    SCOPED(plan_release) struct plan plan = {.request = request};
    int64_t bytes = 0;
    nftw(request->folder, remove_partial, 16, FTW_PHYS); /* left by a fetch that was killed */
    if (request->path_count == 0 && add_path(&plan, client, "", error) < 0)
        return -1;
    for (unsigned i = 0; i < request->path_count; i++)
        if (!is_covered(request, i) && add_path(&plan, client, request->paths[i], error) < 0)
            return -1;
    if (request->check && request->check(request->context, error) < 0)
        return -1;
    if (request->ceiling > 0 && plan.disk_bytes > request->ceiling)
        return error_set(error, ERROR_TOO_LARGE,
                         "the objects take %" PRId64 " bytes of disk, and the local cache may take %" PRId64
                         "; raise cacheSize, or choose fewer objects by prefix or path",
                         plan.disk_bytes, request->ceiling);
    if (s3_download(client, plan.files, plan.count, request->connections, &bytes, error) < 0)
        return -1;
    *ret_result = (struct fetch_result){.files = plan.count, .kept = plan.kept, .bytes = bytes};
    return 0;
}
