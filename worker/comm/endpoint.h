/* SPDX-License-Identifier: Apache-2.0
 *
 * The data port of a process: where other members' bulk connections arrive. It lives
 * as long as the process, so that its port can be announced once, at the join.
 *
 * Its thread (room.h) accepts all the time, also while the process trains, and keeps
 * strangers out; a connection whose other side has proved that it belongs to the crew
 * waits as an arrival until the mesh of its generation, or the lines, take it.
 */
#ifndef COXSWAIN_COMM_ENDPOINT_H
#define COXSWAIN_COMM_ENDPOINT_H

#include <stdint.h>

#include "common/error.h"
#include "worker/comm/frame.h"
#include "worker/comm/link.h"

#define ENDPOINT_ADDRESS_MAX 64
/* Arrivals that nobody has taken; the oldest goes for a new one. */
#define ENDPOINT_ARRIVALS_MAX 256

struct endpoint;

/* A connection of a member that waits for the answer to its greeting. */
struct arrival {
    struct link link;
    struct opening opening;
    struct greeting greeting;
};

/* Listens on a numeric address ("" or NULL: all interfaces). Port 0, or a port that is taken: any free one. */
int endpoint_open(const char *address, uint16_t port, struct endpoint **ret_endpoint, struct error *error);
/* Starts the thread, which does not survive a fork. Does nothing the second time. */
int endpoint_start(struct endpoint *endpoint, struct error *error);
void endpoint_free(struct endpoint *endpoint);
uint16_t endpoint_port(const struct endpoint *endpoint);

/* Readable while something has arrived that endpoint_take was not asked for since. */
int endpoint_descriptor(const struct endpoint *endpoint);
/* The oldest arrival of `newest` or an older generation; those of newer ones stay. False: there is none. The link is the caller's. */
bool endpoint_take(struct endpoint *endpoint, struct generation newest, struct arrival *ret_arrival);
/* Proves the crew's key to the dialler, and says how it goes on. */
void arrival_answer(struct arrival *arrival, enum greeting_answer answer);

#endif
