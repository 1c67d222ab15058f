/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/index_set.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define WORD_BITS 64
#define RANGE_TEXT_MAX 44 /* ",<19 digits>-<19 digits>" */

struct index_set index_set_make(struct arena *arena, int64_t size)
{
    return (struct index_set){
        .words = arena_allocate(arena, (size_t)(size + WORD_BITS - 1) / WORD_BITS, sizeof(uint64_t)),
        .size = size,
    };
}

bool index_set_has(const struct index_set *set, int64_t index)
{
    return index >= 0 && index < set->size && set->words[index / WORD_BITS] >> (index % WORD_BITS) & 1;
}

void index_set_add(struct index_set *set, int64_t index)
{
    if (index >= 0 && index < set->size)
        set->words[index / WORD_BITS] |= UINT64_C(1) << (index % WORD_BITS);
}

void index_set_remove(struct index_set *set, int64_t index)
{
    if (index >= 0 && index < set->size)
        set->words[index / WORD_BITS] &= ~(UINT64_C(1) << (index % WORD_BITS));
}

/* One "3" or "3-7"; returns what follows, NULL when it is neither. */
static const char *range_parse(const char *text, int64_t *ret_first, int64_t *ret_last)
{
    char *end;
    if (*text < '0' || *text > '9')
        return NULL;
    *ret_first = *ret_last = strtoll(text, &end, 10);
    if (*end != '-')
        return end;
    if (end[1] < '0' || end[1] > '9')
        return NULL;
    *ret_last = strtoll(end + 1, &end, 10);
    return end;
}

void index_set_parse(struct index_set *set, const char *text)
{
    int64_t first, last;
    while (text && (text = range_parse(text, &first, &last)) != NULL) {
        for (int64_t i = first; i <= last && i < set->size; i++)
            index_set_add(set, i);
        text = *text == ',' ? text + 1 : NULL;
    }
}

static int64_t range_end(const struct index_set *set, int64_t first)
{
    while (index_set_has(set, first + 1))
        first++;
    return first;
}

/* Returns the first member that is not below `index`; `size` if there is none. */
static int64_t next_member(const struct index_set *set, int64_t index)
{
    while (index < set->size) {
        uint64_t rest = set->words[index / WORD_BITS] >> (index % WORD_BITS);
        if (rest != 0)
            return index + __builtin_ctzll(rest);
        index += WORD_BITS - index % WORD_BITS;
    }
    return set->size;
}

static unsigned range_count(const struct index_set *set)
{
    unsigned count = 0;
    for (int64_t i = next_member(set, 0); i < set->size; i = next_member(set, range_end(set, i) + 1))
        count++;
    return count;
}

const char *index_set_print(const struct index_set *set, struct arena *arena)
{
    unsigned count = range_count(set);
    if (count == 0)
        return NULL;
    size_t size = (size_t)count * RANGE_TEXT_MAX, used = 0;
    char *text = arena_allocate(arena, size, 1);
    for (int64_t first = next_member(set, 0), last; first < set->size; first = next_member(set, last + 1)) {
        last = range_end(set, first);
        const char *comma = used ? "," : "";
        used += (size_t)(last > first ? snprintf(text + used, size - used, "%s%" PRId64 "-%" PRId64, comma, first, last)
                                      : snprintf(text + used, size - used, "%s%" PRId64, comma, first));
        first = last;
    }
    return text;
}
