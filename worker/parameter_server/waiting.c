/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/waiting.h"

#include <stdio.h>
#include <string.h>

#define ABSENT_MS 2000
#define BUSY_MS 30000

int64_t waiting_patience_ms(int64_t override_ms, bool is_connected)
{
    if (override_ms > 0)
        return override_ms;
    return is_connected ? BUSY_MS : ABSENT_MS;
}

void waiting_name(const char *role, unsigned index, const struct crew_seat *seat, char name[WAITING_NAME_MAX])
{
    if (seat == NULL || seat->host == NULL)
        snprintf(name, WAITING_NAME_MAX, "%s %u", role, index);
    else
        snprintf(name, WAITING_NAME_MAX, "%s %u (%s:%u)", role, index, seat->host, seat->port);
}

void waiting_add(char text[PS_TEXT_MAX], const char *name, const char *detail)
{
    size_t length = strlen(text);
    snprintf(text + length, PS_TEXT_MAX - length, "%s%s%s%s", length > 0 ? ", for " : "waiting for ", name,
             detail[0] && detail[0] != ',' ? " " : "", detail);
}
