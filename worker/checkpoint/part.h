/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints whose tensors several ranks hold: each writes its part as a file
 * of its own into the job's directory, and says beside it how long it is and
 * what its digest is (that file is the acknowledgement), or why there is none. The
 * chief's commit waits for all of them and moves them into the checkpoint, beside
 * its own shard.
 *
 * A part's name says which save of which generation it belongs to, so that no
 * part of a crew that is gone is taken for a newer one's.
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
    uint32_t attempt, epoch, counter; /* the crew's generation */
    int64_t step;
    unsigned rank;
};

/* ---- a rank that is not the chief. One save at a time: as long as the writer is busy its rank agrees to no other. */

struct part_writer;

/* The directory need not be there yet. */
struct part_writer *part_writer_new(const char *directory);
/* Waits for a save under way. */
void part_writer_free(struct part_writer *writer);
/* Whether a save is under way, that is, whether the next would have to wait for it. */
bool part_writer_is_busy(const struct part_writer *writer);
/* Waits for a save under way, copies the tensors, and writes the copy on a thread of its own. The part before stays where nobody
 * has taken it, since the chief may be about to, until the next save; one of an older generation goes at once. */
int part_writer_save(struct part_writer *writer, const struct checkpoint_part_key *key,
                     const struct safetensors_tensor *tensors, unsigned count, struct error *error);
/* Waits for the save under way; -1 when the last one failed. */
int part_writer_wait(struct part_writer *writer, struct error *error);
/* Whether that save was begun. */
bool part_writer_has(const struct part_writer *writer, const struct checkpoint_part_key *key);

/* ---- the chief */

/* How long a part is waited for. */
struct checkpoint_parts_patience {
    const atomic_bool *given_up; /* set: no longer */
    checkpoint_ask_rank ask;     /* NULL: nobody knows */
    void *context;
    checkpoint_name_rank name;      /* NULL: "rank 1" */
    checkpoint_tell_late tell_late; /* NULL: nobody is told */
    int64_t late_ms;                /* each so long; 0: half a minute */
    int64_t wait_ms; /* that nothing more of a part is on its disk, or was read back (disk_file.h); 0: two minutes */
    const atomic_llong *hurry_ms; /* instead, unless it is NULL or 0 */
};

/* Waits for the parts of ranks [1, ranks), as long as their disks get on with them; once all are there, moves them into `saving` and adds them to the
 * manifest's files: a save that fails leaves them to the next of the same step.
 * ERROR_TIMEOUT names the first that is missing, ERROR_UNAVAILABLE one that will not come; ERROR_CANCELLED once it is given up.
 * What kept a rank from writing its own is told as it was there, `os_error` too. */
int checkpoint_parts_collect(const char *directory, const char *saving, const struct checkpoint_part_key *key,
                             unsigned ranks, const struct checkpoint_parts_patience *patience,
                             struct manifest *manifest, struct error *error);
/* ---- any rank. One that cannot wait for a boundary at which all agree on a save calls for the parts of the last one, which all who
 * have not left it still hold; they look for the call when they see that it goes. Until the next chief sweeps it away. The rank of
 * the key does not matter. */
int checkpoint_parts_call(const char *directory, const struct checkpoint_part_key *key, struct error *error);
bool checkpoint_parts_are_called(const char *directory, const struct checkpoint_part_key *key);

/* ---- the chief */

/* The files of a checkpoint at `path` that ranks [1, ranks) wrote are parts again, with the digests that its manifest has, for another
 * save of that step: they stay there as well. As far as that goes: a file system without hard links has none. */
void checkpoint_parts_give_back(const char *directory, const char *path, const struct checkpoint_part_key *key,
                                unsigned ranks, const struct manifest *manifest);

/* Removes what ranks [1, ranks) have written for a save that has failed. */
void checkpoint_parts_remove(const char *directory, const struct checkpoint_part_key *key, unsigned ranks);

#endif
