/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy of a server's values as they are at one moment, made while the server goes
 * on: they are cut into segments, and each is copied before the first update since
 * then writes to it, or when the thread that wants the copy comes to it, whichever
 * is sooner. So nobody waits for the whole, and values are handed out meanwhile.
 *
 *     variables_copy_begin       the moment; on the thread of the updates
 *     variables_copy_complete    on any one other thread; then `values` may be read
 *     variables_copy_end         on the thread of the updates, after that
 *
 * All writers of the values call variables_keep before they write.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_VARIABLES_COPY_H
#define COXSWAIN_PARAMETER_SERVER_VARIABLES_COPY_H

#include <stdatomic.h>

#include "worker/parameter_server/variables.h"

/* Zeroed memory is one that has not begun. It keeps its memory for the next time. */
struct variables_copy {
    struct variables values; /* parameters, slots and table are its own; shares and the like are not */
    const float *from[1 + OPTIMIZER_SLOTS_MAX];
    float *memory;
    size_t bytes;
    atomic_int *states; /* of the segments */
    int64_t segments;
};

/* ERROR_NO_SPACE. */
int variables_copy_begin(struct variables_copy *copy, struct variables *variables, struct error *error);
void variables_copy_complete(struct variables_copy *copy);
void variables_copy_end(struct variables_copy *copy, struct variables *variables);
void variables_copy_release(struct variables_copy *copy);

/* Elements first … first + count - 1, of parameters and slots, are about to be written. */
void variables_keep(struct variables *variables, int64_t first, int64_t count);

#endif
