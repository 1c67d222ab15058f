/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/sync.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/crc32c.h"
#include "common/memory.h"
#include "common/s3_transfer.h"
#include "storage/sync_scan.h"

#define PENDING SYNC_OBJECTS "pending/"
#define WRITERS SYNC_OBJECTS "writers/"
#define WRITERS_MAX ((size_t)100000)
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

/* ---------------------------------------------------------------- what the bucket has */

static char *local_path(const struct sync *sync, const struct sync_file *file)
{
    return memory_format("%s/%s", sync->options.folder, file->path);
}

static int file_crc(const char *path, uint32_t *ret_crc)
{
    enum { PIECE = 1 << 20 };
    SCOPED_CLOSE int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
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
    file->stored = head.has_crc && file_crc(path, &crc) == 0 && crc == head.crc;
    return 0;
}

/* In the first round: files that the bucket has are not uploaded again, and units that a container before this one has begun are completed. */
static int compare_all(struct sync *sync, struct error *error)
{
    SCOPED(s3_list_release) struct s3_list list = {0};
    if (sync->compared)
        return 0;
    const char *prefix = sync->options.prefix;
    if (list_below(sync->client, prefix, "", FETCH_OBJECTS_MAX, &list, error) < 0)
        return -1;
    for (size_t i = 0; i < sync->scan.file_count; i++) {
        struct sync_file *file = &sync->scan.files[i];
        SCOPED_FREE char *key = key_of(prefix, file->path),
                         *begun = memory_format("%s%s" PENDING "%.*s", prefix, *prefix ? "/" : "",
                                                (int)file->unit_length, file->path);
        const struct s3_object *object =
            list.count == 0 ? NULL : bsearch(key, list.objects, list.count, sizeof *list.objects, by_key);
        if (object && compare(sync, file, object, error) < 0)
            return -1;
        file->open = list.count > 0 && bsearch(begun, list.objects, list.count, sizeof *list.objects, by_key);
    }
    sync->compared = true;
    return 0;
}

/* ---------------------------------------------------------------- units */

static int add_folder(struct buffer *text, const char *path, struct error *error)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    SCOPED_FREE char *line = memory_format("%.*s\n", (int)length, path);
    if (text->length >= length + 1 && strcmp(buffer_text(text) + text->length - length - 1, line) == 0)
        return 0; /* as for the file before */
    return buffer_append_string(text, line, error);
}

static char *pending_key(const struct sync *sync, const struct sync_file *file)
{
    SCOPED_FREE char *path = memory_format(PENDING "%.*s", (int)file->unit_length, file->path);
    return key_of(sync->options.prefix, path);
}

/* Declares the folders of these files incomplete. */
static int begin_unit(struct sync *sync, struct sync_file *const *files, size_t count, struct error *error)
{
    SCOPED_BUFFER text;
    SCOPED_FREE char *key = pending_key(sync, files[0]);
    buffer_init(&text, PENDING_BYTES_MAX);
    for (size_t i = 0; i < count; i++)
        if (!files[i]->is_log && (files[i]->open || !files[i]->stored) && add_folder(&text, files[i]->path, error) < 0)
            return -1;
    return text.length == 0 ? 0 : s3_put(sync->client, key, buffer_text(&text), text.length, S3_PUT_ALWAYS, error);
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
    SCOPED_FREE char *path = local_path(sync, file), *key = key_of(sync->options.prefix, file->path);
    if (s3_upload(sync->client, key, path, sync->options.connections, error) < 0)
        return -1;
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
    bool needed = false, changed = false;
    sync_scan_order(&sync->scan, unit, files);
    for (size_t i = 0; i < unit->count; i++)
        needed |= files[i]->open || !files[i]->stored;
    if (!needed)
        return 0;
    if (check_claim(sync, error) < 0 || (unit->is_folder && begin_unit(sync, files, unit->count, error) < 0))
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
    SCOPED_FREE char *key = pending_key(sync, files[0]);
    if (unit->is_folder && (check_claim(sync, error) < 0 || s3_delete(sync->client, key, error) < 0))
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

static bool unit_is_gone(const struct sync *sync, const struct sync_file *file)
{
    for (size_t i = 0; i < sync->scan.unit_count; i++)
        if (same_unit(&sync->scan.files[sync->scan.units[i].first], file))
            return false;
    return true;
}

/* Removes the objects of files of one unit. A folder of which nothing is left is incomplete meanwhile. */
static int remove_unit(struct sync *sync, struct sync_file *const *files, size_t count, struct sync_result *result,
                       struct error *error)
{
    bool is_folder = files[0]->path[files[0]->unit_length] != '\0' && unit_is_gone(sync, files[0]);
    SCOPED_FREE char *pending = pending_key(sync, files[0]);
    if (check_claim(sync, error) < 0 || (is_folder && begin_unit(sync, files, count, error) < 0))
        return -1;
    for (size_t i = 0; i < count; i++) {
        SCOPED_FREE char *key = key_of(sync->options.prefix, files[i]->path);
        if (!sync_scan_find(&sync->scan, files[i]->path) && s3_delete(sync->client, key, error) < 0)
            return -1;
        result->removed++;
    }
    return is_folder ? s3_delete(sync->client, pending, error) : 0;
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
    for (size_t i = 0; result == 0 && i < sync->scan.unit_count; i++) {
        struct sync_unit *unit = &sync->scan.units[i];
        struct sync_file *file = &sync->scan.files[unit->first];
        if (unit->state == SYNC_READY)
            result = upload_unit(sync, unit, ret_result, error);
        else if (unit->state == SYNC_CHANGING)
            ret_result->waiting++;
        else
            ret_result->incomplete = file->path;
    }
    if (result == 0 && ret_result->waiting == 0)
        result = remove_objects(sync, ret_result, error);
    ret_result->superseded = sync->superseded;
    return result;
}

/* ---------------------------------------------------------------- restore */

/* Folders with incomplete files, one in a line, in the order of strcmp. */
struct incomplete {
    char **folders;
    size_t count;
};

static void incomplete_release(struct incomplete *incomplete)
{
    for (size_t i = 0; i < incomplete->count; i++)
        free(incomplete->folders[i]);
    free(incomplete->folders);
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static bool is_incomplete(const void *context, const char *path)
{
    const struct incomplete *incomplete = context;
    const char *slash = strrchr(path, '/');
    SCOPED_FREE char *folder = memory_copy_bytes(path, slash ? (size_t)(slash - path) : 0);
    return strncmp(path, SYNC_OBJECTS, strlen(SYNC_OBJECTS)) == 0 ||
           (incomplete->count > 0 &&
            bsearch(&folder, incomplete->folders, incomplete->count, sizeof *incomplete->folders, by_text));
}

static void add_lines(struct incomplete *incomplete, const char *text)
{
    for (size_t length; *text; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        incomplete->folders = memory_resize(incomplete->folders, incomplete->count + 1, sizeof *incomplete->folders);
        incomplete->folders[incomplete->count++] = memory_copy_bytes(text, length);
    }
}

int sync_restore(struct s3_client *client, const struct fetch_request *request, struct fetch_result *ret_result,
                 struct error *error)
{
    SCOPED(s3_list_release) struct s3_list list = {0};
    SCOPED(incomplete_release) struct incomplete incomplete = {.folders = NULL};
    if (list_below(client, request->prefix, PENDING, FETCH_OBJECTS_MAX, &list, error) < 0)
        return -1;
    for (size_t i = 0; i < list.count; i++) {
        SCOPED_BUFFER text;
        buffer_init(&text, PENDING_BYTES_MAX);
        int result = s3_get_whole(client, list.objects[i].key, &text, error);
        if (result < 0 && error->kind != ERROR_NOT_FOUND) /* complete by now */
            return -1;
        if (result == 0)
            add_lines(&incomplete, buffer_text(&text));
    }
    if (incomplete.count > 0)
        qsort(incomplete.folders, incomplete.count, sizeof *incomplete.folders, by_text);
    struct fetch_request whole = *request;
    whole.is_left_out = is_incomplete;
    whole.context = &incomplete;
    return fetch(client, &whole, ret_result, error);
}
