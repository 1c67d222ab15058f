/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects every rank of a generation with every other. The higher rank dials the
 * lower one and greets it with job, generation and both ranks (frame.h); the answer
 * says how bytes will travel, or that the dialler's generation is superseded. A rank
 * that dials before the other is there waits for its answer, and dials again.
 */
#ifndef COXSWAIN_COMM_MESH_H
#define COXSWAIN_COMM_MESH_H

#include <stdint.h>

#include "common/error.h"
#include "worker/comm/collective.h"
#include "worker/comm/link.h"

/* Fills `links` (by rank; the own one stays empty). Returns ERROR_CANCELLED as soon as `cancel` (a descriptor) is readable,
 * ERROR_TIMEOUT after `deadline_ms` naming who is missing, ERROR_STALE when a peer says so. On failure the links made so far are
 * still to be released. */
int mesh_connect(const struct collective_options *options, int cancel, int64_t deadline_ms, struct link *links,
                 struct error *error);

#endif
