/* SPDX-License-Identifier: Apache-2.0
 *
 * How far workers of servers with a bound are ahead of each other, by what they and their chiefs are seen to do: by a count of its
 * own beside the ticket scheduler's, over all chiefs of a history.
 */
#ifndef COXSWAIN_UNIT_WORKER_PARAMETER_SERVER_HISTORY_CLOCKS_H
#define COXSWAIN_UNIT_WORKER_PARAMETER_SERVER_HISTORY_CLOCKS_H

#include <stdint.h>

#define HISTORY_WORKERS 3

/* What the chief did (enum ticket_fate), and what workers did in between, in order. */
enum { CHIEF_STARTED = 100, CREW_GOES_BACK, WORKER_STARTED, WORK_BEGUN, WORK_PUSHED };
struct history_entry {
    int what;
    unsigned worker;
    int64_t ticket;
    int64_t at_ms;
};

struct clocks_found {
    int64_t furthest;  /* the most that anybody was ahead of the slowest */
    int64_t behind;    /* the most that somebody was let in behind the highest clock of what is in the servers */
    int64_t waited_ms; /* shortest wait for an absent worker before the first ticket of a chief; -1: none */
};

/* All of the history so far; a ticket that two have at once, by the present chief's word, is a failure of the test. */
struct clocks_found history_clocks_read(const struct history_entry *history, unsigned count);

#endif
