/* SPDX-License-Identifier: Apache-2.0
 *
 * What the C twins of rules (rules.h) read an object by.
 */
#ifndef COXSWAIN_JOB_RULE_PARTS_H
#define COXSWAIN_JOB_RULE_PARTS_H

#include <stdbool.h>
#include <string.h>

#include "common/json.h"

static inline bool rule_has(const struct json *self, const char *path)
{
    return json_at(self, path) != NULL;
}

static inline bool rule_is(const struct json *self, const char *path, const char *word)
{
    return strcmp(json_string_at(self, path, ""), word) == 0;
}

/* `words` ends with NULL. */
static inline bool rule_is_one_of(const struct json *self, const char *path, const char *const *words)
{
    for (; *words; words++)
        if (rule_is(self, path, *words))
            return true;
    return false;
}

static inline const struct json *rule_element_named(const struct json *list, const char *name)
{
    for (const struct json *item = json_first(list); item; item = json_next(item))
        if (rule_is(item, "name", name))
            return item;
    return NULL;
}

static inline bool rule_has_role(const struct json *spec, const char *name)
{
    return rule_element_named(json_member(spec, "roles"), name) != NULL;
}

#endif
