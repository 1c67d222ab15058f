/* SPDX-License-Identifier: Apache-2.0
 *
 * How people read of whoever is waited for in a crew of parameter servers: by
 * role, index and address. Nobody is named before it has been waited for a while.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_WAITING_H
#define COXSWAIN_PARAMETER_SERVER_WAITING_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/coordination/member.h"
#include "worker/parameter_server/message.h"

/* How long somebody is waited for before it is named: who does not answer or beat at all, and who is there and may just be busy
 * with what was asked. `told` (for tests) takes the place of both, unless it is 0. */
int64_t waiting_patience_ms(int64_t told, bool is_there);

#define WAITING_NAME_MAX 128
/* "ps 1 (10.0.0.7:2222)"; a seat without a host: "ps 1". */
void waiting_name(const char *role, unsigned index, const struct crew_seat *seat, char name[WAITING_NAME_MAX]);
/* "waiting for ps 1 (…) WHAT" (or "…)WHAT", where that begins with a comma) behind what `text` says already. */
void waiting_add(char text[PS_TEXT_MAX], const char *name, const char *what);

#endif
