/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes gRPC's own messages to our log. They may quote bytes that came over a connection, so they are escaped, and cut
 * after a few hundred bytes.
 */
#ifndef COXSWAIN_COMM_RPC_LOG_H
#define COXSWAIN_COMM_RPC_LOG_H

/* Makes gRPC write its messages to our log. */
void rpc_log_set_up(void);

/* Copies a text, with everything but printable ASCII escaped, and with "…" at the end if it was too long. */
#define RPC_LOG_MAX 512
void rpc_log_escape(const char *text, char ret_escaped[RPC_LOG_MAX]);

#endif
