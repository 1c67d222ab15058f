/* SPDX-License-Identifier: Apache-2.0
 *
 * Shards of checkpoints in a bucket: the files that processes other than the chief write (part.h; servers of strategy ParameterServer).
 * Each process uploads its own as `shards/NAME` behind the bucket's prefix. The name has a checksum of the job's UID, the crew's generation
 * and the step or the number of the save, so no shard is ever replaced: a process of an older generation, however late, changes nothing that
 * a manifest names. The chief lists the shards in the manifest, with the size and checksum that the server reports, and commits the manifest
 * (bucket.h).
 *
 * An object appears only when all its bytes are there: its existence tells the chief that the shard is written. A process that cannot write
 * its shard uploads the reason as `shards/NAME.failed`.
 *
 * Any thread may call these functions. Errors are those of bucket.h.
 */
#ifndef COXSWAIN_CHECKPOINT_BUCKET_SHARDS_H
#define COXSWAIN_CHECKPOINT_BUCKET_SHARDS_H

#include "worker/checkpoint/bucket.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/part.h"

#define BUCKET_SHARDS "shards/"
#define BUCKET_SHARD_NAME_MAX 64 /* with the NUL: that of a manifest_file */

/* Shards of ParameterServer have the number of the save as counter, and step 0. ERROR_INVALID if the numbers are too long for a name. */
int bucket_shard_name(const struct bucket *bucket, const struct checkpoint_part_key *key,
                      char name[BUCKET_SHARD_NAME_MAX], struct error *error);
/* Returns false if `name` is not that of a shard. `ret_owner` is the checksum of the job's UID. */
bool bucket_shard_name_parse(const char *name, struct checkpoint_part_key *ret_key, uint32_t *ret_owner);

/* Parses the name, below the bucket's prefix, of any object of this header: a shard, the reason why there is none, or a call. */
bool bucket_shard_object_parse(const char *below, struct checkpoint_part_key *ret_key, uint32_t *ret_owner);

/* Uploads the file at `path` as a shard. */
int bucket_put_shard(struct bucket *bucket, const char *path, const char *name, struct error *error);
/* Tells the chief that the shard will not be written. Failures are ignored: then the chief waits for the shard until its time is over. */
void bucket_put_failure(struct bucket *bucket, const char *name, const struct error *why);

/* Removes what ranks 1 to `ranks` - 1 have uploaded for a save that has failed, and that no manifest names. Ends at the first failure, which is
 * ignored: the next bucket_prune removes the rest. */
void bucket_remove_shards(struct bucket *bucket, const struct checkpoint_part_key *key, unsigned ranks);

/* Looks for the shard file->name. Returns 1 and sets its size and checksum if it is there, 0 if not yet, -1 with the reason if it will not
 * be written, or the server cannot be asked. */
int bucket_look_for_shard(struct bucket *bucket, struct manifest_file *file, struct error *error);

/* What checkpoint_parts_call and checkpoint_parts_are_called (part.h) do, with an object. The second asks the server for a few seconds at
 * most. */
int bucket_call_parts(struct bucket *bucket, const struct checkpoint_part_key *key, struct error *error);
bool bucket_parts_are_called(struct bucket *bucket, const struct checkpoint_part_key *key);

#endif
