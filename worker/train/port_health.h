/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells the status server two things about this process's ports: how many connections were refused
 * because the peer did not prove that it belongs to the crew (for the status document), and whether
 * the process is live (for the liveness probe, /healthz/live).
 *
 * The process is not live if a thread that accepts connections or receives messages has made no
 * progress for ten minutes, or if for that long no connection could be accepted because the process
 * has no free file descriptor. Only a new process repairs either. Nothing else counts: a process
 * that computes, loads, saves, evaluates or waits for others is live however long that takes (other
 * deadlines end it if necessary).
 */
#ifndef COXSWAIN_TRAIN_PORT_HEALTH_H
#define COXSWAIN_TRAIN_PORT_HEALTH_H

#include <stdbool.h>
#include <stddef.h>

#include "common/contract/status_document.h"

/* Fills the refused_… fields with what was refused in the last ten seconds or more. May be called
 * from any thread. */
void port_health_fill(struct status_document *document);
/* Returns whether the process is live; if not, writes why into `reason`. May be called from any
 * thread. */
bool port_health_is_live(char *reason, size_t size);

#endif
