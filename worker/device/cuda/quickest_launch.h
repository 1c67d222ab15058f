/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of several ways to launch something takes the GPU the least time. Each is
 * launched once to warm up and then in several batches; their median counts. An
 * event behind each launch would be a part of what it times: it stands behind a
 * batch.
 */
#ifndef COXSWAIN_DEVICE_CUDA_QUICKEST_LAUNCH_H
#define COXSWAIN_DEVICE_CUDA_QUICKEST_LAUNCH_H

#include "worker/device/algorithm_record.h"
#include "worker/device/cuda/cuda_device.h"

/* Launches way number `way` once; false: it is refused, or the stream has failed. */
typedef bool quickest_way(const struct cuda_call *call, const void *context, int way);

/* The number of the quickest of `count`, of those that there was time for (ms, of which it takes some); -1: all were refused. Another
 * than the first has to be quicker by more than chance. */
int quickest_launch(const struct cuda_call *call, int count, quickest_way *way, const void *context, double *ms);

/* No more is to be tried: the time is over, or the record has no room. */
bool quickest_is_over(const struct algorithm_search *search, enum algorithm_kind kind);
/* Which of those that were tried it is goes into the record and the tally. */
void quickest_note(struct algorithm_search *search, const struct algorithm_choice *choice, bool is_first);

#endif
