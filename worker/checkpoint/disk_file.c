/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/disk_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/crc32c.h"
#include "common/extremes.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/safe_path.h"

#define MIB ((size_t)1 << 20)
#define BURST_BYTES (8 * MIB) /* of one read or write call */
#define LONG_BYTES MIB        /* from this size on a second thread computes the digest */
#define STAGE_BYTES MIB
/* The cache is at most this far ahead of the disk; reading back updates the file's time this
 * often. */
#define PACE_BYTES (32 * MIB)
_Static_assert(STAGE_BYTES % DISK_FILE_BLOCK == 0 && BURST_BYTES % DISK_FILE_BLOCK == 0, "both are whole blocks");

static size_t total_bytes(const struct disk_file_span *spans, unsigned count)
{
    size_t total = 0;
    for (unsigned i = 0; i < count; i++)
        total += spans[i].length;
    return total;
}

/* ---- past the page cache */

/* Network file systems may support O_DIRECT too, but send each request by itself, slowly. */
static bool is_local_disk(int descriptor)
{
    struct statfs status;
    if (fstatfs(descriptor, &status) < 0)
        return false;
    switch ((unsigned long)status.f_type) {
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
        return true;
    default:
        return false;
    }
}

static bool set_direct(int descriptor, bool direct)
{
    int flags = fcntl(descriptor, F_GETFL);
    return flags >= 0 && fcntl(descriptor, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

static bool go_past_cache(int descriptor)
{
    return is_local_disk(descriptor) && set_direct(descriptor, true);
}

/* The first aligned address in memory that has DISK_FILE_BLOCK bytes to spare. */
static unsigned char *first_block(unsigned char *memory)
{
    return memory + -(uintptr_t)memory % DISK_FILE_BLOCK;
}

/* ---- writing */

struct stream {
    int descriptor;
    bool direct;
    off_t written;
    off_t on_disk;        /* bytes written through the cache that the disk has */
    unsigned char *stage; /* bytes that are not aligned, or less than a block */
    size_t staged;
};

/* sync_file_range is not supported here; then the sync at the end writes everything. */
static bool is_unsupported(int code)
{
    return code == EINVAL || code == ENOSYS || code == EOPNOTSUPP || code == ESPIPE;
}

/* Starts writing the newest bytes to the disk, and waits for those PACE_BYTES behind: otherwise the
 * whole file would be in memory at once, and a slow disk could not be told from one that hangs. An
 * error of the disk is reported to the call that waits for it, and not again to the sync at the
 * end. */
static int begin_writing_back(struct stream *stream, off_t from, struct error *error)
{
    if (stream->direct)
        return 0;
    (void)file_calls.sync_range(stream->descriptor, from, stream->written - from, SYNC_FILE_RANGE_WRITE);
    off_t behind = stream->written - (off_t)PACE_BYTES;
    if (behind <= stream->on_disk)
        return 0;
    if (file_calls.sync_range(stream->descriptor, stream->on_disk, behind - stream->on_disk,
                              SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER) < 0 &&
        !is_unsupported(errno))
        return error_set_errno(error, "cannot write");
    stream->on_disk = behind;
    return 0;
}

/* The next write would not be aligned, or the file system refuses O_DIRECT. */
static void go_through_cache(struct stream *stream)
{
    if (stream->direct)
        set_direct(stream->descriptor, false);
    stream->direct = false;
}

static int write_burst(struct stream *stream, const unsigned char *bytes, size_t length, struct error *error)
{
    off_t from = stream->written;
    while (length > 0) {
        ssize_t written = file_calls.write(stream->descriptor, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EINVAL && stream->direct)
            written = 0;
        else if (written < 0)
            return error_set_errno(error, "cannot write");
        if ((size_t)written < length && (written == 0 || written % DISK_FILE_BLOCK != 0))
            go_through_cache(stream);
        bytes += written;
        length -= (size_t)written;
        stream->written += written;
    }
    return begin_writing_back(stream, from, error);
}

static int write_through(struct stream *stream, const unsigned char *bytes, size_t length, struct error *error)
{
    for (size_t at = 0; at < length; at += BURST_BYTES)
        if (write_burst(stream, bytes + at, size_min(length - at, BURST_BYTES), error) < 0)
            return -1;
    return 0;
}

static int write_stage(struct stream *stream, struct error *error)
{
    size_t length = stream->staged;
    stream->staged = 0;
    return write_through(stream, stream->stage, length, error);
}

/* Returns how many bytes go into the stage, so that the rest begins at a block both in memory and in the file, if that is possible. */
static size_t count_to_stage(const struct stream *stream, const unsigned char *bytes, size_t length)
{
    size_t to_block = -(uintptr_t)bytes % DISK_FILE_BLOCK;
    bool meets = (stream->staged + to_block) % DISK_FILE_BLOCK == 0;
    if (meets && to_block == 0 && length >= DISK_FILE_BLOCK)
        return 0;
    return size_min(length, size_min(meets && to_block > 0 ? to_block : length, STAGE_BYTES - stream->staged));
}

static int append(struct stream *stream, const unsigned char *bytes, size_t length, struct error *error)
{
    while (length > 0 && stream->direct) {
        size_t step = count_to_stage(stream, bytes, length);
        memcpy(stream->stage + stream->staged, bytes, step);
        stream->staged += step;
        if ((step == 0 || stream->staged == STAGE_BYTES) && write_stage(stream, error) < 0)
            return -1;
        if (step == 0 && stream->direct) {
            step = length / DISK_FILE_BLOCK * DISK_FILE_BLOCK;
            if (write_through(stream, bytes, step, error) < 0)
                return -1;
        }
        bytes += step;
        length -= step;
    }
    return write_through(stream, bytes, length, error);
}

static int finish(struct stream *stream, struct error *error)
{
    if (stream->direct && stream->staged % DISK_FILE_BLOCK != 0)
        go_through_cache(stream);
    if (write_stage(stream, error) < 0)
        return -1;
    if (file_calls.fsync(stream->descriptor) < 0)
        return error_set_errno(error, "cannot sync");
    return 0;
}

static int write_spans(int descriptor, const struct disk_file_span *spans, unsigned count, enum disk_file_way way,
                       struct error *error)
{
    bool direct = way == DISK_FILE_PAST_CACHE && total_bytes(spans, count) >= LONG_BYTES && go_past_cache(descriptor);
    SCOPED_FREE unsigned char *memory = memory_allocate(direct ? STAGE_BYTES + DISK_FILE_BLOCK : 1, 1);
    struct stream stream = {.descriptor = descriptor, .direct = direct, .stage = first_block(memory)};
    for (unsigned i = 0; i < count; i++)
        if (append(&stream, spans[i].bytes, spans[i].length, error) < 0)
            return -1;
    return finish(&stream, error);
}

static int write_file(const char *path, const struct disk_file_span *spans, unsigned count, enum disk_file_way way,
                      struct error *error)
{
    int descriptor;
    if (file_create(path, &descriptor, error) < 0)
        return -1;
    int result = write_spans(descriptor, spans, count, way, error);
    if (file_calls.close(descriptor) < 0 && result == 0)
        result = error_set_errno(error, "cannot close");
    return result < 0 ? error_wrap(error, "%s", path) : 0;
}

struct digest {
    const struct disk_file_span *spans;
    unsigned count;
    uint32_t crc;
};

static void *take_digest(void *argument)
{
    struct digest *digest = argument;
    for (unsigned i = 0; i < digest->count; i++)
        digest->crc = crc32c(digest->crc, digest->spans[i].bytes, digest->spans[i].length);
    return NULL;
}

int disk_file_write(const char *path, const struct disk_file_span *spans, unsigned count, enum disk_file_way way,
                    uint32_t *ret_crc, int64_t *ret_size, struct error *error)
{
    struct digest digest = {.spans = spans, .count = count};
    size_t total = total_bytes(spans, count);
    pthread_t thread;
    bool beside = total >= LONG_BYTES && pthread_create(&thread, NULL, take_digest, &digest) == 0;
    int result = write_file(path, spans, count, way, error);
    if (beside)
        pthread_join(thread, NULL);
    else if (result == 0)
        take_digest(&digest);
    if (result < 0)
        return -1;
    *ret_crc = digest.crc;
    *ret_size = (int64_t)total;
    return 0;
}

/* ---- reading back */

/* Updates the file's time when another PACE_BYTES were read. */
static void report_progress(int descriptor, int64_t before, int64_t size)
{
    if (before / (int64_t)PACE_BYTES != size / (int64_t)PACE_BYTES)
        (void)futimens(descriptor, NULL);
}

static int read_all(const char *path, bool past_cache, bool reports_progress, uint32_t *ret_crc, int64_t *ret_size,
                    struct error *error)
{
    SCOPED_CLOSE int descriptor = -1;
    if (file_open(path, &descriptor, error) < 0)
        return -1;
    bool direct = past_cache && go_past_cache(descriptor);
    SCOPED_FREE unsigned char *memory = memory_allocate(BURST_BYTES + DISK_FILE_BLOCK, 1);
    unsigned char *blocks = first_block(memory);
    uint32_t crc = 0;
    int64_t size = 0;
    for (ssize_t got = 1; got != 0;) {
        got = read(descriptor, blocks, BURST_BYTES);
        if (got < 0 && errno == EINVAL && direct) {
            direct = false;
            set_direct(descriptor, false);
        } else if (got < 0 && errno != EINTR) {
            return error_set_errno(error, "cannot read %s", path);
        } else if (got > 0) {
            crc = crc32c(crc, blocks, (size_t)got);
            size += got;
            if (reports_progress)
                report_progress(descriptor, size - got, size);
        }
    }
    *ret_crc = crc;
    *ret_size = size;
    return 0;
}

int disk_file_digest(const char *path, uint32_t *ret_crc, int64_t *ret_size, struct error *error)
{
    return read_all(path, true, false, ret_crc, ret_size, error);
}

int disk_file_check(const char *path, uint32_t crc, int64_t size, struct error *error)
{
    uint32_t read_crc;
    int64_t read_size;
    if (read_all(path, false, true, &read_crc, &read_size, error) < 0)
        return -1;
    if (read_crc != crc || read_size != size)
        return error_set(error, ERROR_CORRUPT, "%s does not have the bytes that were written to it; check the storage",
                         path);
    return 0;
}

int64_t disk_file_progress(const char *path)
{
    struct stat status;
    if (safe_stat(path, &status) < 0)
        return -1;
    return (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec + status.st_size;
}
