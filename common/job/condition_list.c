/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/condition_list.h"

#include <string.h>

#include "common/clock.h"
#include "common/job/enum_words.h"

/* In the order of enum condition_status. */
static const char *const condition_status_words[] = {"", "False", "True", "Unknown", NULL};

static size_t count_of(const char *const *words)
{
    size_t count = 0;
    while (words[count])
        count++;
    return count;
}

/* ---------------------------------------------------------------- read */

static void condition_read(const struct json *object, struct condition *condition, struct arena *arena)
{
    int status = words_find(condition_status_words, json_string_at(object, "status", ""));
    condition->status = status < 0 ? CONDITION_ABSENT : (enum condition_status)status;
    condition->reason = arena_copy_string(arena, json_string_at(object, "reason", ""));
    condition->message = arena_copy_string(arena, json_string_at(object, "message", ""));
    condition->observed_generation = json_integer_at(object, "observedGeneration", 0);
    clock_parse(json_string_at(object, "lastTransitionTime", ""), &condition->last_transition_ms);
}

/* Other controllers and people may say something of a job as well; a status is written as a whole. */
#define OTHERS_MAX (256 * 1024)

static const char *others_read(const struct json *others, struct arena *arena)
{
    SCOPED_BUFFER text = BUFFER_INIT(OTHERS_MAX);
    return json_count(others) > 0 && json_print(others, &text, NULL) == 0 ? arena_copy_string(arena, buffer_text(&text))
                                                                          : NULL;
}

const char *condition_list_read(const struct json *list, const char *const *words, struct condition *conditions,
                                struct arena *arena)
{
    SCOPED_JSON *others = json_new_array();
    memset(conditions, 0, count_of(words) * sizeof *conditions);
    for (const struct json *item = json_first(list); item; item = json_next(item)) {
        const char *name = json_string_at(item, "type", "");
        int type = words_find(words, name);
        if (type >= 0)
            condition_read(item, &conditions[type], arena);
        else if (*name != '\0')
            json_append(others, json_copy(item));
    }
    return others_read(others, arena);
}

/* ---------------------------------------------------------------- write */

static struct json *condition_to_json(const char *type, const struct condition *condition)
{
    char time[CLOCK_TEXT_MAX];
    clock_format_seconds(condition->last_transition_ms, time);
    struct json *object = json_new_object();
    json_set_string(object, "type", type);
    json_set_string(object, "status", condition_status_words[condition->status]);
    json_set_integer(object, "observedGeneration", condition->observed_generation);
    json_set_string(object, "lastTransitionTime", time);
    json_set_string(object, "reason", condition->reason && *condition->reason ? condition->reason : "Unknown");
    json_set_string(object, "message", condition->message ? condition->message : "");
    return object;
}

/* The schema (fields.c) refuses a longer list, and all of the status with it: others get what our own leave. */
void condition_list_write(const struct condition *conditions, const char *const *words, const char *others,
                          struct json *object)
{
    size_t count = count_of(words);
    for (size_t type = 0; type < count; type++)
        if (conditions[type].status != CONDITION_ABSENT)
            json_append(json_set_array(object, "conditions"), condition_to_json(words[type], &conditions[type]));
    SCOPED_JSON *list = NULL;
    if (!others || json_parse(others, strlen(others), OTHERS_MAX, &list, NULL) < 0)
        return;
    size_t room = JOB_CONDITIONS_MAX - count;
    for (const struct json *item = json_first(list); item && room-- > 0; item = json_next(item))
        json_append(json_set_array(object, "conditions"), json_copy(item));
}
