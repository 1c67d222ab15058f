/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the CPU device's operations on a team of threads, one operation at a time. The caller cuts
 * an operation into numbered pieces, by its shapes alone, so that the number of threads never
 * changes a result's bits; team_run returns when all pieces are done. Each thread begins with its
 * own range of the pieces (the same each time, so that caches stay warm) and then helps the others.
 */
#ifndef COXSWAIN_DEVICE_CPU_TEAM_H
#define COXSWAIN_DEVICE_CPU_TEAM_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct team;

/* Starts a team. `threads` includes the caller of team_run; each thread has `scratch_bytes` of
 * its own (64-byte aligned). */
int team_new(int threads, size_t scratch_bytes, struct team **ret_team, struct error *error);
void team_free(struct team *team);
int team_threads(const struct team *team);

/* Runs pieces 0 to pieces - 1, each once, and returns when all are done. Concurrent callers take
 * turns. */
typedef void team_piece(const void *context, int64_t piece, void *scratch);
void team_run(struct team *team, int64_t pieces, team_piece *function, const void *context);

#endif
