/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy of a server's values as they are at one moment, made while the server goes
 * on: they are cut into segments, and each is copied before the first update since
 * then writes to it, or when the thread that wants the copy comes to it, whichever
 * is sooner. So nobody waits for the whole, and values are handed out meanwhile. Who
 * only sends them copies nothing but what an update writes to before it is sent.
 *
 *     variables_copy_begin       the moment; on the thread of the updates
 *     variables_copy_complete    on any one other thread; then `values` may be read
 *     variables_copy_give        instead, to send what it is of from the beginning to the end
 *     variables_copy_end         on the thread of the updates, after that
 *
 * All writers of the values call variables_keep before they write. Several copies may be under way.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_VARIABLES_COPY_H
#define COXSWAIN_PARAMETER_SERVER_VARIABLES_COPY_H

#include <stdatomic.h>

#include "worker/comm/bulk_line.h"
#include "worker/parameter_server/variables.h"

enum variables_part { VARIABLES_PARAMETERS, VARIABLES_WITH_SLOTS };

/* Zeroed memory is one that has not begun. It keeps its memory for the next time. */
struct variables_copy {
    struct variables_copy *next; /* of those under way */
    struct variables values;     /* parameters, slots and table are its own; shares and the like are not */
    const float *from[1 + OPTIMIZER_SLOTS_MAX];
    float *memory;
    size_t bytes;
    atomic_int *states; /* of the segments */
    int64_t segments;
    int64_t reached; /* expected: so many of them are there */
};

/* Always of the same part. ERROR_NO_SPACE. */
int variables_copy_begin(struct variables_copy *copy, struct variables *variables, enum variables_part part,
                         struct error *error);
void variables_copy_complete(struct variables_copy *copy);
/* As begin, of the moment after the next update: what is given of it is what has been reached. */
int variables_copy_expect(struct variables_copy *copy, struct variables *variables, enum variables_part part,
                          struct error *error);
void variables_copy_reach(struct variables_copy *copy, int64_t end);
/* Writes to the link from byte `offset` of the parameters on, as much as it takes now of one segment; how much that is, or
 * BULK_LINE_LATER. For bulk_line_send_from. */
size_t variables_copy_give(void *copy, size_t offset, struct link *link);
/* Fine to call for one that is not under way. */
void variables_copy_end(struct variables_copy *copy, struct variables *variables);
void variables_copy_release(struct variables_copy *copy);

/* Elements first … first + count - 1, of parameters and slots, are about to be written. */
void variables_keep(struct variables *variables, int64_t first, int64_t count);

#endif
