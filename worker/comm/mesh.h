/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects every rank of a generation with every other, for the group that collective_connect opens (collective.h). The
 * higher rank dials the lower one and sends a greeting with job, generation and both ranks (frame.h). The lower rank's
 * answer says whether bytes will go by TCP or shared memory, or that the dialler's generation is superseded. If a
 * connection fails, the dialler dials again until the deadline.
 */
#ifndef COXSWAIN_COMM_MESH_H
#define COXSWAIN_COMM_MESH_H

#include <stdint.h>

#include "common/error.h"
#include "worker/comm/collective.h"
#include "worker/comm/link.h"

/* Fills `links` by rank; the own one stays empty. ERROR_CANCELLED as soon as the descriptor `cancel` is readable; ERROR_TIMEOUT after
 * `deadline_ms`, naming the missing ranks; ERROR_STALE if a peer knows a newer generation. After a failure, the caller must release the
 * links made so far. */
int mesh_connect(const struct collective_options *options, int cancel, int64_t deadline_ms, struct link *links,
                 struct error *error);

#endif
