/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks up the values of fields for the C functions of rules (rules.h), which check the constraints between several fields. A value that is
 * not at the path itself is looked up in the section `coxswain`, because the fields of this section are at the top level of a job document.
 */
#ifndef COXSWAIN_JOB_RULE_VALUES_H
#define COXSWAIN_JOB_RULE_VALUES_H

#include <stdbool.h>
#include <string.h>

#include "common/json.h"

/* Returns the value at the path or, if there is none, at the path in the section coxswain: so a rule's C function works on the spec of a
 * job and on a job document. */
static inline const struct json *rule_at(const struct json *self, const char *path)
{
    const struct json *value = json_at(self, path);
    return value ? value : json_at(json_member(self, "coxswain"), path);
}

static inline bool rule_has(const struct json *self, const char *path)
{
    return rule_at(self, path) != NULL;
}

static inline const char *rule_string(const struct json *self, const char *path)
{
    return json_string(rule_at(self, path), "");
}

static inline int64_t rule_integer(const struct json *self, const char *path, int64_t otherwise)
{
    return json_integer(rule_at(self, path), otherwise);
}

static inline bool rule_boolean(const struct json *self, const char *path)
{
    return json_boolean(rule_at(self, path), false);
}

static inline bool rule_is(const struct json *self, const char *path, const char *word)
{
    return strcmp(rule_string(self, path), word) == 0;
}

/* `words` ends with NULL. */
static inline bool rule_is_one_of(const struct json *self, const char *path, const char *const *words)
{
    for (; *words; words++)
        if (rule_is(self, path, *words))
            return true;
    return false;
}

/* Returns whether XLA computes the model, through a PJRT plugin (job_document_uses_plugin). */
static inline bool rule_uses_plugin(const struct json *self)
{
    return rule_has(self, "model.program") || rule_is(self, "devices.type", "TPU") || rule_has(self, "devices.plugin");
}

static inline const struct json *rule_element_named(const struct json *list, const char *name)
{
    for (const struct json *item = json_first(list); item; item = json_next(item))
        if (rule_is(item, "name", name))
            return item;
    return NULL;
}

#endif
