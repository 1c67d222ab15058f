/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies a parameter server's values as they are at one moment, while updates continue. The server uses it to write its
 * shard of a checkpoint and to send values to workers.
 *
 * The values are cut into segments. Each is copied before the first later update writes to it, or when the thread that
 * wants the copy reaches it, whichever is sooner. So no update waits for the whole copy, and values are handed out
 * meanwhile. A thread that only sends the values (variables_copy_give) copies just those that an update is about to
 * overwrite before they were sent.
 *
 *     variables_copy_begin       the moment that is copied; on the thread of the updates
 *     variables_copy_complete    on any one other thread; then `values` may be read
 *     variables_copy_give        instead, to send the parameters from beginning to end
 *     variables_copy_end         on the thread of the updates, after that
 *
 * All writers of the values call variables_keep before they write. Several copies may be in progress.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_VARIABLES_COPY_H
#define COXSWAIN_PARAMETER_SERVER_VARIABLES_COPY_H

#include <stdatomic.h>

#include "worker/comm/bulk_connection.h"
#include "worker/parameter_server/variables.h"

enum variables_part { VARIABLES_PARAMETERS, VARIABLES_WITH_SLOTS };

/* Zeroed memory is a copy that has not begun. Its memory is kept for the next use. */
struct variables_copy {
    struct variables_copy *next; /* among the copies in progress */
    struct variables values;     /* owns parameters, slots and table; not the shares and the like */
    const float *from[1 + OPTIMIZER_SLOTS_MAX];
    float *memory;
    size_t bytes;
    atomic_int *states; /* one for each segment */
    int64_t segments;
    int64_t reached; /* after variables_copy_expect: how many of them are available */
};

/* Begins a copy. A copy always has the same `part`. ERROR_NO_SPACE. */
int variables_copy_begin(struct variables_copy *copy, struct variables *variables, enum variables_part part,
                         struct error *error);
void variables_copy_complete(struct variables_copy *copy);
/* Begins a copy of the moment after the next update: only what variables_copy_reach has released
 * can be given. */
int variables_copy_expect(struct variables_copy *copy, struct variables *variables, enum variables_part part,
                          struct error *error);
void variables_copy_reach(struct variables_copy *copy, int64_t end);
/* Writes parameters to the link, from byte `offset` on, as much of one segment as the link accepts
 * now. Returns how much, or BULK_CONNECTION_LATER if the segment is not available yet. For
 * bulk_connection_send_from. */
size_t variables_copy_give(void *copy, size_t offset, struct link *link);
/* Ends a copy. Does nothing if it is not in progress. */
void variables_copy_end(struct variables_copy *copy, struct variables *variables);
void variables_copy_release(struct variables_copy *copy);

/* Saves elements [first, first + count) of parameters and slots for the copies in progress, because
 * they are about to be written. */
void variables_keep(struct variables *variables, int64_t first, int64_t count);

#endif
