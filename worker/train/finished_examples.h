/* SPDX-License-Identifier: Apache-2.0
 *
 * Records in a checkpoint's manifest how many examples each worker of a PeerToPeer crew had
 * finished, as "finished":[1200,960]; the index is the worker's fixed place in the crew (its seat).
 * saving.c writes the list and restoring.c reads it.
 *
 * In PeerToPeer each worker visits the data in an order of its own and may continue while another
 * restores a checkpoint. From the counts, the strategy determines which examples both of them have
 * seen.
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
