/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes one checkpoint and makes it visible in a single step: files into
 * `.saving-<name>/`, each synced; the manifest; sync; rename; sync
 * of the parent. The rename is the commit. A process that ends before it leaves
 * a directory that nobody loads.
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

/* Fills manifest->files. An older save of that step by the same chief is replaced. ERROR_STALE or ERROR_CONFLICT: `own` is no longer the newest record; nothing was committed. */
int checkpoint_commit(const char *directory, const struct epoch_record *own, struct manifest *manifest,
                      const struct safetensors_tensor *tensors, unsigned count, const struct checkpoint_parts *parts,
                      int64_t *ret_bytes, struct error *error);

/* The same for a directory `saving` that holds all the files that the manifest names, synced. */
int checkpoint_commit_directory(const char *directory, const char *saving, const struct epoch_record *own,
                                const struct manifest *manifest, struct error *error);

/* The same where a checkpoint of that step, by the same chief, is there already: it is replaced in one step; where the file system
 * cannot do that (NFS, for one), in two. Whoever reads between the two finds neither; a process that ends there leaves the older
 * one under another name, and the next chief puts it back. A failure leaves the older one. */
int checkpoint_replace_directory(const char *directory, const char *saving, const struct epoch_record *own,
                                 const struct manifest *manifest, struct error *error);

/* What the disk holds of the file that this process wrote for it, against the digest: from the disk, where that goes (disk_file.h).
 * What does not read back as it was written is moved aside (*ret_moved_aside); what cannot be read stays where it is. */
int checkpoint_read_back(const char *directory, const struct epoch_record *own, const struct manifest *manifest,
                         bool *ret_moved_aside, struct error *error);
/* Out of every loader's sight, for a person to look at. Where even that fails (a read-only directory), the next loader finds it bad
 * again: nothing is lost. */
int checkpoint_move_aside(const char *directory, const char *name);

/* Removes what unfinished saves and records of earlier chiefs left behind, and puts back what one of them was about to replace. For
 * whoever has claimed the directory. */
int checkpoint_remove_leftovers(const char *directory, struct error *error);

#endif
