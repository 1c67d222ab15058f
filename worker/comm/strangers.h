/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts and logs the connections that a worker's ports refuse: callers that do
 * not belong to the crew. Any thread may call these functions.
 *
 * Each port writes at most one log line every 10 s, with the address and the
 * reason of the latest refusal and the number of refusals that had no line.
 */
#ifndef COXSWAIN_COMM_STRANGERS_H
#define COXSWAIN_COMM_STRANGERS_H

#include <stdint.h>

#include "worker/comm/socket_address.h"

enum stranger_port { STRANGER_CONTROL_PORT, STRANGER_DATA_PORT };

struct stranger_counts {
    uint64_t
        refused; /* connections closed because they did not prove that they belong to the crew; includes door_full */
    uint64_t
        door_full; /* those closed before their time was over, because newer ones needed their place or descriptor */
};

/* Counts a refusal, and may log it. `reason` completes the sentence "refused a connection: …"; it must not contain bytes that the other side
 * chose. */
void strangers_refuse(enum stranger_port port, const union socket_address *address, const char *reason);
/* Counts a connection that was closed to make room for a newer one, and may log it. */
void strangers_evict(enum stranger_port port, const union socket_address *address);

/* Returns the counts since the process started. */
struct stranger_counts strangers_count(enum stranger_port port);

#define STRANGERS_REASON_MAX 160

/* The refusals at all ports during some time. */
struct stranger_summary {
    uint64_t refused;
    uint64_t from_worst;          /* how many of them came from `worst`; may be too high if there are many addresses */
    char worst[INET6_ADDRSTRLEN]; /* the address with the most refusals, without port; "": no refusals */
    enum stranger_port port;      /* the port to which `worst` connected last */
    char reason[STRANGERS_REASON_MAX]; /* why it was refused there */
};

/* Returns the summary of the time since the last call. */
void strangers_take(struct stranger_summary *ret_summary);
const char *stranger_port_name(enum stranger_port port);

#endif
