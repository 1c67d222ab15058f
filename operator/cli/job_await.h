/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches one job until something holds of it.
 */
#ifndef COXSWAIN_CLI_JOB_AWAIT_H
#define COXSWAIN_CLI_JOB_AWAIT_H

#include "operator/cli/cluster.h"

enum await_end { AWAIT_GOES_ON, AWAIT_HOLDS, AWAIT_NEVER /* it cannot hold any more */, AWAIT_TIMEOUT };

/* Asked at each change; `job` NULL: there is none of that name. */
typedef enum await_end await_question(const struct json *job, const void *context);

/* `timeout_ms` -1: for ever. Interrupted, it ends with AWAIT_GOES_ON. */
int job_await(struct cluster *cluster, const char *name, await_question *question, const void *context,
              int64_t timeout_ms, enum await_end *ret_end, struct error *error);

#endif
