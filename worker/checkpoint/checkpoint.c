/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/checkpoint.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/contract/checkpoint_layout.h"
#include "common/lock.h"
#include "common/memory.h"
#include "worker/checkpoint/bucket.h"
#include "worker/checkpoint/bucket_shards.h"
#include "worker/checkpoint/commit.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/image.h"
#include "worker/checkpoint/part.h"
#include "worker/checkpoint/retention.h"
#include "worker/checkpoint/safe_path.h"
#include "worker/checkpoint/snapshot.h"

struct checkpoint_store {
    char *directory;
    struct bucket *bucket; /* NULL: the directory is all there is */
    char *job_uid;
    int64_t keep;
    struct incarnation_record own;   /* decided once saves may begin */
    struct checkpoint_name restored; /* step -1: none */

    /* The saver. `mutex` guards what follows; the thread owns snapshot, manifest and verified while
     * `busy`, and the snapshot's memory always. */
    pthread_t thread;
    bool thread_runs;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool busy, stopping;
    size_t expected; /* bytes to reserve; 0: none */
    bool copying;    /* the caller's tensors are still being read */
    struct checkpoint_part_key part_key;
    unsigned part_ranks;                   /* 0: no parts */
    unsigned shard_saves;                  /* saves of checkpoint_shards_begin so far */
    struct checkpoint_part_key failed_key; /* of the last save that failed */
    unsigned failed_ranks;                 /* 0: none, or its parts are gone */
    atomic_bool parts_given_up;
    atomic_llong parts_hurry_ms;
    checkpoint_ask_rank ask_rank;
    checkpoint_name_rank name_rank;
    checkpoint_report_late report_late;
    void *rank_context;
    struct snapshot snapshot;
    struct manifest manifest;
    struct verified_set verified;
    struct error result; /* of the last save; ERROR_NONE: it succeeded */
    struct checkpoint_counts counts;
};

/* ---- opening */

/* Claims the directory, and the bucket if there is one. */
static int claim(const struct checkpoint_options *options, struct bucket *bucket, struct incarnation_record *ret_own,
                 struct error *error)
{
    if (!bucket)
        return lineage_claim(options->directory, options->job_uid, options->attempt, options->incarnation, ret_own,
                             error);
    if (bucket_claim(bucket, options->job_uid, options->attempt, options->incarnation, ret_own, error) < 0)
        return -1;
    return bucket_refresh(bucket, true, error); /* older chiefs may have committed until now */
}

static int take_over(const struct checkpoint_options *options, struct bucket **ret_bucket,
                     struct incarnation_record *ret_own, struct error *error)
{
    if (file_make_directories(options->directory, error) < 0 ||
        (options->bucket && bucket_open(options->bucket, options->directory, ret_bucket, error) < 0))
        return -1;
    if (*ret_bucket)
        bucket_set_job(*ret_bucket, options->job_uid);
    if (claim(options, *ret_bucket, ret_own, error) == 0 && checkpoint_remove_leftovers(options->directory, error) == 0)
        return 0;
    if (*ret_bucket)
        bucket_free(*ret_bucket);
    return -1;
}

int checkpoint_store_open(const struct checkpoint_options *options, struct checkpoint_store **ret_store,
                          struct error *error)
{
    struct incarnation_record own;
    struct bucket *bucket = NULL;
    if (take_over(options, &bucket, &own, error) < 0)
        return error_wrap(error, "take over checkpoint directory");
    struct checkpoint_store *store = memory_allocate(1, sizeof *store);
    store->directory = memory_copy_string(options->directory);
    store->bucket = bucket;
    store->job_uid = memory_copy_string(options->job_uid);
    store->keep = options->keep > 0 ? options->keep : 1;
    store->ask_rank = options->ask_rank;
    store->name_rank = options->name_rank;
    store->report_late = options->report_late;
    store->rank_context = options->context;
    store->own = own;
    store->restored.step = -1;
    store->counts.committed_step = -1;
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->changed, NULL);
    *ret_store = store;
    return 0;
}

static void stop_thread(struct checkpoint_store *store)
{
    if (!store->thread_runs)
        return;
    pthread_mutex_lock(&store->mutex);
    store->stopping = true;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->mutex);
    pthread_join(store->thread, NULL);
}

void checkpoint_store_free(struct checkpoint_store *store)
{
    stop_thread(store);
    pthread_cond_destroy(&store->changed);
    pthread_mutex_destroy(&store->mutex);
    snapshot_release(&store->snapshot);
    manifest_release(&store->manifest);
    verified_set_release(&store->verified);
    if (store->bucket)
        bucket_free(store->bucket);
    free(store->directory);
    free(store->job_uid);
    free(store);
}

/* ---- restoring */

/* A damaged checkpoint is moved aside; one that cannot be read at the moment stays in place. */
static bool is_damage(const struct error *error)
{
    return error->kind == ERROR_CORRUPT || error->kind == ERROR_INVALID || error->kind == ERROR_NOT_FOUND ||
           error->kind == ERROR_TOO_LARGE;
}

struct restoration {
    struct checkpoint_store *store;
    checkpoint_quarantined *quarantined;
    void *context;
    struct checkpoint_image *image;
};

enum trial { TRIAL_OPENED, TRIAL_BAD, TRIAL_VANISHED, TRIAL_FAILED };

static enum trial try_candidate(struct restoration *restoration, const struct checkpoint_name *candidate,
                                struct error *error)
{
    struct checkpoint_store *store = restoration->store;
    char name[CHECKPOINT_NAME_MAX];
    checkpoint_name_format(candidate, name);
    SCOPED_FREE char *path = file_path_join(store->directory, name);
    struct error cause = ERROR_INIT;
    if (checkpoint_store_fetch(store, candidate, &cause) == 0 &&
        checkpoint_image_open(path, candidate, restoration->image, &cause) == 0)
        return TRIAL_OPENED;
    /* The chief before this one was removing it when this one claimed the directory. */
    struct stat status;
    if (safe_stat(path, &status) < 0 && errno == ENOENT)
        return TRIAL_VANISHED;
    if (!is_damage(&cause)) {
        error_set(error, cause.kind,
                  "cannot read checkpoint %s, which is left in place, since nothing shows that it is damaged: %s", path,
                  cause.message);
        return TRIAL_FAILED;
    }
    checkpoint_move_aside(store->directory, name);
    if (restoration->quarantined)
        restoration->quarantined(restoration->context, name, cause.message);
    return TRIAL_BAD;
}

static void report_damaged_records(const struct restoration *restoration, const struct lineage *lineage)
{
    for (unsigned i = 0; restoration->quarantined && i < lineage->record_count; i++) {
        char name[CHECKPOINT_NAME_MAX];
        snprintf(name, sizeof name, CHECKPOINT_INCARNATION_FORMAT, (long long)lineage->records[i].incarnation);
        if (lineage->records[i].state == INCARNATION_DAMAGED)
            restoration->quarantined(restoration->context, name,
                                     "the record is damaged; the newest checkpoints are "
                                     "tried without it");
    }
}

static enum trial try_candidates(struct restoration *restoration, const struct lineage *lineage, struct error *error)
{
    for (unsigned i = 0; i < lineage->candidate_count; i++) {
        enum trial trial = try_candidate(restoration, &lineage->candidates[i], error);
        if (trial == TRIAL_OPENED)
            restoration->store->restored = lineage->candidates[i];
        if (trial != TRIAL_BAD)
            return trial;
    }
    error_set(error, ERROR_NOT_FOUND, "no usable checkpoint in %s", restoration->store->directory);
    return TRIAL_FAILED;
}

int checkpoint_restore(struct checkpoint_store *store, checkpoint_quarantined *quarantined, void *context,
                       struct checkpoint_image *ret_image, struct error *error)
{
    struct restoration restoration = {store, quarantined, context, ret_image};
    enum trial trial = TRIAL_VANISHED;
    while (trial == TRIAL_VANISHED) {
        struct lineage lineage;
        if (lineage_read(store->directory, &lineage, error) < 0)
            return -1;
        report_damaged_records(&restoration, &lineage);
        trial = try_candidates(&restoration, &lineage, error);
        lineage_release(&lineage);
    }
    if (trial != TRIAL_OPENED)
        return -1;
    store->counts.committed_step = store->restored.step;
    verified_set_add(&store->verified, &store->restored);
    return 0;
}

/* ---- saving */

/* Finds the newest checkpoint. A state that came from a peer descends from it. */
static int newest_candidate(const struct checkpoint_store *store, struct checkpoint_name *ret_name, struct error *error)
{
    struct lineage lineage;
    if (lineage_read(store->directory, &lineage, error) < 0)
        return -1;
    *ret_name = lineage.candidate_count > 0 ? lineage.candidates[0] : (struct checkpoint_name){.step = -1};
    lineage_release(&lineage);
    return 0;
}

int checkpoint_store_begin(struct checkpoint_store *store, bool adopted, struct error *error)
{
    struct checkpoint_name base = store->restored;
    if (base.step < 0 && adopted && newest_candidate(store, &base, error) < 0)
        return -1;
    if ((store->bucket && bucket_check(store->bucket, &store->own, error) < 0) ||
        lineage_decide(store->directory, &store->own, base.step >= 0 ? &base : NULL, error) < 0 ||
        (store->bucket && bucket_put_record(store->bucket, &store->own, false, error) < 0))
        return error_wrap(error, "take over checkpoint directory");
    return 0;
}

int checkpoint_store_check(const struct checkpoint_store *store, struct error *error)
{
    return store->bucket ? bucket_check(store->bucket, &store->own, error)
                         : lineage_check_current(store->directory, &store->own, error);
}

int checkpoint_store_fetch(const struct checkpoint_store *store, const struct checkpoint_name *name,
                           struct error *error)
{
    return store->bucket ? bucket_fetch(store->bucket, name, error) : 0;
}

struct bucket *checkpoint_store_bucket(const struct checkpoint_store *store)
{
    return store->bucket;
}

int checkpoint_store_publish(const struct checkpoint_store *store, const char *file, struct error *error)
{
    return store->bucket ? bucket_put_file(store->bucket, file, &store->own, error) : 0;
}

/* The result of one save. */
struct progress {
    int64_t bytes, committed_ns;
};

static int copy_tensors(struct checkpoint_store *store, struct error *error)
{
    int result = snapshot_copy(&store->snapshot, error);
    SCOPED_LOCK(&store->mutex);
    store->copying = false;
    pthread_cond_broadcast(&store->changed);
    return result;
}

/* Keeps the parts for another save of that step, since the ranks will not write them again. */
static void keep_parts(struct checkpoint_store *store, const struct checkpoint_name *name, bool moved_aside)
{
    char text[CHECKPOINT_NAME_MAX];
    if (store->bucket) /* shards stay in the bucket */
        return;
    checkpoint_name_format(name, text);
    SCOPED_FREE char *path = memory_format("%s/%s%s", store->directory, moved_aside ? CHECKPOINT_BAD_PREFIX : "", text);
    checkpoint_parts_give_back(store->directory, path, &store->part_key, store->part_ranks, &store->manifest);
    store->failed_key = store->part_key;
    store->failed_ranks = store->part_ranks;
}

/* Remembers the parts of the save that has failed, since another save of that step can use them. In a bucket, those of the failed save before
 * are removed: else only a save that succeeds would remove them, and if one rank always fails, the shards of the others would fill the
 * bucket. */
static void remember_failed(struct checkpoint_store *store)
{
    if (store->bucket && !checkpoint_part_key_same_save(&store->failed_key, &store->part_key))
        bucket_remove_shards(store->bucket, &store->failed_key, store->failed_ranks);
    store->failed_key = store->part_key;
    store->failed_ranks = store->part_ranks;
}

/* Commits the save to the bucket. One that fails there must not count as a checkpoint here. */
static int upload(struct checkpoint_store *store, const struct checkpoint_name *name, struct error *error)
{
    char text[CHECKPOINT_NAME_MAX];
    if (!store->bucket || bucket_commit(store->bucket, name, &store->own, error) == 0)
        return 0;
    checkpoint_name_format(name, text);
    SCOPED_FREE char *path = file_path_join(store->directory, text);
    file_remove_directory(path, NULL);
    return -1;
}

/* Copies, commits and reads back one save, then removes older checkpoints. Runs in the saver's
 * thread. */
static int save_snapshot(struct checkpoint_store *store, struct progress *progress, struct error *error)
{
    if (copy_tensors(store, error) < 0)
        return error_wrap(error, "save step %lld", (long long)store->manifest.step);
    const struct checkpoint_name name = {
        .step = store->manifest.step, .attempt = store->own.attempt, .incarnation = store->own.incarnation};
    const struct checkpoint_parts parts = {.key = &store->part_key,
                                           .ranks = store->part_ranks,
                                           .bucket = store->bucket,
                                           .patience = {.given_up = &store->parts_given_up,
                                                        .hurry_ms = &store->parts_hurry_ms,
                                                        .ask = store->ask_rank,
                                                        .name = store->name_rank,
                                                        .report_late = store->report_late,
                                                        .context = store->rank_context}};
    if (checkpoint_commit(store->directory, &store->own, &store->manifest, store->snapshot.tensors,
                          store->snapshot.count, store->part_ranks > 1 ? &parts : NULL, &progress->bytes, error) < 0) {
        remember_failed(store);
        return error_wrap(error, "save step %lld", (long long)name.step);
    }
    if (store->bucket)
        store->failed_ranks = 0; /* from here on a manifest may name the shards */
    progress->committed_ns = clock_monotonic_ns();
    bool moved_aside = false;
    if (checkpoint_read_back(store->directory, &store->own, &store->manifest, &moved_aside, error) < 0) {
        keep_parts(store, &name, moved_aside);
        return error_wrap(error, "save step %lld", (long long)name.step);
    }
    if (upload(store, &name, error) < 0)
        return error_wrap(error, "save step %lld", (long long)name.step);
    if (store->bucket)
        progress->committed_ns = clock_monotonic_ns();
    checkpoint_parts_remove(store->directory, &store->failed_key,
                            store->failed_ranks); /* all have written newer ones */
    store->failed_ranks = 0;
    verified_set_add(&store->verified, &name);
    /* The new checkpoint is safe; a failure to remove an old one is not a failure of the save. */
    retention_apply(store->directory, &store->own, store->keep, &store->verified, NULL);
    if (store->bucket)
        bucket_prune(store->bucket, &name, &store->own, NULL);
    return 0;
}

static void record_result(struct checkpoint_store *store, int result, int64_t bytes, const struct error *cause)
{
    if (result == 0) {
        store->counts.saved++;
        store->counts.committed_step = store->manifest.step;
        store->counts.last_bytes = bytes;
        error_clear(&store->result);
    } else {
        store->counts.failed++;
        store->result = *cause;
    }
}

/* Reserves the expected memory. A failure is ignored here; the save that needs the memory reports
 * it. */
static void reserve_expected(struct checkpoint_store *store)
{
    size_t bytes = store->expected;
    store->expected = 0;
    pthread_mutex_unlock(&store->mutex);
    (void)snapshot_reserve(&store->snapshot, bytes, NULL);
    pthread_mutex_lock(&store->mutex);
}

static void *run_saver(void *argument)
{
    struct checkpoint_store *store = argument;
    pthread_mutex_lock(&store->mutex);
    for (;;) {
        while (!store->busy && !store->stopping) {
            if (store->expected > 0)
                reserve_expected(store);
            else
                pthread_cond_wait(&store->changed, &store->mutex);
        }
        if (!store->busy)
            break;
        pthread_mutex_unlock(&store->mutex);
        struct error cause = ERROR_INIT;
        int64_t started = clock_monotonic_ns();
        struct progress progress = {.committed_ns = started};
        int result = save_snapshot(store, &progress, &cause);
        pthread_mutex_lock(&store->mutex);
        store->counts.last_save_ns = progress.committed_ns - started;
        store->counts.last_check_ns = clock_monotonic_ns() - progress.committed_ns;
        record_result(store, result, progress.bytes, &cause);
        store->busy = false;
        pthread_cond_broadcast(&store->changed);
    }
    pthread_mutex_unlock(&store->mutex);
    return NULL;
}

static int start_thread(struct checkpoint_store *store, struct error *error)
{
    if (store->thread_runs)
        return 0;
    int number = pthread_create(&store->thread, NULL, run_saver, store);
    if (number != 0) {
        errno = number;
        return error_set_errno(error, "cannot start the checkpoint thread");
    }
    store->thread_runs = true;
    return 0;
}

void checkpoint_expect(struct checkpoint_store *store, size_t bytes)
{
    if (start_thread(store, NULL) < 0)
        return;
    SCOPED_LOCK(&store->mutex);
    store->expected = bytes;
    pthread_cond_broadcast(&store->changed);
}

static void copy_manifest(struct checkpoint_store *store, const struct manifest *manifest)
{
    manifest_release(&store->manifest);
    store->manifest = *manifest;
    store->manifest.attempt = store->own.attempt;
    store->manifest.incarnation = store->own.incarnation;
    store->manifest.job_uid = memory_copy_string(store->job_uid);
    store->manifest.model = manifest->model ? json_copy(manifest->model) : NULL;
    store->manifest.optimizer = manifest->optimizer ? json_copy(manifest->optimizer) : NULL;
    store->manifest.tickets = manifest->tickets ? json_copy(manifest->tickets) : NULL;
    store->manifest.files = NULL;
    store->manifest.file_count = 0;
}

bool checkpoint_is_busy(struct checkpoint_store *store)
{
    SCOPED_LOCK(&store->mutex);
    bool busy = store->busy;
    return busy;
}

/* Whether a save is running; then the one that is asked for is counted as skipped. */
static bool is_skipped(struct checkpoint_store *store)
{
    SCOPED_LOCK(&store->mutex);
    bool busy = store->busy;
    if (busy)
        store->counts.skipped++;
    return busy;
}

int checkpoint_save(struct checkpoint_store *store, const struct manifest *manifest,
                    const struct safetensors_tensor *tensors, unsigned count, enum checkpoint_start *ret_start,
                    struct error *error)
{
    const struct checkpoint_part_key none = {0};
    return checkpoint_save_with_parts(store, manifest, tensors, count, &none, 0, ret_start, error);
}

void checkpoint_give_up_parts(struct checkpoint_store *store)
{
    atomic_store(&store->parts_given_up, true);
}

void checkpoint_hurry_parts(struct checkpoint_store *store, int64_t wait_ms)
{
    atomic_store(&store->parts_hurry_ms, wait_ms);
}

int checkpoint_save_with_parts(struct checkpoint_store *store, const struct manifest *manifest,
                               const struct safetensors_tensor *tensors, unsigned count,
                               const struct checkpoint_part_key *key, unsigned ranks, enum checkpoint_start *ret_start,
                               struct error *error)
{
    if (store->own.state != INCARNATION_DECIDED)
        return error_set(error, ERROR_INTERNAL, "internal error: checkpoint_store_begin must be called before a save");
    if (is_skipped(store)) {
        *ret_start = CHECKPOINT_SKIPPED;
        return 0;
    }
    int64_t started = clock_monotonic_ns();
    if (start_thread(store, error) < 0)
        return -1;
    snapshot_describe(&store->snapshot, tensors, count);
    copy_manifest(store, manifest);
    store->part_key = *key;
    store->part_ranks = ranks;
    atomic_store(&store->parts_given_up, false);
    pthread_mutex_lock(&store->mutex);
    store->busy = store->copying = true;
    store->counts.last_stall_ns = clock_monotonic_ns() - started;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->mutex);
    *ret_start = CHECKPOINT_STARTED;
    return 0;
}

void checkpoint_fence(struct checkpoint_store *store)
{
    SCOPED_LOCK(&store->mutex);
    if (store->copying) {
        int64_t started = clock_monotonic_ns();
        while (store->copying)
            pthread_cond_wait(&store->changed, &store->mutex);
        store->counts.last_stall_ns += clock_monotonic_ns() - started;
    }
}

int checkpoint_wait(struct checkpoint_store *store, struct error *error)
{
    pthread_mutex_lock(&store->mutex);
    while (store->busy)
        pthread_cond_wait(&store->changed, &store->mutex);
    pthread_mutex_unlock(&store->mutex);
    return checkpoint_store_result(store, error);
}

int checkpoint_store_result(struct checkpoint_store *store, struct error *error)
{
    pthread_mutex_lock(&store->mutex);
    struct error result = store->result;
    pthread_mutex_unlock(&store->mutex);
    if (result.kind == ERROR_NONE)
        return 0;
    if (error)
        *error = result;
    return -1;
}

struct checkpoint_counts checkpoint_store_counts(struct checkpoint_store *store)
{
    SCOPED_LOCK(&store->mutex);
    struct checkpoint_counts counts = store->counts;
    return counts;
}

void checkpoint_store_forget_step(struct checkpoint_store *store)
{
    SCOPED_LOCK(&store->mutex);
    store->counts.committed_step = -1;
}

/* ---- shards that other processes write */

int checkpoint_shards_begin(struct checkpoint_store *store, char **ret_directory, struct error *error)
{
    if (store->own.state != INCARNATION_DECIDED)
        return error_set(error, ERROR_INTERNAL, "internal error: checkpoint_store_begin must be called before a save");
    SCOPED_FREE char *directory =
        store->bucket ? memory_format("%s/" CHECKPOINT_SHARDS_FORMAT, store->directory, (unsigned)store->own.attempt,
                                      (unsigned)store->own.fencing, ++store->shard_saves)
                      : memory_format("%s/" CHECKPOINT_SAVING_PREFIX "shards.incarnation-%lld", store->directory,
                                      (long long)store->own.incarnation);
    if (file_remove_directory(directory, error) < 0 || file_make_directories(directory, error) < 0)
        return error_wrap(error, "prepare a checkpoint");
    *ret_directory = memory_copy_string(directory);
    return 0;
}

/* Whether this chief has committed that step, rather than an earlier chief. */
static bool has_committed(const struct checkpoint_store *store, const struct checkpoint_name *name)
{
    char text[CHECKPOINT_NAME_MAX];
    checkpoint_name_format(name, text);
    SCOPED_FREE char *path = file_path_join(store->directory, text);
    return file_exists(path);
}

int checkpoint_shards_commit(struct checkpoint_store *store, const char *directory, struct manifest *manifest,
                             bool replaces, struct error *error)
{
    struct error cause = ERROR_INIT;
    int64_t bytes = 0, started = clock_monotonic_ns();
    const struct checkpoint_name name = {
        .step = manifest->step, .attempt = store->own.attempt, .incarnation = store->own.incarnation};
    const bool again = name.step == store->counts.committed_step; /* tickets have moved, but not the step */
    if (again && !replaces)
        return file_remove_directory(directory, error);
    manifest->attempt = store->own.attempt;
    manifest->incarnation = store->own.incarnation;
    manifest->job_uid = store->job_uid;
    int result = again && has_committed(store, &name)
                     ? checkpoint_replace_directory(store->directory, directory, &store->own, manifest, &cause)
                     : checkpoint_commit_directory(store->directory, directory, &store->own, manifest, &cause);
    manifest->job_uid = NULL;
    if (result == 0)
        result = upload(store, &name, &cause);
    if (result == 0) {
        verified_set_add(&store->verified, &name);
        retention_apply(store->directory, &store->own, store->keep, &store->verified, NULL);
        if (store->bucket)
            bucket_prune(store->bucket, &name, &store->own, NULL);
    }
    for (unsigned i = 0; i < manifest->file_count; i++)
        bytes += manifest->files[i].bytes;
    pthread_mutex_lock(&store->mutex);
    store->manifest.step = manifest->step;
    store->counts.last_save_ns = clock_monotonic_ns() - started;
    record_result(store, result, bytes, &cause);
    pthread_mutex_unlock(&store->mutex);
    return result == 0 ? 0
                       : error_set(error, cause.kind, "save step %lld: %s", (long long)manifest->step, cause.message);
}
