/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the checkpoints of a job in object storage, for checkpoint.c. The job's directory is then a local working copy: a save is written
 * and verified there first, then bucket_commit uploads it. The objects have the names of the files in a job's directory
 * (common/contract/checkpoint_layout.h) behind the prefix.
 *
 * A checkpoint is committed by its manifest, which is uploaded after all its other files, and only if there is no such object yet. A second
 * save of a step uploads its files under other names and then replaces the manifest in one request, so that the first save stays whole until
 * then. Processes other than the chief write shards, whose names are never used twice (bucket_shards.h).
 *
 * A chief claims the bucket like a directory: its incarnation record (incarnation_record.h) is uploaded only if no other chief has that
 * number. Before each commit and each removal the chief looks for newer records. The server must support conditional writes (s3_client.h)
 * and list objects as soon as they are written, as AWS and MinIO do.
 *
 * Life cycle: open, refresh, claim, refresh, then commits; free. Calls block for as long as the network takes. They may run in several
 * threads, but only one at a time of refresh, claim, commit and prune.
 *
 * Errors: STALE or CONFLICT (lineage_check_current), UNAVAILABLE (the server fails, or cannot be reached), CORRUPT (wrong bytes), SYSTEM (the
 * server refuses: credentials, bucket), and those of the local disk.
 */
#ifndef COXSWAIN_CHECKPOINT_BUCKET_H
#define COXSWAIN_CHECKPOINT_BUCKET_H

#include "common/s3_transfer.h"
#include "worker/checkpoint/incarnation_record.h"

struct bucket;

/* `text` is the value of ENV_CHECKPOINT_S3, `directory` the local copy, which exists. ERROR_INVALID names a field that is wrong. */
int bucket_open(const char *text, const char *directory, struct bucket **ret_bucket, struct error *error);
/* Opens with another prefix than that of the settings, which the environment variable `variable` holds. */
int bucket_open_at(const char *variable, const char *text, const char *prefix, const char *directory,
                   struct bucket **ret_bucket, struct error *error);
void bucket_free(struct bucket *bucket);

/* Replaces the local copy: it gets the bucket's incarnation records and export record, for the chief (`for_chief`) also the best weights, and
 * of each committed checkpoint a directory with the manifest. Other local checkpoints are removed. */
int bucket_refresh(struct bucket *bucket, bool for_chief, struct error *error);

/* Removes the tensors of a checkpoint from the local copy, which keeps its manifest. */
int bucket_drop(const struct bucket *bucket, const struct checkpoint_name *name, struct error *error);

/* Uploads this chief's record from the local copy. A new one (`is_new`) is refused with ERROR_ALREADY_EXISTS if there is a record of that number. */
int bucket_put_record(struct bucket *bucket, const struct incarnation_record *own, bool is_new, struct error *error);

/* Downloads the files of a checkpoint whose directory bucket_refresh has made. */
int bucket_fetch(struct bucket *bucket, const struct checkpoint_name *name, struct error *error);

/* Uploads and commits a checkpoint that is complete in the local copy. Uploads nothing if the bucket has the same checkpoint with all its
 * objects. ERROR_STALE if a newer chief has claimed the bucket, or another process has committed a checkpoint of that name. */
int bucket_commit(struct bucket *bucket, const struct checkpoint_name *name, const struct incarnation_record *own,
                  struct error *error);

/* Removes from the bucket the checkpoints (manifests first), records and shards that the local copy no longer has. Also removes the tensors
 * of all local checkpoints but `newest`, so that the local copy stays small. Shards of this chief for steps after `newest` stay, because
 * they may be about to be committed. Removes nothing if a newer chief has claimed the bucket. */
int bucket_prune(struct bucket *bucket, const struct checkpoint_name *newest, const struct incarnation_record *own,
                 struct error *error);

/* Reads the incarnation records in the bucket again, and fails like lineage_check_current if a newer chief or another job has claimed it. */
int bucket_check(struct bucket *bucket, const struct incarnation_record *own, struct error *error);

/* Claims the bucket, and its local copy, for a new chief like lineage_claim. If another chief claims the bucket at the same time, their
 * incarnations say which of the two is the newer one. ERROR_UNSUPPORTED if the server ignores the condition of a conditional write. */
int bucket_claim(struct bucket *bucket, const char *job_uid, int64_t attempt, int64_t fencing,
                 struct incarnation_record *ret_claim, struct error *error);

/* Names the job whose shards (bucket_shards.h) this process writes and removes. "": a run without an operator. */
void bucket_set_job(struct bucket *bucket, const char *job_uid);

/* For bucket_shards.c: return the client, another client that gives up after a few seconds, the checksum of the UID that bucket_set_job has
 * set, and the key of the object `name` behind the bucket's prefix (free() it). */
struct s3_client *bucket_client(const struct bucket *bucket);
struct s3_client *bucket_quick_client(const struct bucket *bucket);
uint32_t bucket_owner(const struct bucket *bucket);
char *bucket_key(const struct bucket *bucket, const char *name);

/* Changes an error of s3_client.h or s3_transfer.h (`error` may be NULL) into one of those above. Returns -1. */
int bucket_fail(struct error *error);
/* Copies `cause` to `error`, and changes it like bucket_fail. For callers that look at the unchanged error first. Returns -1. */
int bucket_fail_with(const struct error *cause, struct error *error);
/* Calls s3_upload_if and changes its error like bucket_fail; an error that `check` has returned is passed on unchanged. */
int bucket_upload_if(struct s3_client *client, const char *key, const char *path, s3_upload_check *check,
                     const void *context, struct error *error);

/* Uploads a file of the local copy. The claim is checked once all bytes are uploaded, before the object becomes visible: if a newer chief has
 * claimed the bucket by then, the call fails like bucket_check and the bucket is unchanged. */
int bucket_put_file(struct bucket *bucket, const char *name, const struct incarnation_record *own, struct error *error);

#endif
