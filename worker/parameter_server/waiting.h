/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats the text, for the status and the log, that says which members of a ParameterServer crew a process waits for,
 * such as "waiting for ps 1 (10.0.0.7:2222)". A member is named only once the wait for it has lasted a while. The chief,
 * the servers and the workers' links to them use it.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_WAITING_H
#define COXSWAIN_PARAMETER_SERVER_WAITING_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/coordination/member.h"
#include "worker/parameter_server/message.h"

/* Returns how long to wait before a member is named: longer if it is connected, since it may be busy,
 * than if it does not answer at all. `override_ms` (for tests) replaces both unless it is 0. */
int64_t waiting_patience_ms(int64_t override_ms, bool is_connected);

#define WAITING_NAME_MAX 128
/* Formats a name: "ps 1 (10.0.0.7:2222)"; "ps 1" for a seat without a host. */
void waiting_name(const char *role, unsigned index, const struct crew_seat *seat, char name[WAITING_NAME_MAX]);
/* Appends "waiting for NAME DETAIL" to `text`, or ", for NAME DETAIL" if `text` is not empty. There is
 * no space before DETAIL if it is empty or begins with a comma. */
void waiting_add(char text[PS_TEXT_MAX], const char *name, const char *detail);

#endif
