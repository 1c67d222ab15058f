/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves and restores the checkpoints of one job, which live in one directory, for the trainer. Training
 * does not stop for a save; a restore opens the newest checkpoint that is whole. Only the chief, the
 * process that leads the job, has a store; other processes contribute parts (part.h).
 * docs/checkpoints.md describes the protocol.
 *
 * Life cycle, in the chief:
 *
 *   open      claims the directory: from then on, older chiefs cannot commit
 *   restore   optional
 *   begin     records which checkpoint training starts from; nothing may be saved before
 *   save … fence … wait
 *   free
 *
 * A save runs in a thread of its own: it copies the tensors, writes and syncs them, commits, and
 * reads them back. Training continues with the next forward and backward pass at once, and calls
 * checkpoint_fence before it changes a tensor. Only one save runs at a time; a save that is
 * requested meanwhile is skipped. With a bucket, a save ends when it has been uploaded and committed there.
 */
#ifndef COXSWAIN_CHECKPOINT_H
#define COXSWAIN_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/checkpoint/lineage.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/safetensors.h"

struct checkpoint_store;

struct bucket;
struct checkpoint_part_key;
/* Whether a rank of the key's generation can still write its part. A rank that has moved on to a
 * newer generation finishes a part that it has begun, and begins no other. A lost rank writes
 * nothing more. */
enum checkpoint_rank_fate { RANK_STAYS, RANK_HAS_MOVED_ON, RANK_IS_LOST };
/* Returns what may still be expected of the rank that `key` names. Called from any thread. */
typedef enum checkpoint_rank_fate (*checkpoint_ask_rank)(void *context, const struct checkpoint_part_key *key);
/* Writes a rank's name for messages: "rank 1 (worker 1, 10.0.0.7:2223)". Called from any thread. */
#define CHECKPOINT_RANK_NAME_MAX 160
typedef void (*checkpoint_name_rank)(void *context, unsigned rank, char name[CHECKPOINT_RANK_NAME_MAX]);
/* Reports that a save still waits for the part of `rank`. The saver's thread calls it every
 * 30 seconds. */
typedef void (*checkpoint_report_late)(void *context, const char *rank, int64_t step, int64_t waited_ms);

struct checkpoint_options {
    const char *directory; /* created when missing */
    const char
        *bucket; /* value of ENV_CHECKPOINT_S3: the directory is a local copy of objects (bucket.h); NULL: no bucket */
    const char *job_uid; /* "" for a run without an operator */
    int64_t attempt, incarnation;
    int64_t keep;                       /* whole checkpoints to keep, at least 1 */
    checkpoint_ask_rank ask_rank;       /* for parts of other ranks (part.h); NULL: RANK_STAYS */
    checkpoint_name_rank name_rank;     /* NULL: "rank 1" */
    checkpoint_report_late report_late; /* NULL: late parts are not reported */
    void *context;                      /* for the three callbacks */
};

/* Claims the directory for this chief. ERROR_STALE if a newer chief of this job has claimed it. The strings are copied. */
int checkpoint_store_open(const struct checkpoint_options *options, struct checkpoint_store **ret_store,
                          struct error *error);
/* Waits for a running save, then frees. */
void checkpoint_store_free(struct checkpoint_store *store);

/* A checkpoint that is open for reading: its manifest and its mapped files. The digest of every file has been verified, except by
 * checkpoint_image_open_headers (image.h). */
struct checkpoint_image {
    struct checkpoint_name name;
    struct manifest manifest;
    struct safetensors_file *files;
    unsigned file_count;
};

/* Opens the newest whole checkpoint from which this job may continue (lineage.h says which). Damaged checkpoints are
 * renamed to ".bad-…"; `quarantined` (may be NULL) is called for each, and for each damaged incarnation
 * record, with the reason. ERROR_NOT_FOUND if no whole checkpoint is left. A checkpoint that cannot
 * be read at the moment (ERROR_SYSTEM) or that a newer release wrote (ERROR_UNSUPPORTED) is left in
 * place and is an error, because training from an older one would discard it. */
typedef void checkpoint_quarantined(void *context, const char *name, const char *reason);
int checkpoint_restore(struct checkpoint_store *store, checkpoint_quarantined *quarantined, void *context,
                       struct checkpoint_image *ret_image, struct error *error);
void checkpoint_image_release(struct checkpoint_image *image);
/* Returns the tensor of that name, which lives as long as the image; NULL if no file has it. */
const struct safetensors_tensor *checkpoint_image_find(const struct checkpoint_image *image, const char *tensor);

/* Records which checkpoint this chief starts from: the one restored through this store; else, if
 * `adopted` (the state came from a peer), the newest candidate; else none. ERROR_STALE,
 * ERROR_CONFLICT: see lineage_check_current. */
int checkpoint_store_begin(struct checkpoint_store *store, bool adopted, struct error *error);

/* Checks that this chief may still write into the directory. ERROR_STALE, ERROR_CONFLICT: see
 * lineage_check_current. */
int checkpoint_store_check(const struct checkpoint_store *store, struct error *error);

/* Does nothing without a bucket. Else downloads the files of a checkpoint, of which the local copy may have only the manifest. */
int checkpoint_store_fetch(const struct checkpoint_store *store, const struct checkpoint_name *name,
                           struct error *error);
/* The bucket of the store, for as long as the store lives; NULL: there is none. */
struct bucket *checkpoint_store_bucket(const struct checkpoint_store *store);
/* Uploads a file of the directory that belongs to no checkpoint (the best weights or the export record) to the bucket. Does nothing, and
 * returns 0, if the store has no bucket. `file` is the name without the directory. */
int checkpoint_store_publish(const struct checkpoint_store *store, const char *file, struct error *error);

/* Allocates memory for copies of `bytes` bytes in the background, so that the first save is as fast
 * as later ones. */
void checkpoint_expect(struct checkpoint_store *store, size_t bytes);

enum checkpoint_start { CHECKPOINT_STARTED, CHECKPOINT_SKIPPED };

/* Starts a save. The manifest is copied; the store fills in its files, attempt, incarnation and job UID.
 * The tensors' bytes must not change until checkpoint_fence has returned. If the copy does not fit
 * in memory, the save fails later with ERROR_NO_SPACE (checkpoint_store_result). */
int checkpoint_save(struct checkpoint_store *store, const struct manifest *manifest,
                    const struct safetensors_tensor *tensors, unsigned count, enum checkpoint_start *ret_start,
                    struct error *error);

/* Starts a save whose tensors are spread over several ranks, each of which writes a part (part.h).
 * The commit waits for the parts of ranks [1, ranks). */
int checkpoint_save_with_parts(struct checkpoint_store *store, const struct manifest *manifest,
                               const struct safetensors_tensor *tensors, unsigned count,
                               const struct checkpoint_part_key *key, unsigned ranks, enum checkpoint_start *ret_start,
                               struct error *error);
/* Makes a running save stop waiting for parts and fail, since the ranks that would write them are
 * gone. */
void checkpoint_give_up_parts(struct checkpoint_store *store);

/* Shortens the wait for parts, as the process must soon end: from now on, a save fails once a part has not grown
 * for `wait_ms`. May be called from any thread. */
void checkpoint_hurry_parts(struct checkpoint_store *store, int64_t wait_ms);

/* Whether a save is running; another would be skipped. */
bool checkpoint_is_busy(struct checkpoint_store *store);

/* Waits until the running save, if any, has copied its tensors. */
void checkpoint_fence(struct checkpoint_store *store);

/* Waits for the running save, if any, then returns checkpoint_store_result. */
int checkpoint_wait(struct checkpoint_store *store, struct error *error);

/* Returns the result of the last finished save: 0, or -1 with its error; 0 before the first. */
int checkpoint_store_result(struct checkpoint_store *store, struct error *error);

struct checkpoint_counts {
    int64_t committed_step; /* of the newest checkpoint committed or restored by this process; -1: none */
    int64_t saved, skipped, failed;
    int64_t last_save_ns;  /* time of the last save in the background: copy, write, commit */
    int64_t last_check_ns; /* time after the commit: reading back, removing older checkpoints */
    int64_t last_stall_ns; /* time that the caller spent in checkpoint_save and checkpoint_fence */
    int64_t last_bytes;
};
struct checkpoint_counts checkpoint_store_counts(struct checkpoint_store *store);
/* Sets committed_step to -1. To be called if training counts steps differently from the restored
 * checkpoint, whose step is then not comparable with those to come. */
void checkpoint_store_forget_step(struct checkpoint_store *store);

/* Commit a checkpoint whose files other processes have written. `begin` creates a directory (free()
 * the path); each process writes its file there, syncs it, and reports its size and digest. With a bucket, its name is in
 * CHECKPOINT_SHARDS_FORMAT, and each process uploads its file as the shard with the numbers in that name (bucket_shards.h).
 * `manifest` lists the files; `commit` sets its attempt and incarnation (its job_uid must be NULL) and makes the files visible. If a checkpoint of the same step was
 * committed last, `commit` replaces it if `replaces` is set, else removes the new files and
 * succeeds. A failed commit removes the new files, too. Both calls wait for the disk. */
int checkpoint_shards_begin(struct checkpoint_store *store, char **ret_directory, struct error *error);
int checkpoint_shards_commit(struct checkpoint_store *store, const char *directory, struct manifest *manifest,
                             bool replaces, struct error *error);

#endif
