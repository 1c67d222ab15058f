/* SPDX-License-Identifier: Apache-2.0
 *
 * What a job waits for, in one sentence: the pod, the event, the quota, the
 * person. Pure.
 */
#ifndef COXSWAIN_CLI_WHY_H
#define COXSWAIN_CLI_WHY_H

#include "common/buffer.h"
#include "common/json.h"

#define WHY_MAX (16 * 1024)

/* `pods` and `events` are arrays: the job's pods, the events about them (events.k8s.io/v1). */
struct why_input {
    const struct json *job, *pods, *events;
    int64_t now_ms;
};

/* The sentence, without a newline. */
void why_print(const struct why_input *input, struct buffer *out);

#endif
