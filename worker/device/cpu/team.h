/* SPDX-License-Identifier: Apache-2.0
 *
 * A team of threads that runs one operation at a time, cut into numbered pieces.
 * The pieces are chosen by the operation from its shapes alone; which thread runs
 * which piece never matters to the result. Each thread begins with its own share
 * (the same share each time, so that caches stay warm) and then helps others.
 */
#ifndef COXSWAIN_DEVICE_CPU_TEAM_H
#define COXSWAIN_DEVICE_CPU_TEAM_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct team;

/* `threads` counts the caller of team_run; each thread has `scratch_bytes` of its own (64-byte aligned). */
int team_new(int threads, size_t scratch_bytes, struct team **ret_team, struct error *error);
void team_free(struct team *team);
int team_threads(const struct team *team);

/* Runs pieces 0 .. pieces-1, each once, and returns when all are done. Callers of different threads take turns. */
typedef void team_piece(const void *context, int64_t piece, void *scratch);
void team_run(struct team *team, int64_t pieces, team_piece *function, const void *context);

#endif
