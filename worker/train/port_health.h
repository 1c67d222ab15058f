/* SPDX-License-Identifier: Apache-2.0
 *
 * What the ports of this process say about its health: connections of strangers
 * for the status document, and whether the process is live.
 *
 * It is not live when a thread that accepts connections or hears messages has stood
 * still for ten minutes, or when no connection could be accepted for so long because
 * the process has no descriptor left. Only a new process mends either. Nothing else
 * counts: a process that computes, loads, saves, evaluates or waits for others is live
 * however long that takes (deadlines of its own end it where need be).
 */
#ifndef COXSWAIN_TRAIN_PORT_HEALTH_H
#define COXSWAIN_TRAIN_PORT_HEALTH_H

#include <stdbool.h>
#include <stddef.h>

#include "common/contract/status_document.h"

/* Fills refused_…: what was refused in the last ten seconds or more. Any thread. */
void port_health_fill(struct status_document *document);
/* False: `reason` says why not. Any thread. */
bool port_health_is_live(char *reason, size_t size);

#endif
