/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "operator/standalone/api_request.h"

/* Core v1 name, events.k8s.io/v1 name: one object, two vocabularies. */
static const char *const names[][2] = {
    {"involvedObject", "regarding"},
    {"message", "note"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
    {"reportingComponent", "reportingController"},
};
#define NAMES (sizeof names / sizeof names[0])

static bool is_view(const struct resource *resource)
{
    return strcmp(resource->group, "events.k8s.io") == 0;
}

static void rename_member(struct json *object, const char *from, const char *to)
{
    struct json *value = json_member(object, from);
    if (value)
        json_set(object, to, json_detach(object, value));
}

void event_view_show(const struct resource *resource, struct json *object)
{
    if (!is_view(resource) || strcmp(json_string_at(object, "kind", ""), "Event") != 0)
        return;
    for (size_t i = 0; i < NAMES; i++)
        rename_member(object, names[i][0], names[i][1]);
    json_set_string(object, "apiVersion", "events.k8s.io/v1");
}

void event_view_take(const struct resource *resource, struct json *object)
{
    if (!is_view(resource))
        return;
    for (size_t i = 0; i < NAMES; i++)
        rename_member(object, names[i][1], names[i][0]);
    if (json_member(object, "apiVersion"))
        json_set_string(object, "apiVersion", "v1");
}
