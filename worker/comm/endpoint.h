/* SPDX-License-Identifier: Apache-2.0
 *
 * The listening socket of a rank's data plane. It lives as long as the process,
 * so that its port can be announced once, at the join; each generation's group
 * takes its connections from it.
 */
#ifndef COXSWAIN_COMM_ENDPOINT_H
#define COXSWAIN_COMM_ENDPOINT_H

#include <stdint.h>

#include "common/error.h"

#define ENDPOINT_ADDRESS_MAX 64

struct endpoint;

/* Listens on a numeric address ("" or NULL: all interfaces). Port 0, or a port that is taken: any free one. */
int endpoint_open(const char *address, uint16_t port, struct endpoint **ret_endpoint, struct error *error);
void endpoint_free(struct endpoint *endpoint);
uint16_t endpoint_port(const struct endpoint *endpoint);
/* Non-blocking; ready to accept when readable. */
int endpoint_descriptor(const struct endpoint *endpoint);

#endif
