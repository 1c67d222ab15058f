/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/log_position.h"

#include <stdio.h>
#include <string.h>

#include "operator/cli/log_lines.h"

static int compare_times(const char *left, const char *right)
{
    const struct log_text a = {.text = left, .end = left + strlen(left)},
                          b = {.text = right, .end = right + strlen(right)};
    return log_time_compare(&a, &b);
}

bool log_position_take(struct log_position *position, const char *line, size_t length)
{
    char time[LOG_TIME_MAX];
    snprintf(time, sizeof time, "%.*s", (int)(length < sizeof time ? length : sizeof time - 1), length > 0 ? line : "");
    time[strcspn(time, " ")] = '\0';
    int order = *position->time ? compare_times(time, position->time) : 1;
    if (position->repeats && (order < 0 || (order == 0 && position->repeated++ < position->same)))
        return false;
    position->repeats = false;
    position->same = order == 0 ? position->same + 1 : 1;
    memcpy(position->time, time, sizeof time);
    return true;
}

void log_position_cut(struct log_position *position)
{
    position->repeats = *position->time != '\0';
    position->repeated = 0;
}

bool log_end_is_same(struct log_end *end, const struct log_position *position, size_t partial_bytes)
{
    bool brought_all = !position->repeats || position->repeated >= position->same;
    bool is_same = end->known && brought_all && end->same == position->same && end->partial_bytes == partial_bytes &&
                   strcmp(end->time, position->time) == 0;
    *end = (struct log_end){.known = true, .same = position->same, .partial_bytes = partial_bytes};
    memcpy(end->time, position->time, sizeof end->time);
    return is_same;
}

const char *log_position_since(const struct log_position *position)
{
    return *position->time ? position->time : NULL;
}
