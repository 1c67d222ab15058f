/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the texts, for the status and the log, that say which member of a parameter-server crew is waited for: by
 * role, index and address, such as "waiting for ps 1 (10.0.0.7:2222)". A member is named only after it has been waited
 * for a while. The chief, the servers and both kinds of links use it.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_WAITING_H
#define COXSWAIN_PARAMETER_SERVER_WAITING_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/coordination/member.h"
#include "worker/parameter_server/message.h"

/* Returns how long to wait before a member is named. It is shorter for one that does not answer at
 * all than for one that is connected (`is_there`) and may be busy. `told` (for tests) replaces both
 * unless it is 0. */
int64_t waiting_patience_ms(int64_t told, bool is_there);

#define WAITING_NAME_MAX 128
/* Formats a name: "ps 1 (10.0.0.7:2222)"; "ps 1" for a seat without a host. */
void waiting_name(const char *role, unsigned index, const struct crew_seat *seat, char name[WAITING_NAME_MAX]);
/* Appends "waiting for NAME WHAT" to `text`, or ", for NAME WHAT" if `text` is not empty. There is
 * no space before WHAT if it begins with a comma. */
void waiting_add(char text[PS_TEXT_MAX], const char *name, const char *what);

#endif
