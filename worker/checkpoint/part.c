/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/part.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/contract/checkpoint_layout.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/checkpoint/bucket_shards.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/snapshot.h"

#define WAIT_NS (120 * (int64_t)1000000000)
#define LATE_NS (30 * (int64_t)1000000000)
#define BEGUN_NS (2 * (int64_t)1000000000) /* from the vote to the first byte of the file */
#define LOOK_NS 10000000L
#define LOOK_IN_BUCKET_NS 250000000L
#define SHARD_WAIT_NS (900 * (int64_t)1000000000)
/* A rank that moved on to a newer generation has this long to finish an upload that it has begun. */
#define SHARD_MOVED_NS (60 * (int64_t)1000000000)
#define SUM_TEXT_MAX 512
#define FAILED_WORD "failed " /* in place of a digest; errno and the reason follow */

static bool is_of_generation(const struct checkpoint_part_key *a, const struct checkpoint_part_key *b)
{
    return a->attempt == b->attempt && a->incarnation == b->incarnation && a->counter == b->counter;
}

bool checkpoint_part_key_same_save(const struct checkpoint_part_key *a, const struct checkpoint_part_key *b)
{
    return a->step == b->step && is_of_generation(a, b);
}

/* Returns the prefix of the names of all parts of a save. */
static char *save_path(const char *directory, const struct checkpoint_part_key *key)
{
    return memory_format("%s/" CHECKPOINT_PART_PREFIX "%" PRIu32 ".%" PRIu32 ".%" PRIu32 "-step-%08lld", directory,
                         key->attempt, key->incarnation, key->counter, (long long)key->step);
}

static char *part_path(const char *directory, const struct checkpoint_part_key *key)
{
    SCOPED_FREE char *save = save_path(directory, key);
    return memory_format("%s-rank-%05u", save, key->rank);
}

static char *call_path(const char *directory, const struct checkpoint_part_key *key)
{
    SCOPED_FREE char *save = save_path(directory, key);
    return memory_format("%s-called", save);
}

static char *sum_path(const char *part)
{
    return memory_format("%s.sum", part);
}

/* ---- failures of other ranks */

int part_failure_format(const struct error *why, char text[PART_FAILURE_MAX])
{
    return snprintf(text, PART_FAILURE_MAX, "%d %.400s", why->os_error, why->message);
}

int part_failure_read(const char *text, struct error *error)
{
    char *words;
    int number = (int)strtol(text, &words, 10);
    words += strspn(words, " ");
    bool full = number == ENOSPC || number == EDQUOT;
    error_set(error, full ? ERROR_NO_SPACE : ERROR_SYSTEM, "%.*s", (int)strcspn(words, "\n"), words);
    if (error)
        error->os_error = number;
    return -1;
}

/* ---- writing */

struct part_writer {
    char *directory;
    struct bucket *bucket; /* NULL: none */
    char *path;            /* of the part last begun */
    char *older;           /* and of the one before, of the same generation */
    struct snapshot snapshot;
    struct checkpoint_part_key key;
    pthread_t thread;
    bool has_thread;
    atomic_bool done;
    struct error result;
};

struct part_writer *part_writer_new(const char *directory, struct bucket *bucket)
{
    struct part_writer *writer = memory_allocate(1, sizeof *writer);
    writer->bucket = bucket;
    writer->directory = memory_copy_string(directory);
    return writer;
}

static int write_sum(const char *part, uint32_t crc, int64_t bytes, struct error *error)
{
    char text[SUM_TEXT_MAX];
    int length = snprintf(text, sizeof text, "%08" PRIx32 " %lld\n", crc, (long long)bytes);
    SCOPED_FREE char *sum = sum_path(part);
    return file_replace(sum, text, (size_t)length, error);
}

static int upload_part(const struct part_writer *writer, struct error *error)
{
    char name[BUCKET_SHARD_NAME_MAX];
    if (bucket_shard_name(writer->bucket, &writer->key, name, error) < 0 ||
        bucket_put_shard(writer->bucket, writer->path, name, error) < 0)
        return -1;
    file_calls.unlink(writer->path);
    return 0;
}

static int write_part(struct part_writer *writer, struct error *error)
{
    uint32_t crc;
    int64_t bytes;
    if (file_make_directories(writer->directory, error) < 0 ||
        safetensors_write(writer->path, writer->snapshot.tensors, writer->snapshot.count, NULL, DISK_FILE_CACHED, &crc,
                          &bytes, error) < 0 ||
        disk_file_check(writer->path, crc, bytes, error) < 0)
        return -1;
    return writer->bucket ? upload_part(writer, error) : write_sum(writer->path, crc, bytes, error);
}

/* Removes what is left of the part first, since the disk may be full. Ignores failures. */
static void report_failure(const struct part_writer *writer)
{
    char text[SUM_TEXT_MAX], failure[PART_FAILURE_MAX];
    const struct error *why = &writer->result;
    SCOPED_FREE char *sum = sum_path(writer->path);
    char name[BUCKET_SHARD_NAME_MAX];
    file_calls.unlink(writer->path);
    if (writer->bucket) {
        if (bucket_shard_name(writer->bucket, &writer->key, name, NULL) == 0)
            bucket_put_failure(writer->bucket, name, why);
        return;
    }
    part_failure_format(why, failure);
    int length = snprintf(text, sizeof text, FAILED_WORD "%s\n", failure);
    file_replace(sum, text, (size_t)length, NULL);
}

static void *run_part_writer(void *argument)
{
    struct part_writer *writer = argument;
    if (write_part(writer, &writer->result) < 0) {
        error_wrap(&writer->result, "save this rank's part of step %lld", (long long)writer->key.step);
        report_failure(writer);
    }
    atomic_store(&writer->done, true);
    return NULL;
}

static void join_part_writer(struct part_writer *writer)
{
    if (writer->has_thread)
        pthread_join(writer->thread, NULL);
    writer->has_thread = false;
}

static void remove_part(const char *path)
{
    if (path == NULL)
        return;
    SCOPED_FREE char *sum = sum_path(path);
    file_calls.unlink(sum);
    file_calls.unlink(path);
}

/* Keeps the last part, which the chief may be about to collect; removes older ones, which it never
 * asks for. */
static void make_room(struct part_writer *writer, const struct checkpoint_part_key *key)
{
    bool stays = writer->path && is_of_generation(&writer->key, key);
    remove_part(writer->older);
    if (!stays)
        remove_part(writer->path);
    free(writer->older);
    writer->older = stays ? writer->path : NULL;
    if (!stays)
        free(writer->path);
    writer->path = NULL;
}

bool part_writer_is_busy(const struct part_writer *writer)
{
    return writer->has_thread && !atomic_load(&writer->done);
}

static int start_part_writer(struct part_writer *writer, struct error *error)
{
    atomic_store(&writer->done, false);
    errno = pthread_create(&writer->thread, NULL, run_part_writer, writer);
    if (errno != 0)
        return error_set_errno(error, "cannot start the checkpoint thread");
    writer->has_thread = true;
    return 0;
}

int part_writer_save(struct part_writer *writer, const struct checkpoint_part_key *key,
                     const struct safetensors_tensor *tensors, unsigned count, struct error *error)
{
    join_part_writer(writer);
    make_room(writer, key);
    writer->path = part_path(writer->directory, key);
    writer->key = *key;
    snapshot_describe(&writer->snapshot, tensors, count);
    error_clear(&writer->result);
    if (snapshot_copy(&writer->snapshot, &writer->result) == 0 && start_part_writer(writer, &writer->result) == 0)
        return 0;
    report_failure(writer);
    if (error)
        *error = writer->result;
    return -1;
}

int part_writer_wait(struct part_writer *writer, struct error *error)
{
    join_part_writer(writer);
    if (writer->result.kind == ERROR_NONE)
        return 0;
    if (error)
        *error = writer->result;
    return -1;
}

bool part_writer_has_begun(const struct part_writer *writer, const struct checkpoint_part_key *key)
{
    const struct checkpoint_part_key *own = &writer->key;
    return writer->path && checkpoint_part_key_same_save(own, key);
}

void part_writer_free(struct part_writer *writer)
{
    if (writer == NULL)
        return;
    join_part_writer(writer);
    snapshot_release(&writer->snapshot);
    free(writer->older);
    free(writer->path);
    free(writer->directory);
    free(writer);
}

/* ---- calling for them */

int checkpoint_parts_call(const char *directory, const struct checkpoint_part_key *key, struct error *error)
{
    SCOPED_FREE char *call = call_path(directory, key);
    return file_make_directories(directory, error) < 0 ? -1 : file_write(call, "\n", 1, error);
}

bool checkpoint_parts_are_called(const char *directory, const struct checkpoint_part_key *key)
{
    SCOPED_FREE char *call = call_path(directory, key);
    return file_exists(call);
}

/* ---- collecting */

static int read_sum(const char *path, struct manifest_file *file, struct error *error)
{
    SCOPED_BUFFER text;
    long long bytes = 0;
    char *end = NULL;
    buffer_init(&text, SUM_TEXT_MAX);
    if (file_read(path, &text, error) < 0)
        return -1;
    if (strncmp(buffer_text(&text), FAILED_WORD, strlen(FAILED_WORD)) == 0)
        return part_failure_read(buffer_text(&text) + strlen(FAILED_WORD), error);
    unsigned long crc = strtoul(buffer_text(&text), &end, 16);
    if (*end == ' ')
        bytes = strtoll(end + 1, &end, 10);
    if (*end != '\n' || bytes <= 0 || crc > UINT32_MAX)
        return error_set(error, ERROR_CORRUPT,
                         "%s is damaged: it should hold the checksum and size of a checkpoint part", path);
    file->crc32c = (uint32_t)crc;
    file->bytes = bytes;
    return 0;
}

static enum checkpoint_rank_fate ask_rank(const struct checkpoint_parts_patience *patience,
                                          const struct checkpoint_part_key *key)
{
    return patience->ask ? patience->ask(patience->context, key) : RANK_STAYS;
}

static const char *name_rank(const struct checkpoint_parts_patience *patience, const struct checkpoint_part_key *key,
                             char name[CHECKPOINT_RANK_NAME_MAX])
{
    snprintf(name, CHECKPOINT_RANK_NAME_MAX, "rank %u", key->rank);
    if (patience->name)
        patience->name(patience->context, key->rank, name);
    return name;
}

/* `usual_ns` is how long to wait if the caller of checkpoint_parts_collect has not said it. */
static int64_t wait_ns(const struct checkpoint_parts_patience *patience, int64_t usual_ns)
{
    int64_t hurry_ms = patience->hurry_ms ? atomic_load(patience->hurry_ms) : 0;
    if (hurry_ms > 0)
        return hurry_ms * 1000000;
    return patience->wait_ms > 0 ? patience->wait_ms * 1000000 : usual_ns;
}

/* Whether the rank moved on more than `limit_ns` ago. *moved_ns is when that was first seen; 0: not yet. */
static bool has_long_moved_on(enum checkpoint_rank_fate fate, int64_t limit_ns, int64_t *moved_ns)
{
    if (fate != RANK_HAS_MOVED_ON)
        return false;
    if (*moved_ns == 0)
        *moved_ns = clock_monotonic_ns();
    return clock_monotonic_ns() - *moved_ns > limit_ns;
}

/* Fails if the part is not there and will not be written any more. `is_forgotten`: the rank moved on without it. */
static int expect_part(const struct checkpoint_parts_patience *patience, const struct checkpoint_part_key *key,
                       enum checkpoint_rank_fate fate, bool is_forgotten, bool given_up, struct error *error)
{
    char name[CHECKPOINT_RANK_NAME_MAX];
    if (fate == RANK_IS_LOST)
        return error_set(error, ERROR_UNAVAILABLE, "%s was lost before it wrote its part of step %lld",
                         name_rank(patience, key, name), (long long)key->step);
    if (is_forgotten)
        return error_set(error, ERROR_UNAVAILABLE,
                         "%s moved on to a newer generation without writing its part of step %lld",
                         name_rank(patience, key, name), (long long)key->step);
    if (given_up)
        return error_set(error, ERROR_CANCELLED,
                         "gave up waiting for the parts of step %lld: the crew that held them is gone",
                         (long long)key->step);
    return 0;
}

/* Reports a late part once in each late_ms; *told counts the reports. */
static void report_if_late(const struct checkpoint_parts_patience *patience, const struct checkpoint_part_key *key,
                           int64_t waited_ns, int64_t *told)
{
    char name[CHECKPOINT_RANK_NAME_MAX];
    int64_t late_ns = patience->late_ms > 0 ? patience->late_ms * 1000000 : LATE_NS;
    if (patience->report_late == NULL || waited_ns / late_ns <= *told)
        return;
    *told = waited_ns / late_ns;
    patience->report_late(patience->context, name_rank(patience, key, name), key->step, waited_ns / 1000000);
}

/* Waits until `sum` exists. A rank writes before it leaves, so its fate is asked before the file is
 * looked for. */
static int await_file(const char *part, const char *sum, const struct checkpoint_part_key *key,
                      const struct checkpoint_parts_patience *patience, struct error *error)
{
    int64_t moved_ns = 0, told = 0, since = clock_monotonic_ns(), progress = -1, moved_on_ns = since;
    char name[CHECKPOINT_RANK_NAME_MAX];
    for (;;) {
        enum checkpoint_rank_fate fate = ask_rank(patience, key);
        bool given_up = atomic_load(patience->given_up);
        if (file_exists(sum))
            return 0;
        bool is_forgotten =
            fate == RANK_HAS_MOVED_ON && !file_exists(part) && has_long_moved_on(fate, BEGUN_NS, &moved_ns);
        if (expect_part(patience, key, fate, is_forgotten, given_up, error) < 0)
            return -1;
        int64_t progress_now = disk_file_progress(part), now = clock_monotonic_ns();
        moved_on_ns = progress_now == progress ? moved_on_ns : now;
        progress = progress_now;
        if (now - moved_on_ns > wait_ns(patience, WAIT_NS))
            return error_set(error, ERROR_TIMEOUT,
                             "%s has not written its part of step %lld: no progress for %.1f s; check its storage",
                             name_rank(patience, key, name), (long long)key->step,
                             (double)wait_ns(patience, WAIT_NS) / 1e9);
        report_if_late(patience, key, clock_monotonic_ns() - since, &told);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
}

static int await_part(const char *directory, const struct checkpoint_part_key *key,
                      const struct checkpoint_parts_patience *patience, struct manifest_file *file, struct error *error)
{
    SCOPED_FREE char *part = part_path(directory, key);
    SCOPED_FREE char *sum = sum_path(part);
    char name[CHECKPOINT_RANK_NAME_MAX];
    snprintf(file->name, sizeof file->name, CHECKPOINT_SHARD_FORMAT, (int)key->rank);
    if (await_file(part, sum, key, patience, error) < 0)
        return -1;
    if (read_sum(sum, file, error) < 0)
        return error_wrap(error, "%s", name_rank(patience, key, name));
    return 0;
}

static int take_part(const char *directory, const char *saving, const struct checkpoint_part_key *key,
                     const struct manifest_file *file, struct error *error)
{
    SCOPED_FREE char *part = part_path(directory, key);
    SCOPED_FREE char *sum = sum_path(part);
    SCOPED_FREE char *target = file_path_join(saving, file->name);
    if (file_calls.rename(part, target) < 0)
        return error_set_errno(error, "cannot rename %s to %s", part, target);
    file_calls.unlink(sum);
    return 0;
}

int checkpoint_parts_collect(const char *directory, const char *saving, const struct checkpoint_part_key *key,
                             unsigned ranks, const struct checkpoint_parts_patience *patience,
                             struct manifest *manifest, struct error *error)
{
    struct checkpoint_part_key part = *key;
    manifest->files = memory_resize(manifest->files, manifest->file_count + ranks, sizeof *manifest->files);
    struct manifest_file *files = manifest->files + manifest->file_count; /* of rank 1, 2, … */
    for (part.rank = 1; part.rank < ranks; part.rank++)
        if (await_part(directory, &part, patience, &files[part.rank - 1], error) < 0)
            return -1;
    for (part.rank = 1; part.rank < ranks; part.rank++) {
        if (take_part(directory, saving, &part, &files[part.rank - 1], error) < 0)
            return -1;
        manifest->file_count++;
    }
    return 0;
}

/* A rank writes before it leaves, so its fate is asked before the shard is looked for. */
static int await_shard(struct bucket *bucket, const struct checkpoint_part_key *key,
                       const struct checkpoint_parts_patience *patience, struct manifest_file *file,
                       struct error *error)
{
    int64_t told = 0, since = clock_monotonic_ns(), moved_ns = 0;
    char rank[CHECKPOINT_RANK_NAME_MAX];
    if (bucket_shard_name(bucket, key, file->name, error) < 0)
        return -1;
    name_rank(patience, key, rank);
    for (;;) {
        enum checkpoint_rank_fate fate = ask_rank(patience, key);
        bool given_up = atomic_load(patience->given_up);
        int found = bucket_look_for_shard(bucket, file, error);
        if (found != 0)
            return found > 0 ? 0 : error_wrap(error, "%s", rank);
        if (expect_part(patience, key, fate, has_long_moved_on(fate, SHARD_MOVED_NS, &moved_ns), given_up, error) < 0)
            return -1;
        int64_t now = clock_monotonic_ns();
        if (now - since > wait_ns(patience, SHARD_WAIT_NS))
            return error_set(
                error, ERROR_TIMEOUT,
                "%s has not uploaded its part of step %lld within %.1f s; check its connection to the bucket", rank,
                (long long)key->step, (double)wait_ns(patience, SHARD_WAIT_NS) / 1e9);
        report_if_late(patience, key, now - since, &told);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_IN_BUCKET_NS}, NULL);
    }
}

int checkpoint_parts_await_shards(struct bucket *bucket, const struct checkpoint_part_key *key, unsigned ranks,
                                  const struct checkpoint_parts_patience *patience, struct manifest *manifest,
                                  struct error *error)
{
    struct checkpoint_part_key part = *key;
    manifest->files = memory_resize(manifest->files, manifest->file_count + ranks, sizeof *manifest->files);
    for (part.rank = 1; part.rank < ranks; part.rank++) {
        if (await_shard(bucket, &part, patience, &manifest->files[manifest->file_count], error) < 0)
            return -1;
        manifest->file_count++;
    }
    return 0;
}

void checkpoint_parts_give_back(const char *directory, const char *path, const struct checkpoint_part_key *key,
                                unsigned ranks, const struct manifest *manifest)
{
    struct checkpoint_part_key part = *key;
    for (part.rank = 1; part.rank < ranks && part.rank < manifest->file_count; part.rank++) {
        const struct manifest_file *file = &manifest->files[part.rank];
        SCOPED_FREE char *from = file_path_join(path, file->name);
        SCOPED_FREE char *to = part_path(directory, &part);
        if (file_calls.link(from, to) == 0)
            (void)write_sum(to, file->crc32c, file->bytes, NULL);
    }
}

void checkpoint_parts_remove(const char *directory, const struct checkpoint_part_key *key, unsigned ranks)
{
    struct checkpoint_part_key part = *key;
    for (part.rank = 1; part.rank < ranks; part.rank++) {
        SCOPED_FREE char *path = part_path(directory, &part);
        remove_part(path);
    }
}
