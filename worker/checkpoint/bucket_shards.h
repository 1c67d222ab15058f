/* SPDX-License-Identifier: Apache-2.0
 *
 * Uploads and finds the shards of a checkpoint in object storage. A shard is the file with the tensors that one process other than the chief
 * holds: another rank (part.h) or a server of strategy ParameterServer.
 *
 * Each process uploads its own shard as `shards/NAME` behind the bucket's prefix. The name has a checksum of the job's UID, the crew's generation
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

/* Parses the name, below the bucket's prefix, of any object that these functions write: a shard, the reason why a shard could not be written,
 * or a request for parts (bucket_call_parts). Returns false for any other name. */
bool bucket_shard_object_parse(const char *below, struct checkpoint_part_key *ret_key, uint32_t *ret_owner);

/* Uploads the file at `path` as a shard. */
int bucket_put_shard(struct bucket *bucket, const char *path, const char *name, struct error *error);
/* Uploads the reason why this process cannot write its shard, which ends the chief's wait for it. If this upload fails too, the failure is
 * ignored, and the chief's wait ends by its timeout. */
void bucket_put_failure(struct bucket *bucket, const char *name, const struct error *why);

/* Removes the shards that ranks 1 to `ranks` - 1 have uploaded for a save that has failed, so that no manifest lists them. Stops at the first
 * error, which is not reported: the next bucket_prune removes the rest. */
void bucket_remove_shards(struct bucket *bucket, const struct checkpoint_part_key *key, unsigned ranks);

/* Looks for the shard file->name. Returns 1 and sets its size and checksum if it is there, 0 if not yet, -1 with the reason if it will not
 * be written, or the server cannot be asked. */
int bucket_look_for_shard(struct bucket *bucket, struct manifest_file *file, struct error *error);

/* Asks all ranks to upload their shards of the last step, like checkpoint_parts_call (part.h), but by an object in the bucket instead of a
 * file. */
int bucket_call_parts(struct bucket *bucket, const struct checkpoint_part_key *key, struct error *error);
/* Returns whether bucket_call_parts was called for this save. Returns false if the server does not answer within a few seconds. */
bool bucket_parts_are_called(struct bucket *bucket, const struct checkpoint_part_key *key);

#endif
