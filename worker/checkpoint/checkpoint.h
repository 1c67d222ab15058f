/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of one job in one directory: save without stopping the training,
 * restore the newest copy that is whole. docs/checkpoints.md tells the protocol.
 *
 * Life cycle, in the chief: open (claims the directory: older chiefs commit
 * nothing more) -> restore (or not) -> begin (says what it starts from; nothing may
 * be saved before) -> save … fence … wait -> free. A save copies the tensors and then writes, syncs,
 * commits and reads them back in a thread of its own: training goes on with the next step's passes at once, and calls
 * checkpoint_fence before it changes a tensor. One save at a time; one that finds another still under way is skipped.
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

struct checkpoint_part_key;
/* What has become of a rank since that generation: what it has not begun to write before it moved on with a newer one it will
 * never write, nor anything once it is lost. May be asked from any thread. */
enum checkpoint_rank_fate { RANK_STAYS, RANK_HAS_MOVED_ON, RANK_IS_LOST };
typedef enum checkpoint_rank_fate (*checkpoint_ask_rank)(void *context, const struct checkpoint_part_key *key);
/* What people call a rank: "rank 1 (worker 1, 10.0.0.7:2223)". Likewise. */
#define CHECKPOINT_RANK_NAME_MAX 160
typedef void (*checkpoint_name_rank)(void *context, unsigned rank, char name[CHECKPOINT_RANK_NAME_MAX]);
/* Each half minute that a part is waited for: whose, and how long. From the saver's thread. */
typedef void (*checkpoint_tell_late)(void *context, const char *rank, int64_t step, int64_t waited_ms);

struct checkpoint_options {
    const char *directory; /* created when missing */
    const char *job_uid;   /* "" when run by hand */
    int64_t attempt, epoch;
    int64_t keep;                   /* whole checkpoints to keep, at least 1 */
    checkpoint_ask_rank ask_rank;   /* where other ranks write parts (part.h); NULL: nobody knows */
    checkpoint_name_rank name_rank; /* NULL: "rank 1" */
    checkpoint_tell_late tell_late; /* NULL: nobody is told */
    void *context;
};

/* ERROR_STALE: a newer chief of this job was here. */
int checkpoint_store_open(const struct checkpoint_options *options, struct checkpoint_store **ret_store,
                          struct error *error);
/* Waits for a save under way. */
void checkpoint_store_free(struct checkpoint_store *store);

/* A verified checkpoint, open for reading: every digest was checked before this was handed out. */
struct checkpoint_image {
    struct checkpoint_name name;
    struct manifest manifest;
    struct safetensors_file *files;
    unsigned file_count;
};

/* Opens the newest whole checkpoint of the line of descent. Bad ones on the way are moved aside (".bad-…") and told through
 * `quarantined` (one call each, with the reason), as are damaged epoch records; ERROR_NOT_FOUND when there is none left.
 * What only cannot be read now (ERROR_SYSTEM), or was written by a newer release (ERROR_UNSUPPORTED), stays where it is and
 * is an error: to start anew instead would lose it. */
typedef void checkpoint_quarantined(void *context, const char *name, const char *reason);
int checkpoint_restore(struct checkpoint_store *store, checkpoint_quarantined *quarantined, void *context,
                       struct checkpoint_image *ret_image, struct error *error);
void checkpoint_image_release(struct checkpoint_image *image);
const struct safetensors_tensor *checkpoint_image_find(const struct checkpoint_image *image, const char *tensor);

/* Writes down what this chief starts from: the checkpoint last restored through this store, else the newest candidate when
 * `adopted` (a peer held a newer state), else nothing. ERROR_STALE, ERROR_CONFLICT: see lineage_check_current. */
int checkpoint_store_begin(struct checkpoint_store *store, bool adopted, struct error *error);

/* Whether this chief may still write into the directory; ERROR_STALE, ERROR_CONFLICT: see lineage_check_current. */
int checkpoint_store_check(const struct checkpoint_store *store, struct error *error);

/* The saves to come will copy about so many bytes: the memory for it is made ready in the background, so that the first save is as
 * quick as those that follow. */
void checkpoint_expect(struct checkpoint_store *store, size_t bytes);

enum checkpoint_start { CHECKPOINT_STARTED, CHECKPOINT_SKIPPED };

/* Starts the save. `manifest` is read, not kept: step, sampler position, model, … (files, attempt, epoch and job UID are
 * filled in here). The tensors' bytes must stay as they are until checkpoint_fence has returned; the rest is copied here.
 * That the copy does not fit in memory is the save's result (ERROR_NO_SPACE). */
int checkpoint_save(struct checkpoint_store *store, const struct manifest *manifest,
                    const struct safetensors_tensor *tensors, unsigned count, enum checkpoint_start *ret_start,
                    struct error *error);

/* The same where other ranks hold tensors too and write them as parts (part.h): the commit waits for those of ranks
 * [1, ranks). */
int checkpoint_save_with_parts(struct checkpoint_store *store, const struct manifest *manifest,
                               const struct safetensors_tensor *tensors, unsigned count,
                               const struct checkpoint_part_key *key, unsigned ranks, enum checkpoint_start *ret_start,
                               struct error *error);
/* A save under way waits no longer for parts: who would write them is gone. */
void checkpoint_give_up_parts(struct checkpoint_store *store);

/* From now on a part that has not grown for so long is waited for no longer. From any thread. */
void checkpoint_hurry_parts(struct checkpoint_store *store, int64_t wait_ms);

/* Whether a save is under way: the next would be skipped. */
bool checkpoint_is_busy(struct checkpoint_store *store);

/* Waits until a save under way has copied its tensors; returns at once when none has to. */
void checkpoint_fence(struct checkpoint_store *store);

/* Waits until no save is under way; then as checkpoint_store_result. */
int checkpoint_wait(struct checkpoint_store *store, struct error *error);

/* How the last finished save ended: -1 with its error until the next one succeeds. */
int checkpoint_store_result(struct checkpoint_store *store, struct error *error);

struct checkpoint_counts {
    int64_t committed_step; /* of the newest commit in this process or the restored one, -1: none */
    int64_t saved, skipped, failed;
    int64_t last_save_ns;  /* background copy, write and commit of the last save */
    int64_t last_check_ns; /* what the background took after the commit: reading back, and older ones' removal */
    int64_t last_stall_ns; /* what the caller waited for it, in checkpoint_save and checkpoint_fence */
    int64_t last_bytes;
};
struct checkpoint_counts checkpoint_store_counts(struct checkpoint_store *store);
/* Steps are counted otherwise from here on: the checkpoint that was restored is of none of them, though one have its number. */
void checkpoint_store_recount(struct checkpoint_store *store);

/* The same for a state whose parts other processes hold: each writes its file into the directory that `begin` makes (free()
 * it), syncs it, and tells its size and digest; `commit` then makes the whole visible. `manifest` names the files. Where the newest
 * commit is of the same step, the new one takes its place if it `replaces` it; else it is dropped, and all is well. The calls wait
 * for the disk. */
int checkpoint_shards_begin(struct checkpoint_store *store, char **ret_directory, struct error *error);
int checkpoint_shards_commit(struct checkpoint_store *store, const char *directory, struct manifest *manifest,
                             bool replaces, struct error *error);

#endif
