/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes that this process has given to others for sending, counted where they
 * leave: headers and payloads of links (TCP or shared memory) and of RPC
 * messages, without what the protocols below add.
 */
#ifndef COXSWAIN_COMM_TRAFFIC_H
#define COXSWAIN_COMM_TRAFFIC_H

#include <stddef.h>
#include <stdint.h>

/* From any thread. */
void traffic_count(size_t bytes);
/* Since the process started. */
int64_t traffic_sent(void);

#endif
