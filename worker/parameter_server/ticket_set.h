/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds a set of tickets (numbers of shares of batches) that has all tickets below a number, `low`, and a few above it.
 * It records the tickets whose updates a parameter server has applied, by which a repeated update is recognised, and
 * those that the chief knows to be finished. A checkpoint contains it as JSON.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_TICKET_SET_H
#define COXSWAIN_PARAMETER_SERVER_TICKET_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/json.h"

/* Most tickets above `low`. A larger set read from a peer or a file is refused. */
#define TICKET_SET_ABOVE_MAX 65536

struct ticket_set {
    int64_t low;
    int64_t *above; /* ascending, all > low */
    unsigned above_count, above_capacity;
};

/* Frees the set's memory. Zeroed memory is an empty set. */
void ticket_set_release(struct ticket_set *set);
/* Makes the set contain all tickets below `low` and no others. */
void ticket_set_reset(struct ticket_set *set, int64_t low);
void ticket_set_copy(struct ticket_set *to, const struct ticket_set *from);

bool ticket_set_has(const struct ticket_set *set, int64_t ticket);
/* Adds a ticket. Returns false if it was in the set already. */
bool ticket_set_add(struct ticket_set *set, int64_t ticket);
void ticket_set_add_all(struct ticket_set *set, const struct ticket_set *more);
/* Removes the tickets that are not in `other`. */
void ticket_set_intersect(struct ticket_set *set, const struct ticket_set *other);
/* Returns one above the highest ticket. */
int64_t ticket_set_end(const struct ticket_set *set);
/* Counts the tickets of `set` that are not in `other`. */
int64_t ticket_set_count_missing(const struct ticket_set *set, const struct ticket_set *other);

/* Returns the set as {"low":120,"above":[122,125]}. The caller frees it. */
struct json *ticket_set_to_json(const struct ticket_set *set);
/* Reads what ticket_set_to_json returns into a set, which the caller releases, also after a failure. ERROR_CORRUPT for anything else. */
int ticket_set_from_json(const struct json *json, struct ticket_set *set, struct error *error);

#endif
