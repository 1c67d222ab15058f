/* SPDX-License-Identifier: Apache-2.0
 *
 * The number of what the members of a crew say to each other. It stands behind the
 * magic number of every kind of message, at the same place for ever, so that
 * processes of different versions notice it, and say so.
 */
#ifndef COXSWAIN_COMM_PROTOCOL_H
#define COXSWAIN_COMM_PROTOCOL_H

#include <stdint.h>

#include "common/error.h"

/* Raised with whatever all members of a crew must do alike: their messages, the transfer of gradients and state, how a batch
 * is shared out. Processes that differ in it do not form a crew. */
#define CREW_PROTOCOL 17u

/* Bytes before a message's own: the magic number and this one. */
#define CREW_PROTOCOL_HEAD 8
void crew_protocol_put(unsigned char *bytes, uint32_t magic);
/* Of a message whose check holds; ERROR_CORRUPT for another magic number; ERROR_UNSUPPORTED, with what to do, for another
 * protocol. */
int crew_protocol_check(const unsigned char *bytes, uint32_t magic, struct error *error);

#endif
