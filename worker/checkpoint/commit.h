/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes one checkpoint and makes it visible in a single step, for checkpoint.c. The files are written into
 * `.saving-<name>/` and synced, then the manifest, then the directory; then the directory is renamed and its
 * parent synced. The rename is the commit: a process that ends before it leaves a directory that nobody
 * loads. Before the rename, the caller's record in the directory (incarnation_record.h) is checked; if a
 * newer process has claimed the directory, nothing is committed.
 */
#ifndef COXSWAIN_CHECKPOINT_COMMIT_H
#define COXSWAIN_CHECKPOINT_COMMIT_H

#include "worker/checkpoint/lineage.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/part.h"
#include "worker/checkpoint/safetensors.h"

/* The parts that other ranks write (part.h). */
struct checkpoint_parts {
    const struct checkpoint_part_key *key;
    unsigned ranks;
    struct bucket *bucket; /* the parts are shards there (bucket_shards.h); NULL: they are in the directory */
    struct checkpoint_parts_patience patience;
};

/* Writes `tensors` and the manifest, waits for `parts` (NULL: no other rank holds tensors), and
 * commits. Fills manifest->files. Replaces an older save of the same step by the same chief.
 * ERROR_STALE or ERROR_CONFLICT if `own` is no longer the newest record; nothing is committed
 * then. */
int checkpoint_commit(const char *directory, const struct incarnation_record *own, struct manifest *manifest,
                      const struct safetensors_tensor *tensors, unsigned count, const struct checkpoint_parts *parts,
                      int64_t *ret_bytes, struct error *error);

/* Writes the manifest into the directory `saving`, which holds all files that it lists, synced, and commits the directory. A failure
 * removes `saving`, here and below. */
int checkpoint_commit_directory(const char *directory, const char *saving, const struct incarnation_record *own,
                                const struct manifest *manifest, struct error *error);

/* Commits `saving` in place of an older checkpoint of the same step and chief. The two directories
 * exchange their names in one step, or in two on file systems without such a call (NFS). Between
 * the two steps a reader finds neither; if the process ends there, the older checkpoint has another
 * name, which the next chief changes back. A failure leaves the older checkpoint. */
int checkpoint_replace_directory(const char *directory, const char *saving, const struct incarnation_record *own,
                                 const struct manifest *manifest, struct error *error);

/* Reads the file that this process has written, from the disk where possible (disk_file.h), and
 * compares its digest. If they differ, the checkpoint is moved aside (*ret_moved_aside), unless a newer
 * chief has claimed the directory; if the file cannot be read, the checkpoint stays in place. */
int checkpoint_read_back(const char *directory, const struct incarnation_record *own, const struct manifest *manifest,
                         bool *ret_moved_aside, struct error *error);
/* Renames a bad checkpoint to `.bad-…`, which is never loaded, so that a person can look at it. If
 * that fails (a read-only directory), the next restore finds it bad again. */
int checkpoint_move_aside(const char *directory, const char *name);

/* Removes the files of unfinished saves of earlier chiefs, and restores the name of a checkpoint
 * that one of them was about to replace. To be called after the directory was claimed. */
int checkpoint_remove_leftovers(const char *directory, struct error *error);

#endif
