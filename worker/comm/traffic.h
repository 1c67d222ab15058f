/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the bytes that this process sends to other processes of the job, for the bytes per step in the status. Headers
 * and payloads on links (TCP or shared memory) and in RPC messages count; the overhead of the protocols below does not.
 */
#ifndef COXSWAIN_COMM_TRAFFIC_H
#define COXSWAIN_COMM_TRAFFIC_H

#include <stddef.h>
#include <stdint.h>

/* May be called from any thread. */
void traffic_count(size_t bytes);
/* Returns the number of bytes since the process started. */
int64_t traffic_sent(void);

#endif
