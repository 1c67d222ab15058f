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
    uint64_t refused;   /* connections closed because they had not proven themselves, evicted ones included */
    uint64_t door_full; /* connections closed early because newer ones needed their place or their descriptor */
};

/* `reason` continues "refused a connection: ", must hold no bytes that the stranger chose. */
void strangers_refuse(enum stranger_port port, const union socket_address *address, const char *reason);
/* The same for a connection that had to make room. */
void strangers_evict(enum stranger_port port, const union socket_address *address);

/* Since the process started. */
struct stranger_counts strangers_count(enum stranger_port port);

#define STRANGERS_REASON_MAX 160

/* What was refused in some time, at all ports. */
struct stranger_summary {
    uint64_t refused;
    uint64_t from_worst;          /* of these from `worst`; may be counted too high where there are many addresses */
    char worst[INET6_ADDRSTRLEN]; /* the address with the most refusals, without port; "": there was none */
    enum stranger_port port;      /* which port it tried last, */
    char reason[STRANGERS_REASON_MAX]; /* and why it was refused there */
};

/* Since the last call. */
void strangers_take(struct stranger_summary *ret_summary);
const char *stranger_port_name(enum stranger_port port);

#endif
