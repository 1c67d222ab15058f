/* SPDX-License-Identifier: Apache-2.0 */
#include "common/s3_transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/crc32c.h"
#include "common/memory.h"
#include "common/regular_file.h"

#define RANGE_BYTES ((int64_t)8 * 1024 * 1024)
#define PART_BYTES ((int64_t)16 * 1024 * 1024)
#define PARTS_MAX 9000 /* S3 allows 10,000 */

/* ---------------------------------------------------------------- threads that share work */

struct pool {
    pthread_mutex_t lock;
    /* Takes the next piece of the work and does it. Returns 0 when it is done, 1 if no piece is left, -1 if it failed. */
    int (*work)(void *job, struct error *error);
    void *job;
    bool failed;
    struct error error;
};

static bool pool_goes_on(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    bool result = !pool->failed;
    pthread_mutex_unlock(&pool->lock);
    return result;
}

static void *pool_thread(void *context)
{
    struct pool *pool = context;
    int result = 0;
    while (result == 0 && pool_goes_on(pool)) {
        struct error error = ERROR_INIT;
        result = pool->work(pool->job, &error);
        pthread_mutex_lock(&pool->lock);
        if (result < 0 && !pool->failed) {
            pool->failed = true;
            pool->error = error;
        }
        pthread_mutex_unlock(&pool->lock);
    }
    return NULL;
}

/* Works in `connections` threads, of which the caller's is one, until no piece is left or one has failed. */
static int pool_run(struct pool *pool, unsigned connections, struct error *error)
{
    pthread_t threads[S3_CONNECTIONS_MAX];
    unsigned count = 0;
    pthread_mutex_init(&pool->lock, NULL);
    while (count + 1 < connections && count < S3_CONNECTIONS_MAX &&
           pthread_create(&threads[count], NULL, pool_thread, pool) == 0)
        count++;
    pool_thread(pool);
    while (count > 0)
        pthread_join(threads[--count], NULL);
    pthread_mutex_destroy(&pool->lock);
    if (pool->failed && error)
        *error = pool->error;
    return pool->failed ? -1 : 0;
}

/* ---------------------------------------------------------------- download */

struct incoming {
    char *partial; /* path of the partial file; NULL: it is not open */
    int file;
    int64_t requested, received; /* bytes */
    bool has_crc;
    uint32_t crc;     /* of the object, as the server reports it */
    uint32_t *pieces; /* CRC of each range of RANGE_BYTES that was received */
};

struct download_job {
    struct s3_client *client;
    const struct s3_download *files;
    struct incoming *states;
    size_t count, next;
    int64_t bytes;
    pthread_mutex_t lock;
};

static void incoming_release(struct incoming *state)
{
    if (state->file >= 0)
        close(state->file);
    free(state->partial);
    free(state->pieces);
    *state = (struct incoming){.file = -1};
}

/* `index` tells apart two downloads to the same path. */
static char *partial_path(const char *path, size_t index)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return memory_format("%.*s" S3_PARTIAL_PREFIX "%zu", (int)(name - path), path, index);
}

static int open_partial(struct incoming *state, size_t index, const struct s3_download *file, struct error *error)
{
    state->file = -1;
    if (file->size < 0 || file->size > S3_OBJECT_MAX)
        return error_set(error, ERROR_CORRUPT, "the server reports a size of %lld bytes for %s", (long long)file->size,
                         file->key);
    state->partial = partial_path(file->path, index);
    unlink(state->partial);
    state->file = open(state->partial, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (state->file < 0)
        return error_set_errno(error, "create %s", state->partial);
    if (file->size > 0 && (errno = posix_fallocate(state->file, 0, file->size)) != 0)
        return error_set_errno(error, "allocate %lld bytes on disk for %s", (long long)file->size, file->key);
    state->pieces = memory_allocate((size_t)(file->size / RANGE_BYTES) + 1, sizeof *state->pieces);
    return 0;
}

static int file_crc(int file, const char *path, uint32_t *ret_crc, struct error *error)
{
    const size_t size = (size_t)1 << 20;
    SCOPED_FREE char *bytes = memory_allocate(size, 1);
    uint32_t crc = 0;
    off_t offset = 0;
    for (ssize_t got; (got = pread(file, bytes, size, offset)) != 0; offset += got) {
        if (got < 0)
            return error_set_errno(error, "read %s", path);
        crc = crc32c(crc, bytes, (size_t)got);
    }
    *ret_crc = crc;
    return 0;
}

static pthread_once_t boot_once = PTHREAD_ONCE_INIT;
static bool boot_is_known;
static uint32_t boot_crc; /* of the id that Linux gives each start of the machine */

static void read_boot(void)
{
    SCOPED_BUFFER id;
    buffer_init(&id, 256);
    boot_is_known = buffer_read_file(&id, "/proc/sys/kernel/random/boot_id", NULL) == 0;
    boot_crc = crc32c(0, buffer_text(&id), id.length);
}

/* Returns the nanoseconds that the modification time of a file with this version of the object gets; -1 if the version is not known. They
 * differ after a reboot (s3_download_is_there). */
static long version_mark(const struct s3_download *file)
{
    pthread_once(&boot_once, read_boot);
    if (!boot_is_known || !file->etag || *file->etag == '\0')
        return -1;
    return (long)(crc32c(boot_crc, file->etag, strlen(file->etag)) % 1000000000u);
}

bool s3_download_is_there(const struct s3_download *file)
{
    struct stat status;
    return lstat(file->path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == file->size &&
           status.st_mtim.tv_nsec == version_mark(file);
}

static void mark_version(int descriptor, const struct s3_download *file)
{
    long mark = version_mark(file);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL), .tv_nsec = mark}};
    if (mark >= 0)
        futimens(descriptor, times);
}

/* Verifies a file whose bytes are all there, and gives it its own name. */
static int finish_file(struct incoming *state, const struct s3_download *file, struct error *error)
{
    uint32_t crc = 0;
    for (int64_t at = 0; at < file->size; at += RANGE_BYTES) {
        int64_t left = file->size - at;
        crc = crc32c_join(crc, state->pieces[at / RANGE_BYTES], (uint64_t)(left < RANGE_BYTES ? left : RANGE_BYTES));
    }
    if (state->has_crc && crc != state->crc)
        return error_set(error, ERROR_CORRUPT, "%s: the downloaded bytes do not match the object's checksum",
                         file->key);
    mark_version(state->file, file);
    if (rename(state->partial, file->path) < 0)
        return error_set_errno(error, "rename %s to %s", state->partial, file->path);
    incoming_release(state);
    return 0;
}

/* Chooses the next range to read, and of which file. Returns 1 if none is left. Called under the lock. */
static int take_piece(struct download_job *job, size_t *ret_index, int64_t *ret_offset, int64_t *ret_length,
                      struct error *error)
{
    if (job->next == job->count)
        return 1;
    const struct s3_download *file = &job->files[job->next];
    struct incoming *state = &job->states[job->next];
    if (!state->partial && open_partial(state, job->next, file, error) < 0)
        return -1;
    int64_t left = file->size - state->requested;
    *ret_index = job->next;
    *ret_offset = state->requested;
    *ret_length = left < RANGE_BYTES ? left : RANGE_BYTES;
    state->requested += *ret_length;
    job->next += state->requested == file->size;
    return 0;
}

static int download_piece(void *context, struct error *error)
{
    struct download_job *job = context;
    size_t index;
    int64_t offset, length;
    pthread_mutex_lock(&job->lock);
    int taken = take_piece(job, &index, &offset, &length, error);
    pthread_mutex_unlock(&job->lock);
    if (taken != 0)
        return taken;
    const struct s3_download *file = &job->files[index];
    struct incoming *state = &job->states[index];
    struct s3_range range = {.key = file->key,
                             .etag = file->etag,
                             .offset = offset,
                             .length = length,
                             .file = state->file,
                             .file_offset = offset,
                             .crc = &state->pieces[offset / RANGE_BYTES]};
    struct s3_head head = {.size = file->size};
    if (length > 0 && s3_get(job->client, &range, &head, error) < 0)
        return -1;
    pthread_mutex_lock(&job->lock);
    state->received += length;
    job->bytes += length;
    state->has_crc = head.has_crc;
    state->crc = head.crc;
    bool complete = state->received == file->size;
    pthread_mutex_unlock(&job->lock);
    return complete ? finish_file(state, file, error) : 0;
}

int s3_download(struct s3_client *client, const struct s3_download *files, size_t count, unsigned connections,
                int64_t *ret_bytes, struct error *error)
{
    struct download_job job = {.client = client, .files = files, .count = count, .lock = PTHREAD_MUTEX_INITIALIZER};
    job.states = memory_allocate(count + 1, sizeof *job.states);
    struct pool pool = {.work = download_piece, .job = &job};
    int result = pool_run(&pool, connections, error);
    for (size_t i = 0; i < count; i++) {
        if (!job.states[i].partial)
            continue;
        unlink(job.states[i].partial);
        incoming_release(&job.states[i]);
    }
    free(job.states);
    if (ret_bytes)
        *ret_bytes = job.bytes;
    return result;
}

/* ---------------------------------------------------------------- upload */

struct upload_job {
    struct s3_client *client;
    const char *key, *path, *id;
    int file;
    int64_t size, part_bytes;
    struct stat before; /* the file's state before it was read */
    s3_upload_check *check;
    const void *context; /* of the check */
    unsigned count, next;
    char (*etags)[S3_ETAG_MAX];
    pthread_mutex_t lock;
};

static int read_exactly(int file, const char *path, char *bytes, size_t length, int64_t offset, struct error *error)
{
    for (size_t done = 0; done < length;) {
        ssize_t got = pread(file, bytes + done, length - done, (off_t)(offset + (int64_t)done));
        if (got < 0)
            return error_set_errno(error, "read %s", path);
        if (got == 0)
            return error_set(error, ERROR_CONFLICT, "%s became shorter while it was uploaded", path);
        done += (size_t)got;
    }
    return 0;
}

/* The object's checksum was computed before its parts were read, so the file must be the same since. Then asks the caller's check. */
static int check_before_end(const struct upload_job *job, struct error *error)
{
    struct stat now;
    if (fstat(job->file, &now) < 0)
        return error_set_errno(error, "read size and time of %s", job->path);
    if (now.st_size != job->before.st_size || now.st_mtim.tv_sec != job->before.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != job->before.st_mtim.tv_nsec)
        return error_set(error, ERROR_CONFLICT, "%s changed while it was uploaded", job->path);
    return job->check ? job->check(job->context, error) : 0;
}

static int upload_part(void *context, struct error *error)
{
    struct upload_job *job = context;
    pthread_mutex_lock(&job->lock);
    unsigned index = job->next;
    job->next += index < job->count;
    pthread_mutex_unlock(&job->lock);
    if (index == job->count)
        return 1;
    int64_t offset = index * job->part_bytes, left = job->size - offset;
    size_t length = (size_t)(left < job->part_bytes ? left : job->part_bytes);
    SCOPED_FREE char *bytes = malloc(length);
    if (!bytes)
        return error_set(error, ERROR_NO_SPACE, "no memory for a part of %zu bytes of %s", length, job->path);
    if (read_exactly(job->file, job->path, bytes, length, offset, error) < 0)
        return -1;
    return s3_parts_put(job->client, job->key, job->id, index + 1, bytes, length, job->etags[index], error);
}

static int upload_in_parts(struct upload_job *job, unsigned connections, uint32_t crc, struct error *error)
{
    SCOPED_FREE char *id = NULL;
    job->part_bytes = job->size / PARTS_MAX > PART_BYTES ? job->size / PARTS_MAX + 1 : PART_BYTES;
    job->count = (unsigned)((job->size + job->part_bytes - 1) / job->part_bytes);
    if (s3_parts_begin(job->client, job->key, crc, &id, error) < 0)
        return -1;
    job->id = id;
    job->etags = memory_allocate(job->count, sizeof *job->etags);
    struct pool pool = {.work = upload_part, .job = job};
    int result = pool_run(&pool, connections, error);
    if (result == 0)
        result = check_before_end(job, error);
    if (result == 0)
        result = s3_parts_end(job->client, job->key, id, job->etags, job->count, crc, job->size, error);
    if (result < 0)
        s3_parts_abort(job->client, job->key, id);
    free(job->etags);
    return result;
}

int s3_upload(struct s3_client *client, const char *key, const char *path, unsigned connections, struct error *error)
{
    return s3_upload_if(client, key, path, connections, NULL, NULL, error);
}

int s3_upload_if(struct s3_client *client, const char *key, const char *path, unsigned connections,
                 s3_upload_check *check, const void *context, struct error *error)
{
    SCOPED_CLOSE int file = -1;
    off_t size = 0;
    uint32_t crc = 0;
    if (regular_file_open(path, &file, &size, error) < 0)
        return -1;
    struct upload_job job = {.client = client,
                             .key = key,
                             .path = path,
                             .file = file,
                             .size = size,
                             .check = check,
                             .context = context,
                             .lock = PTHREAD_MUTEX_INITIALIZER};
    if (fstat(file, &job.before) < 0)
        return error_set_errno(error, "read size and time of %s", path);
    if (size > PART_BYTES)
        return file_crc(file, path, &crc, error) < 0 ? -1 : upload_in_parts(&job, connections, crc, error);
    SCOPED_FREE char *bytes = memory_allocate((size_t)size + 1, 1);
    if (read_exactly(file, path, bytes, (size_t)size, 0, error) < 0 || check_before_end(&job, error) < 0)
        return -1;
    return s3_put(client, key, bytes, (size_t)size, S3_PUT_ALWAYS, error);
}
