/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes one checkpoint and makes it visible in a single step. The files are written into
 * `.saving-<name>/` and synced, then the manifest, then the directory; then the directory is
 * renamed and its parent synced. The rename is the commit: a process that ends before it
 * leaves a directory that nobody loads.
 */
#ifndef COXSWAIN_CHECKPOINT_COMMIT_H
#define COXSWAIN_CHECKPOINT_COMMIT_H

#include "worker/checkpoint/lineage.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/part.h"
#include "worker/checkpoint/safetensors.h"

/* Where other ranks' parts come from (part.h); NULL: the tensors are all there is. */
struct checkpoint_parts {
    const struct checkpoint_part_key *key;
    unsigned ranks;
    struct checkpoint_parts_patience patience;
};

/* Fills manifest->files. An older save of that step by the same chief is replaced. ERROR_STALE or ERROR_CONFLICT if `own` is no longer
 * the newest record; nothing was committed then. */
int checkpoint_commit(const char *directory, const struct epoch_record *own, struct manifest *manifest,
                      const struct safetensors_tensor *tensors, unsigned count, const struct checkpoint_parts *parts,
                      int64_t *ret_bytes, struct error *error);

/* The same for a directory `saving` that holds all the files that the manifest names, synced. */
int checkpoint_commit_directory(const char *directory, const char *saving, const struct epoch_record *own,
                                const struct manifest *manifest, struct error *error);

/* The same if the same chief has already saved that step: the older checkpoint is replaced in one step, or in two on file systems that
 * cannot exchange names (such as NFS). Between the two steps a reader finds neither; a process that ends there leaves the older
 * checkpoint under another name, and the next chief restores its name. A failure leaves the older checkpoint. */
int checkpoint_replace_directory(const char *directory, const char *saving, const struct epoch_record *own,
                                 const struct manifest *manifest, struct error *error);

/* Compares the file that this process has written with its digest, read from the disk where possible (disk_file.h). If they differ,
 * the checkpoint is moved aside (*ret_moved_aside); if the file cannot be read, the checkpoint stays where it is. */
int checkpoint_read_back(const char *directory, const struct epoch_record *own, const struct manifest *manifest,
                         bool *ret_moved_aside, struct error *error);
/* Renames a bad checkpoint to `.bad-…`, which is never loaded, for a person to look at. If that fails (a read-only directory), the next
 * loader finds it bad again. */
int checkpoint_move_aside(const char *directory, const char *name);

/* Removes the files of unfinished saves of earlier chiefs, and restores the name of a checkpoint that one of them was about to
 * replace. To be called after the directory was claimed. */
int checkpoint_remove_leftovers(const char *directory, struct error *error);

#endif
