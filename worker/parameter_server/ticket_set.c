/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/ticket_set.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

void ticket_set_release(struct ticket_set *set)
{
    free(set->above);
    *set = (struct ticket_set){0};
}

void ticket_set_reset(struct ticket_set *set, int64_t low)
{
    set->low = low;
    set->above_count = 0;
}

static void reserve(struct ticket_set *set, unsigned count)
{
    if (count <= set->above_capacity)
        return;
    set->above_capacity = count > 2 * set->above_capacity ? count : 2 * set->above_capacity;
    set->above = memory_resize(set->above, set->above_capacity, sizeof *set->above);
}

void ticket_set_copy(struct ticket_set *to, const struct ticket_set *from)
{
    ticket_set_reset(to, from->low);
    reserve(to, from->above_count);
    if (from->above_count > 0)
        memcpy(to->above, from->above, from->above_count * sizeof *to->above);
    to->above_count = from->above_count;
}

/* The position of the first member above `low` that is not below `ticket`. */
static unsigned find(const struct ticket_set *set, int64_t ticket)
{
    unsigned first = 0, end = set->above_count;
    while (first < end) {
        unsigned middle = first + (end - first) / 2;
        if (set->above[middle] < ticket)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

bool ticket_set_has(const struct ticket_set *set, int64_t ticket)
{
    if (ticket < set->low)
        return true;
    unsigned at = find(set, ticket);
    return at < set->above_count && set->above[at] == ticket;
}

static void remove_first(struct ticket_set *set, unsigned count)
{
    set->above_count -= count;
    memmove(set->above, set->above + count, set->above_count * sizeof *set->above);
}

/* Raises `low` over what has joined it. */
static void settle(struct ticket_set *set)
{
    unsigned joined = 0;
    while (joined < set->above_count && set->above[joined] <= set->low) {
        if (set->above[joined] == set->low)
            set->low++;
        joined++;
    }
    if (joined > 0)
        remove_first(set, joined);
}

bool ticket_set_add(struct ticket_set *set, int64_t ticket)
{
    if (ticket_set_has(set, ticket))
        return false;
    unsigned at = find(set, ticket);
    reserve(set, set->above_count + 1);
    memmove(set->above + at + 1, set->above + at, (set->above_count - at) * sizeof *set->above);
    set->above[at] = ticket;
    set->above_count++;
    settle(set);
    return true;
}

void ticket_set_add_all(struct ticket_set *set, const struct ticket_set *more)
{
    if (more->low > set->low) {
        set->low = more->low;
        settle(set);
    }
    for (unsigned i = 0; i < more->above_count; i++)
        ticket_set_add(set, more->above[i]);
}

void ticket_set_intersect(struct ticket_set *set, const struct ticket_set *other)
{
    struct ticket_set both = {.low = set->low < other->low ? set->low : other->low};
    int64_t highest = set->low > other->low ? set->low : other->low;
    for (int64_t ticket = both.low; ticket < highest; ticket++)
        if (ticket_set_has(set, ticket) && ticket_set_has(other, ticket))
            ticket_set_add(&both, ticket);
    for (unsigned i = find(set, highest); i < set->above_count; i++)
        if (ticket_set_has(other, set->above[i]))
            ticket_set_add(&both, set->above[i]);
    ticket_set_release(set);
    *set = both;
}

int64_t ticket_set_end(const struct ticket_set *set)
{
    return set->above_count > 0 ? set->above[set->above_count - 1] + 1 : set->low;
}

int64_t ticket_set_count_missing(const struct ticket_set *set, const struct ticket_set *other)
{
    int64_t missing = 0;
    for (int64_t ticket = other->low; ticket < set->low; ticket++)
        missing += !ticket_set_has(other, ticket);
    for (unsigned i = 0; i < set->above_count; i++)
        missing += !ticket_set_has(other, set->above[i]);
    return missing;
}

struct json *ticket_set_to_json(const struct ticket_set *set)
{
    struct json *json = json_new_object();
    json_set_integer(json, "low", set->low);
    struct json *above = json_set(json, "above", json_new_array());
    for (unsigned i = 0; i < set->above_count; i++)
        json_append(above, json_new_integer(set->above[i]));
    return json;
}

int ticket_set_from_json(const struct json *json, struct ticket_set *set, struct error *error)
{
    int64_t last = json_integer_at(json, "low", -1);
    const struct json *above = json_member(json, "above");
    if (last < 0 || json_type(above) != JSON_ARRAY || json_count(above) > TICKET_SET_ABOVE_MAX)
        return error_set(error, ERROR_CORRUPT,
                         "the manifest's list of applied tickets is wrong: low must be a number of at least 0, above a "
                         "list of at most %d",
                         TICKET_SET_ABOVE_MAX);
    ticket_set_reset(set, last);
    for (const struct json *item = json_first(above); item; item = json_next(item)) {
        int64_t ticket = json_integer(item, -1);
        if (ticket <= last)
            return error_set(error, ERROR_CORRUPT, "a set of tickets is not in ascending order");
        ticket_set_add(set, ticket);
        last = ticket;
    }
    return 0;
}
