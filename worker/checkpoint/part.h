/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes and collects the parts of a checkpoint whose tensors are spread over several ranks (processes that
 * train together; rank 0, the chief, saves). Each other rank writes its tensors into a file of its own (its
 * part) in the job's directory, then a file PART.sum with the part's size and digest, which acknowledges it,
 * or with the reason why the rank could not write it. The chief's commit waits for all of these and moves the
 * parts into the checkpoint, beside its own file.
 *
 * A part's name contains the step of its save and the generation, the number that changes whenever a process
 * joins or leaves. A part that was written before such a change is therefore never taken for a current one.
 */
#ifndef COXSWAIN_CHECKPOINT_PART_H
#define COXSWAIN_CHECKPOINT_PART_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/safetensors.h"

#define CHECKPOINT_PART_PREFIX ".part-"

struct checkpoint_part_key {
    uint32_t attempt, incarnation, counter; /* the crew's generation */
    int64_t step;
    unsigned rank;
};
/* Returns whether both keys belong to the same save: the generation and the step are equal. The ranks are not compared. */
bool checkpoint_part_key_same_save(const struct checkpoint_part_key *a, const struct checkpoint_part_key *b);

/* Print and parse the text that a rank stores in place of a part that it cannot write: errno and the reason. part_failure_format returns the
 * text's length. part_failure_read always returns -1, with that reason as the error; its kind is ERROR_NO_SPACE if the rank's disk was full,
 * else ERROR_SYSTEM. */
#define PART_FAILURE_MAX 512
int part_failure_format(const struct error *why, char text[PART_FAILURE_MAX]);
int part_failure_read(const char *text, struct error *error);

/* ---- for ranks other than the chief. A writer runs one save at a time. */

struct part_writer;

struct bucket;

/* Creates a writer. The directory need not exist yet. With a bucket (may be NULL), which must outlive the writer, parts are uploaded as
 * shards (bucket_shards.h), and the file in the directory is removed. */
struct part_writer *part_writer_new(const char *directory, struct bucket *bucket);
/* Waits for a running save, then frees. */
void part_writer_free(struct part_writer *writer);
/* Returns whether a save is running. A caller that must not wait asks this before part_writer_save. */
bool part_writer_is_busy(const struct part_writer *writer);
/* Waits for the last save if it still runs, copies the tensors, and writes the copy in a thread. Keeps the
 * part of the last save until the next call, since the chief may be about to collect it, and removes parts of
 * older generations. */
int part_writer_save(struct part_writer *writer, const struct checkpoint_part_key *key,
                     const struct safetensors_tensor *tensors, unsigned count, struct error *error);
/* Waits for the running save, if any. Returns -1 with the error if the last save failed. */
int part_writer_wait(struct part_writer *writer, struct error *error);
/* Whether this writer's last save is the one that `key` names. The rank of the key does not
 * matter. */
bool part_writer_has_begun(const struct part_writer *writer, const struct checkpoint_part_key *key);

/* ---- for the chief */

/* How long the chief waits for parts. */
struct checkpoint_parts_patience {
    const atomic_bool *given_up;        /* once set, the wait ends */
    checkpoint_ask_rank ask;            /* whether a rank can still write its part; NULL: every rank can */
    void *context;                      /* for the callbacks */
    checkpoint_name_rank name;          /* names a rank in messages; NULL: "rank 1" */
    checkpoint_report_late report_late; /* NULL: late parts are not reported */
    int64_t late_ms;                    /* time between two reports; 0: 30 s */
    int64_t wait_ms;                    /* longest time without progress of a part (disk_file_progress); 0: 2 min */
    const atomic_llong *hurry_ms;       /* once above 0, replaces wait_ms (checkpoint_hurry_parts); NULL: never */
};

/* Waits for the parts of ranks [1, ranks), as long as each of them makes progress. Once all are
 * there, moves them into `saving` and adds them to the manifest's files. If it fails before, the
 * parts stay for another save of the same step. ERROR_TIMEOUT names the first part that is missing,
 * ERROR_UNAVAILABLE one that will not come; ERROR_CANCELLED once the wait is given up. If a rank
 * could not write its part, the error is that rank's own, with its os_error. */
int checkpoint_parts_collect(const char *directory, const char *saving, const struct checkpoint_part_key *key,
                             unsigned ranks, const struct checkpoint_parts_patience *patience,
                             struct manifest *manifest, struct error *error);
/* Waits for the shards of ranks [1, ranks) in a bucket and adds them to the manifest's files; they stay where they are. Fails as
 * checkpoint_parts_collect does. The progress of an upload cannot be seen, so it waits for each shard at most 15 minutes, or wait_ms or
 * hurry_ms if they are set. */
int checkpoint_parts_await_shards(struct bucket *bucket, const struct checkpoint_part_key *key, unsigned ranks,
                                  const struct checkpoint_parts_patience *patience, struct manifest *manifest,
                                  struct error *error);

/* ---- for any rank */

/* Asks all ranks to write their parts of the last step. A rank calls this if it must leave and
 * cannot wait until all ranks agree on a save. The other ranks look for the request when they see
 * that it leaves; those that have not gone past that step still hold its values. The request is a
 * file, which the next chief removes. The rank of the key does not matter. */
int checkpoint_parts_call(const char *directory, const struct checkpoint_part_key *key, struct error *error);
bool checkpoint_parts_are_called(const char *directory, const struct checkpoint_part_key *key);

/* ---- for the chief */

/* Links the files of ranks [1, ranks) in the checkpoint at `path` back to the names that they had as parts, so
 * that another save of that step can use them; the checkpoint keeps them too. Does nothing on file
 * systems without hard links. */
void checkpoint_parts_give_back(const char *directory, const char *path, const struct checkpoint_part_key *key,
                                unsigned ranks, const struct manifest *manifest);

/* Removes the parts that ranks [1, ranks) have written for a save that failed. */
void checkpoint_parts_remove(const char *directory, const struct checkpoint_part_key *key, unsigned ranks);

#endif
