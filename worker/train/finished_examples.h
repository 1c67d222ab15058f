/* SPDX-License-Identifier: Apache-2.0
 *
 * Records in a checkpoint how many examples each worker of a PeerToPeer crew had finished: in the
 * manifest's model, "finished":[1200,960], by seat. Each worker visits the data in an order of its
 * own; with these counts, a worker that restores the checkpoint and one that has trained on in the
 * meantime can determine which examples both of them have seen.
 */
#ifndef COXSWAIN_TRAIN_FINISHED_EXAMPLES_H
#define COXSWAIN_TRAIN_FINISHED_EXAMPLES_H

#include <stdint.h>

#include "common/json.h"
#include "worker/comm/collective.h"

/* Writes the counts into the manifest's `model`; writes nothing if all of them are 0. */
void finished_examples_describe(struct json *model, const int64_t counts[CREW_SIZE_MAX]);
/* Reads the counts. All are 0 if the manifest has none (other strategies, earlier releases) or an
 * invalid list. */
void finished_examples_read(const struct json *model, int64_t ret_counts[CREW_SIZE_MAX]);

#endif
