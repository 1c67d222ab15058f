/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the data port of a process, on which it accepts data connections from other members. The
 * port stays open as long as the process lives, so that its number needs to be announced only once,
 * at the join.
 *
 * Its thread (crew_listener.h) accepts connections at all times, also while the process trains, and
 * closes those that do not prove that they belong to the crew. A connection that has proved it is
 * kept as an arrival until the code that expects it takes it: the mesh of links of its generation
 * (mesh.h), or a parameter server's bulk connections (bulk_connection.h).
 */
#ifndef COXSWAIN_COMM_ENDPOINT_H
#define COXSWAIN_COMM_ENDPOINT_H

#include <stdint.h>

#include "common/error.h"
#include "worker/comm/frame.h"
#include "worker/comm/link.h"

#define ENDPOINT_ADDRESS_MAX 64
/* Most arrivals that wait to be taken; a further one replaces the oldest. */
#define ENDPOINT_ARRIVALS_MAX 256

struct endpoint;

/* A member's connection that waits for the answer to its greeting. */
struct arrival {
    struct link link;
    struct opening opening;
    struct greeting greeting;
};

/* Listens on a numeric address ("" or NULL: all interfaces). Port 0, or a port in use: any free one. */
int endpoint_open(const char *address, uint16_t port, struct endpoint **ret_endpoint, struct error *error);
/* Starts the thread, which does not survive a fork. Does nothing the second time. */
int endpoint_start(struct endpoint *endpoint, struct error *error);
void endpoint_free(struct endpoint *endpoint);
uint16_t endpoint_port(const struct endpoint *endpoint);

/* Returns a descriptor that becomes readable when a connection arrives; endpoint_take resets it. */
int endpoint_descriptor(const struct endpoint *endpoint);
/* Takes the oldest arrival of generation `newest` or an older one; the caller then owns its link. Arrivals of newer generations stay.
 * Returns false if there is none. */
bool endpoint_take(struct endpoint *endpoint, struct generation newest, struct arrival *ret_arrival);
/* Sends the answer to the dialler's greeting, with a proof of the crew's key. */
void arrival_answer(struct arrival *arrival, enum greeting_answer answer);

#endif
