/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/finished_examples.h"

#include <string.h>

#define FINISHED "finished"

void finished_examples_describe(struct json *model, const int64_t counts[CREW_SIZE_MAX])
{
    unsigned seats = CREW_SIZE_MAX;
    while (seats > 0 && counts[seats - 1] == 0)
        seats--;
    if (seats == 0)
        return;
    struct json *list = json_set_array(model, FINISHED);
    for (unsigned seat = 0; seat < seats; seat++)
        json_append(list, json_new_integer(counts[seat]));
}

static bool read_list(const struct json *list, int64_t ret_counts[CREW_SIZE_MAX])
{
    unsigned seat = 0;
    if (json_type(list) != JSON_ARRAY || json_count(list) > CREW_SIZE_MAX)
        return false;
    for (const struct json *count = json_first(list); count != NULL; count = json_next(count)) {
        ret_counts[seat] = json_integer(count, -1);
        if (ret_counts[seat++] < 0)
            return false;
    }
    return true;
}

void finished_examples_read(const struct json *model, int64_t ret_counts[CREW_SIZE_MAX])
{
    memset(ret_counts, 0, CREW_SIZE_MAX * sizeof(*ret_counts));
    if (!read_list(json_member(model, FINISHED), ret_counts))
        memset(ret_counts, 0, CREW_SIZE_MAX * sizeof(*ret_counts));
}
