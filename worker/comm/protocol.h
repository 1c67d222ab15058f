/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the version number of the protocol that the worker's processes speak with each other, and checks it in
 * received messages. The number follows the magic number of every kind of message and must stay at that place in all
 * versions, so that processes of different versions can detect and report the difference instead of misreading each
 * other.
 */
#ifndef COXSWAIN_COMM_PROTOCOL_H
#define COXSWAIN_COMM_PROTOCOL_H

#include <stdint.h>

#include "common/error.h"

/* The protocol's number. Raise it with every change that all members of a crew must have in common: the formats of messages, the transfer of
 * gradients and state, the division of a batch. Processes with different numbers do not form a crew. */
#define CREW_PROTOCOL 19u

/* Bytes of the magic number and the protocol's number. */
#define CREW_PROTOCOL_HEAD 8
/* Writes them, little-endian. */
void crew_protocol_put(unsigned char *bytes, uint32_t magic);
/* Checks the head of a message whose checksum is right. ERROR_CORRUPT if the magic number differs; ERROR_UNSUPPORTED, with a message that says
 * what to update, if the protocol's number differs. */
int crew_protocol_check(const unsigned char *bytes, uint32_t magic, struct error *error);

#endif
