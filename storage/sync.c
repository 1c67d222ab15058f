/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/sync.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/crc32c.h"
#include "common/memory.h"
#include "common/s3_transfer.h"
#include "storage/sync_names.h"
#include "storage/sync_scan.h"

#define PENDING SYNC_OBJECTS "pending/"
#define WRITERS SYNC_OBJECTS "writers/"
#define WRITERS_MAX ((size_t)100000)
#define RESTLESS 20 /* settling times */
#define PENDING_BYTES_MAX ((size_t)64 * 1024 * 1024)

struct sync {
    struct s3_client *client;
    struct sync_options options;
    char *claim; /* its key */
    struct sync_scan scan;
    bool compared; /* with what the bucket had at the start */
    bool superseded;
    struct sync_file *removed; /* files that were stored and are gone */
    size_t removed_count;
};

static char *key_of(const char *prefix, const char *path)
{
    return memory_format("%s%s%s", prefix, *prefix ? "/" : "", path);
}

/* ---------------------------------------------------------------- one writer */

static int list_below(struct s3_client *client, const char *prefix, const char *path, size_t most,
                      struct s3_list *ret_list, struct error *error)
{
    SCOPED_FREE char *key = key_of(prefix, path);
    return s3_list(client, key, most, ret_list, error);
}

static int claim(struct sync *sync, struct error *error)
{
    SCOPED(s3_list_release) struct s3_list list = {0};
    const struct sync_options *options = &sync->options;
    if (list_below(sync->client, options->prefix, WRITERS, WRITERS_MAX, &list, error) < 0)
        return -1;
    uint64_t word = 0;
    if (!options->writer && getrandom(&word, sizeof word, 0) != sizeof word)
        return error_set_errno(error, "get random bytes");
    SCOPED_FREE char *name = options->writer ? memory_copy_string(options->writer) : memory_format("%016" PRIx64, word);
    SCOPED_FREE char *prefix = key_of(options->prefix, WRITERS);
    uint64_t highest = 0;
    for (size_t i = 0; i < list.count; i++) {
        const char *text = list.objects[i].key + strlen(prefix), *dash = strchr(text, '-');
        if (dash && strcmp(dash + 1, name) == 0) { /* this pod's, whose container was started again */
            sync->claim = memory_copy_string(list.objects[i].key);
            return 0;
        }
        uint64_t number = strtoull(text, NULL, 10);
        if (number > highest && number < UINT32_MAX)
            highest = number;
    }
    SCOPED_FREE char *nothing = key_of(options->prefix, SYNC_OBJECTS "may-delete");
    if (s3_delete(sync->client, nothing, error) < 0) /* otherwise no checkpoint would ever become complete */
        return error_wrap(error, "delete below the prefix, which needs the right to");
    sync->claim = memory_format("%s%010" PRIu64 "-%s", prefix, highest + 1, name);
    return s3_put(sync->client, sync->claim, "", 0, S3_PUT_ALWAYS, error);
}

static int check_claim(struct sync *sync, struct error *error)
{
    SCOPED(s3_list_release) struct s3_list list = {0};
    if (list_below(sync->client, sync->options.prefix, WRITERS, WRITERS_MAX, &list, error) < 0)
        return -1;
    for (size_t i = 0; i < list.count; i++) {
        if (strcmp(list.objects[i].key, sync->claim) <= 0)
            continue;
        sync->superseded = true;
        return error_set(error, ERROR_FORBIDDEN, "another pod has taken over the writing to this prefix (%s)",
                         list.objects[i].key);
    }
    return 0;
}

int sync_start(struct s3_client *client, const struct sync_options *options, struct sync **ret_sync,
               struct error *error)
{
    struct sync *sync = memory_allocate(1, sizeof *sync);
    *sync = (struct sync){.client = client, .options = *options};
    if (claim(sync, error) < 0) {
        sync_free(sync);
        return -1;
    }
    *ret_sync = sync;
    return 0;
}

void sync_free(struct sync *sync)
{
    sync_scan_release(&sync->scan);
    for (size_t i = 0; i < sync->removed_count; i++)
        free(sync->removed[i].path);
    free(sync->removed);
    free(sync->claim);
    free(sync);
}

/* ---------------------------------------------------------------- folders that are incomplete */

/* Reads the objects below `path`, which has PENDING before it. The names are sorted. */
static int read_pending(struct s3_client *client, const char *prefix, const char *path, struct sync_names *ret_folders,
                        struct error *error)
{
    SCOPED(s3_list_release) struct s3_list list = {0};
    size_t bytes = 0;
    if (list_below(client, prefix, path, FETCH_OBJECTS_MAX, &list, error) < 0)
        return -1;
    for (size_t i = 0; i < list.count; i++) {
        SCOPED_BUFFER text;
        buffer_init(&text, PENDING_BYTES_MAX - bytes);
        if (s3_get_whole(client, list.objects[i].key, &text, error) < 0) {
            if (error->kind != ERROR_NOT_FOUND)
                return -1;
            error_clear(error); /* complete by now */
        }
        bytes += text.length;
        sync_names_parse(ret_folders, buffer_text(&text), text.length);
    }
    sync_names_sort(ret_folders);
    return 0;
}

/* ---------------------------------------------------------------- what the bucket has */

static char *local_path(const struct sync *sync, const struct sync_file *file)
{
    return memory_format("%s/%s", sync->options.folder, file->path);
}

/* Opens a file and follows no symbolic link below the folder: the program may put one there at any moment, and this process can read the
 * credentials, which would be uploaded. Returns -1 with errno set. */
static int open_file(const struct sync *sync, const struct sync_file *file)
{
    const char *path = file->path;
    int at = open(sync->options.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (at >= 0) {
        size_t length = strcspn(path, "/");
        SCOPED_FREE char *part = memory_copy_bytes(path, length);
        int next = openat(at, part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (path[length] ? O_DIRECTORY : 0)),
            number = errno;
        close(at);
        errno = number;
        if (path[length] == '\0')
            return next;
        at = next;
        path += length + 1;
    }
    return -1;
}

static int file_crc(const struct sync *sync, const struct sync_file *local, uint32_t *ret_crc)
{
    enum { PIECE = 1 << 20 };
    SCOPED_CLOSE int file = open_file(sync, local);
    SCOPED_FREE char *bytes = memory_allocate(PIECE, 1);
    ssize_t got = file < 0 ? -1 : 0;
    uint32_t crc = 0;
    while (file >= 0 && (got = read(file, bytes, PIECE)) > 0)
        crc = crc32c(crc, bytes, (size_t)got);
    *ret_crc = crc;
    return got < 0 ? -1 : 0;
}

static int by_key(const void *key, const void *object)
{
    return strcmp(key, ((const struct s3_object *)object)->key);
}

/* Whether an object has the bytes of the file: it was restored from it, or both have the same checksum. */
static int compare(struct sync *sync, struct sync_file *file, const struct s3_object *object, struct error *error)
{
    SCOPED_FREE char *path = local_path(sync, file);
    struct s3_download restored = {object->key, object->etag, object->size, path};
    struct s3_head head;
    uint32_t crc;
    if (object->size != file->size)
        return 0;
    file->stored = s3_download_is_there(&restored);
    if (file->stored)
        return 0;
    if (s3_head(sync->client, object->key, &head, error) < 0)
        return -1;
    file->stored = head.has_crc && file_crc(sync, file, &crc) == 0 && crc == head.crc;
    return 0;
}

/* In the first round: files that the bucket has are not uploaded again, and folders that a process before this one has begun are completed. */
static int compare_all(struct sync *sync, struct error *error)
{
    SCOPED(s3_list_release) struct s3_list list = {0};
    SCOPED(sync_names_release) struct sync_names pending = {.names = NULL};
    if (sync->compared)
        return 0;
    const char *prefix = sync->options.prefix;
    if (list_below(sync->client, prefix, "", FETCH_OBJECTS_MAX, &list, error) < 0 ||
        read_pending(sync->client, prefix, PENDING, &pending, error) < 0)
        return -1;
    for (size_t i = 0; i < sync->scan.file_count; i++) {
        struct sync_file *file = &sync->scan.files[i];
        SCOPED_FREE char *key = key_of(prefix, file->path);
        const struct s3_object *object =
            list.count == 0 ? NULL : bsearch(key, list.objects, list.count, sizeof *list.objects, by_key);
        if (object && compare(sync, file, object, error) < 0)
            return -1;
        file->open = sync_names_has_folder_of(&pending, file->path);
    }
    sync->compared = true;
    return 0;
}

/* ---------------------------------------------------------------- units */

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return memory_copy_bytes(path, slash ? (size_t)(slash - path) : 0);
}

static int add_folder(struct buffer *text, const char *folder, struct error *error)
{
    SCOPED_FREE char *line = memory_format("%s\n", folder);
    size_t length = strlen(line);
    if (text->length >= length && strcmp(buffer_text(text) + text->length - length, line) == 0)
        return 0; /* as for the file before */
    return buffer_append_string(text, line, error);
}

static char *pending_key(const struct sync *sync, const struct sync_file *file)
{
    SCOPED_FREE char *path = memory_format(PENDING "%.*s", (int)file->unit_length, file->path);
    return key_of(sync->options.prefix, path);
}

/* Declares the folders of these files incomplete. Those that are in the object already, and of which nothing is left in the folder, stay
 * incomplete, because a part of their files may be in the bucket: they are appended to `left`. */
static int begin_unit(struct sync *sync, struct sync_file *const *files, size_t count, struct buffer *left,
                      struct error *error)
{
    SCOPED(sync_names_release) struct sync_names before = {.names = NULL};
    SCOPED_BUFFER old;
    SCOPED_BUFFER text;
    SCOPED_FREE char *key = pending_key(sync, files[0]);
    buffer_init(&old, PENDING_BYTES_MAX);
    buffer_init(&text, 2 * PENDING_BYTES_MAX);
    if (s3_get_whole(sync->client, key, &old, error) < 0) {
        if (error->kind != ERROR_NOT_FOUND)
            return -1;
        error_clear(error);
    }
    sync_names_parse(&before, buffer_text(&old), old.length);
    for (size_t i = 0; i < before.count; i++)
        if (!sync_scan_has_folder(&sync->scan, before.names[i]) &&
            (buffer_append_string(left, before.names[i], error) < 0 || buffer_append_string(left, "\n", error) < 0))
            return -1;
    for (size_t i = 0; i < count; i++) {
        SCOPED_FREE char *folder = folder_of(files[i]->path);
        bool stays = sync_scan_find(&sync->scan, files[i]->path) || !sync_scan_has_folder(&sync->scan, folder);
        if (!files[i]->is_log && (files[i]->open || !files[i]->stored) && stays && add_folder(&text, folder, error) < 0)
            return -1;
    }
    if (text.length == 0)
        return 0;
    if (buffer_append_string(&text, buffer_text(left), error) < 0)
        return -1;
    return s3_put(sync->client, key, buffer_text(&text), text.length, S3_PUT_ALWAYS, error);
}

/* Declares them complete. */
static int end_unit(struct sync *sync, const struct sync_file *file, const struct buffer *left, struct error *error)
{
    SCOPED_FREE char *key = pending_key(sync, file);
    if (check_claim(sync, error) < 0)
        return -1;
    return left->length > 0 ? s3_put(sync->client, key, buffer_text(left), left->length, S3_PUT_ALWAYS, error)
                            : s3_delete(sync->client, key, error);
}

static bool has_changed(const struct sync *sync, const struct sync_file *file)
{
    SCOPED_FREE char *path = local_path(sync, file);
    struct stat now;
    return lstat(path, &now) < 0 || now.st_size != file->size ||
           (int64_t)now.st_mtim.tv_sec * 1000000000 + now.st_mtim.tv_nsec != file->modified_ns;
}

static int upload(struct sync *sync, struct sync_file *file, struct sync_result *result, struct error *error)
{
    SCOPED_FREE char *key = key_of(sync->options.prefix, file->path);
    SCOPED_CLOSE int descriptor = open_file(sync, file);
    if (descriptor < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENXIO))
        return error_set(error, ERROR_NOT_FOUND, "%s is no file any more", file->path);
    if (descriptor < 0)
        return error_set(error, ERROR_INVALID,
                         "cannot read %s: %s; let the program write files that the sidecar's user can read", file->path,
                         strerror(errno));
    SCOPED_FREE char *path = memory_format("/proc/self/fd/%d", descriptor);
    if (s3_upload(sync->client, key, path, sync->options.connections, error) < 0) {
        error_wrap(error, "upload %s", file->path);
        if (error->kind ==
            ERROR_UNSUPPORTED) /* the server refuses this object, such as one with a key that is too long */
            error->kind = ERROR_INVALID;
        return -1;
    }
    file->stored = true;
    file->open = !file->is_log;
    result->files++;
    result->bytes += file->size;
    return 0;
}

/* A file that changes, or goes, while its unit is uploaded leaves the unit incomplete until a later round; a log does not. */
static int upload_unit(struct sync *sync, const struct sync_unit *unit, struct sync_result *result, struct error *error)
{
    SCOPED_FREE struct sync_file **files = memory_allocate(unit->count, sizeof *files);
    SCOPED_BUFFER left;
    buffer_init(&left, PENDING_BYTES_MAX);
    bool needed = false, changed = false;
    sync_scan_order(&sync->scan, unit, files);
    for (size_t i = 0; i < unit->count; i++)
        needed |= files[i]->open || !files[i]->stored;
    if (!needed)
        return 0;
    if (check_claim(sync, error) < 0 || (unit->is_folder && begin_unit(sync, files, unit->count, &left, error) < 0))
        return -1;
    for (size_t i = 0; i < unit->count && !changed; i++) {
        if (files[i]->stored || upload(sync, files[i], result, error) == 0)
            continue;
        if (error->kind != ERROR_CONFLICT && error->kind != ERROR_NOT_FOUND)
            return -1;
        error_clear(error);
        changed = !files[i]->is_log;
    }
    for (size_t i = 0; i < unit->count && !changed; i++)
        changed = !files[i]->is_log && has_changed(sync, files[i]);
    if (changed) {
        result->waiting++;
        return 0;
    }
    if (unit->is_folder && end_unit(sync, files[0], &left, error) < 0)
        return -1;
    for (size_t i = 0; i < unit->count; i++)
        files[i]->open = false;
    return 0;
}

/* ---------------------------------------------------------------- files that are gone */

/* Takes over what is known of the files from the scan before. */
static void carry_over(struct sync *sync, struct sync_scan *new_scan)
{
    for (size_t i = 0; i < sync->scan.file_count; i++) {
        struct sync_file *before = &sync->scan.files[i], *now = sync_scan_find(new_scan, before->path);
        if (now) {
            now->open = before->open;
            now->waits_since_ns = before->waits_since_ns;
            now->stored = before->stored && now->size == before->size && now->modified_ns == before->modified_ns &&
                          now->changed_ns == before->changed_ns;
        } else if (sync->options.delete_removed && (before->stored || before->open)) {
            sync->removed = memory_resize(sync->removed, sync->removed_count + 1, sizeof *sync->removed);
            sync->removed[sync->removed_count] = *before;
            sync->removed[sync->removed_count].is_log = false;
            sync->removed[sync->removed_count++].open = true;
            before->path = NULL;
        }
    }
    sync_scan_release(&sync->scan);
    sync->scan = *new_scan;
}

static bool same_unit(const struct sync_file *a, const struct sync_file *b)
{
    return a->unit_length == b->unit_length && strncmp(a->path, b->path, a->unit_length) == 0;
}

/* Removes the objects of files of one unit. Folders of which nothing is left are incomplete meanwhile. */
static int remove_unit(struct sync *sync, struct sync_file *const *files, size_t count, struct sync_result *result,
                       struct error *error)
{
    bool is_folder = files[0]->path[files[0]->unit_length] != '\0';
    SCOPED_BUFFER left;
    buffer_init(&left, PENDING_BYTES_MAX);
    if (check_claim(sync, error) < 0 || (is_folder && begin_unit(sync, files, count, &left, error) < 0))
        return -1;
    for (size_t i = 0; i < count; i++) {
        SCOPED_FREE char *key = key_of(sync->options.prefix, files[i]->path);
        if (sync_scan_find(&sync->scan, files[i]->path))
            continue;
        if (s3_delete(sync->client, key, error) < 0)
            return -1;
        result->removed++;
    }
    return is_folder ? end_unit(sync, files[0], &left, error) : 0;
}

static int remove_objects(struct sync *sync, struct sync_result *result, struct error *error)
{
    SCOPED_FREE struct sync_file **files = memory_allocate(sync->removed_count + 1, sizeof *files);
    for (size_t first = 0, count; first < sync->removed_count; first += count) {
        for (count = 0;
             first + count < sync->removed_count && same_unit(&sync->removed[first], &sync->removed[first + count]);
             count++)
            files[count] = &sync->removed[first + count];
        if (remove_unit(sync, files, count, result, error) < 0)
            return -1;
    }
    for (size_t i = 0; i < sync->removed_count; i++)
        free(sync->removed[i].path);
    sync->removed_count = 0;
    return 0;
}

int sync_round(struct sync *sync, bool final, struct sync_result *ret_result, struct error *error)
{
    const struct sync_options *options = &sync->options;
    struct sync_scan scan;
    *ret_result = (struct sync_result){.superseded = sync->superseded};
    if (sync->superseded)
        return 0;
    int64_t now_ns = clock_now_ms() * 1000000;
    if (sync_scan(options->folder, options->checkpoints, now_ns, final ? 0 : options->settle_ms * 1000000, &scan,
                  error) < 0) {
        sync_scan_release(&scan);
        return -1;
    }
    carry_over(sync, &scan);
    int result = compare_all(sync, error);
    struct error refused = ERROR_INIT; /* concerns one unit; the others are uploaded nevertheless */
    if (sync->scan.unreadable)
        error_set(&refused, ERROR_INVALID, "cannot read %s; let the sidecar's user read it, or remove it",
                  sync->scan.unreadable);
    for (size_t i = 0; result == 0 && i < sync->scan.unit_count; i++) {
        struct sync_unit *unit = &sync->scan.units[i];
        struct sync_file *file = &sync->scan.files[unit->first];
        if (unit->state == SYNC_READY)
            result = upload_unit(sync, unit, ret_result, error);
        if (result < 0 && error->kind == ERROR_INVALID) {
            refused = *error;
            error_clear(error);
            result = 0;
        }
        if (unit->state == SYNC_READY) {
            file->waits_since_ns = 0;
            continue;
        }
        if (unit->state == SYNC_INCOMPLETE) {
            ret_result->incomplete = file->path;
            continue;
        }
        ret_result->waiting++;
        if (file->waits_since_ns == 0)
            file->waits_since_ns = now_ns;
        if (now_ns - file->waits_since_ns > RESTLESS * options->settle_ms * 1000000)
            ret_result->restless = sync_scan_newest(&sync->scan, unit)->path;
    }
    if (result == 0 && *refused.message) {
        *error = refused;
        result = -1;
    }
    if (result == 0 && ret_result->waiting == 0)
        result = remove_objects(sync, ret_result, error);
    ret_result->superseded = sync->superseded;
    return result;
}

/* ---------------------------------------------------------------- restore */

#define RESTORE_ATTEMPTS 100
#define RESTORE_PAUSE_SECONDS 1

struct restoring {
    struct s3_client *client;
    const char *prefix;
    struct sync_names pending;
    struct sync_names restored; /* in this and in earlier attempts */
    uint32_t crc;               /* of names and versions of what is restored, logs apart */
};

static void restoring_release(struct restoring *restoring)
{
    sync_names_release(&restoring->pending);
    sync_names_release(&restoring->restored);
}

static bool is_left_out(void *context, const struct s3_object *object, const char *path)
{
    struct restoring *restoring = context;
    if (strncmp(path, SYNC_OBJECTS, strlen(SYNC_OBJECTS)) == 0 || sync_names_has_folder_of(&restoring->pending, path))
        return true;
    sync_names_add(&restoring->restored, path, strlen(path));
    if (sync_scan_is_log(path))
        return false;
    restoring->crc = crc32c(restoring->crc, path, strlen(path) + 1);
    restoring->crc = crc32c(restoring->crc, object->etag, strlen(object->etag) + 1);
    return false;
}

/* Reads anew what is incomplete and what is there. If that is what fetch has been told, it was so at one moment, and nothing of it is half
 * of a folder that was completed, or removed, between two requests. */
static int check_unchanged(void *context, struct error *error)
{
    struct restoring *before = context;
    SCOPED(restoring_release) struct restoring now = {.client = before->client, .prefix = before->prefix};
    SCOPED(s3_list_release) struct s3_list list = {0};
    if (read_pending(now.client, now.prefix, PENDING, &now.pending, error) < 0 ||
        list_below(now.client, now.prefix, "", FETCH_OBJECTS_MAX, &list, error) < 0)
        return -1;
    SCOPED_FREE char *whole = key_of(now.prefix, "");
    for (size_t i = 0; i < list.count; i++) {
        const char *path = list.objects[i].key + strlen(whole);
        if (*path && path[strlen(path) - 1] != '/')
            is_left_out(&now, &list.objects[i], path);
    }
    return now.crc == before->crc ? 0 : error_set(error, ERROR_CONFLICT, "the objects changed while they were listed");
}

/* Removes files of earlier attempts that are not, or not complete, in the bucket any more, and their empty folders. */
static void remove_stale(const char *folder, struct sync_names *before, const struct sync_names *now)
{
    for (size_t i = 0; i < before->count; i++) {
        SCOPED_FREE char *path = memory_format("%s/%s", folder, before->names[i]);
        if (sync_names_has(now, before->names[i]))
            continue;
        unlink(path);
        for (char *slash; (slash = strrchr(path, '/')) && (size_t)(slash - path) > strlen(folder);) {
            *slash = '\0'; /* a program may take an empty folder for a checkpoint */
            if (rmdir(path) < 0)
                break;
        }
    }
}

int sync_restore(struct s3_client *client, const struct fetch_request *request, struct fetch_result *ret_result,
                 struct error *error)
{
    SCOPED(sync_names_release) struct sync_names before = {.names = NULL};
    struct fetch_request whole = *request;
    whole.is_left_out = is_left_out;
    whole.check = check_unchanged;
    for (int left = RESTORE_ATTEMPTS;;) {
        SCOPED(restoring_release) struct restoring restoring = {.client = client, .prefix = request->prefix};
        whole.context = &restoring;
        if (read_pending(client, request->prefix, PENDING, &restoring.pending, error) < 0)
            return -1;
        int result = fetch(client, &whole, ret_result, error);
        sync_names_sort(&restoring.restored);
        if (result == 0) {
            remove_stale(request->folder, &before, &restoring.restored);
            return 0;
        }
        if (error->kind != ERROR_CONFLICT && error->kind != ERROR_NOT_FOUND)
            return -1;
        if (--left == 0) /* not an error of the objects */
            return error_set(error, ERROR_UNAVAILABLE, "objects below the prefix \"%s\" change all the time",
                             request->prefix);
        for (size_t i = 0; i < restoring.restored.count; i++)
            sync_names_add(&before, restoring.restored.names[i], strlen(restoring.restored.names[i]));
        error_clear(error);
        nanosleep(&(struct timespec){.tv_sec = RESTORE_PAUSE_SECONDS}, NULL);
    }
}
