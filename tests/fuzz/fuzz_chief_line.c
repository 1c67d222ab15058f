/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "operator/cli/ui/history.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* A chief's log, which any container can have written, line by line into the curves of a job. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    SCOPED_FREE char *text = memory_copy_bytes((const char *)bytes, length);
    SCOPED_FREE struct history *history = memory_allocate(1, sizeof *history);
    char *rest = NULL;
    history_init(history);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        history_take_line(history, line);
    if (history->points.count > HISTORY_POINTS_MAX || history->tests.count > HISTORY_POINTS_MAX ||
        history->mark_count > HISTORY_MARKS_MAX || history->pace_count > HISTORY_PACES_MAX ||
        history->member_count > HISTORY_MEMBERS_MAX)
        abort();
    for (unsigned i = 0; i < history->pace_count; i++)
        if (history->paces[i].step < 0 || !isfinite(history->paces[i].step_ms))
            abort();
    json_free(history_json(history, 0));
    return 0;
}
