/* SPDX-License-Identifier: Apache-2.0
 *
 * How many examples each worker of a PeerToPeer crew had finished when a checkpoint
 * was made: in the manifest's model, "finished":[1200,960], by seat. Each goes
 * through the data in an order of its own, so that who restores the checkpoint and
 * who has trained on meanwhile can tell which of them they both have.
 */
#ifndef COXSWAIN_TRAIN_FINISHED_EXAMPLES_H
#define COXSWAIN_TRAIN_FINISHED_EXAMPLES_H

#include <stdint.h>

#include "common/json.h"
#include "worker/comm/collective.h"

/* Into the manifest's `model`; nothing where nobody has finished any. */
void finished_examples_describe(struct json *model, const int64_t counts[CREW_SIZE_MAX]);
/* All 0 where the manifest does not tell, as those of other strategies and of earlier releases, or tells no counts. */
void finished_examples_read(const struct json *model, int64_t ret_counts[CREW_SIZE_MAX]);

#endif
