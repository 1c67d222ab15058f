/* SPDX-License-Identifier: Apache-2.0
 *
 * What `cox ui` spends on the curves of a long run: 1,000,000 lines of a chief's log, and their curves as JSON.
 *
 *     bench_history [LINES]    (1000000)
 *
 * Aim: less than 5 microseconds a line, and less than 200 KB for the page, however long the run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/buffer.h"
#include "common/memory.h"
#include "operator/cli/ui/history.h"

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int count, char **words)
{
    long lines = count > 1 ? strtol(words[1], NULL, 10) : 1000000;
    SCOPED_FREE struct history *history = memory_allocate(1, sizeof *history);
    SCOPED_BUFFER text = BUFFER_INIT(16 * 1024 * 1024);
    history_init(history);
    history_begin_log(history);
    double begun = now_s(), made = 0;
    for (long step = 1; step <= lines; step++) {
        char line[128];
        double before = now_s();
        snprintf(line, sizeof line, "step %7ld/%ld  loss %.4f   |g| 0.9  lr 2.00e-04  2.1 ms  %ld examples/s  2m left",
                 step, lines, 2.0 / (double)step + (double)(step * 7919 % 1000) / 1e5, 5000 + step * 31 % 500);
        made += now_s() - before;
        history_take_line(history, line);
    }
    double taken = now_s() - begun - made, written = now_s();
    SCOPED_JSON *document = history_json(history, 0);
    if (json_print(document, &text, NULL) < 0)
        return 1;
    printf("%ld lines: %.2f s, %.2f us a line; %zu KB of memory; %u points, %zu KB of JSON in %.1f ms\n", lines, taken,
           1e6 * taken / (double)lines, sizeof *history / 1024, history->points.count, text.length / 1024,
           1e3 * (now_s() - written));
    return 0;
}
