/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of batch tickets that is nearly a prefix: all below `low`, and a few
 * above it. What a server has applied, what the chief knows to be finished.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_TICKET_SET_H
#define COXSWAIN_PARAMETER_SERVER_TICKET_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/json.h"

/* More holes than this are never kept: a set that reads so from outside is refused. */
#define TICKET_SET_ABOVE_MAX 65536

struct ticket_set {
    int64_t low;
    int64_t *above; /* ascending, all > low */
    unsigned above_count, above_capacity;
};

/* Zeroed memory is the set of no ticket. */
void ticket_set_release(struct ticket_set *set);
/* All below `low` and nothing else. */
void ticket_set_reset(struct ticket_set *set, int64_t low);
void ticket_set_copy(struct ticket_set *to, const struct ticket_set *from);

bool ticket_set_has(const struct ticket_set *set, int64_t ticket);
/* False when it was in already. */
bool ticket_set_add(struct ticket_set *set, int64_t ticket);
void ticket_set_add_all(struct ticket_set *set, const struct ticket_set *more);
/* Keeps what is in both. */
void ticket_set_intersect(struct ticket_set *set, const struct ticket_set *other);
/* One above the highest member. */
int64_t ticket_set_end(const struct ticket_set *set);
/* How many of `set` are not in `other`. */
int64_t ticket_set_count_missing(const struct ticket_set *set, const struct ticket_set *other);

/* {"low":120,"above":[122,125]} */
struct json *ticket_set_to_json(const struct ticket_set *set);
/* ERROR_CORRUPT unless it is what ticket_set_to_json makes. */
int ticket_set_from_json(const struct json *json, struct ticket_set *set, struct error *error);

#endif
