/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/template_fields.h"

#include <string.h>

#include "common/memory.h"

static char *unknown(const struct json *object, const char *const *known, const char *where)
{
    for (const struct json *member = json_first(object); member; member = json_next(member)) {
        const char *const *name = known;
        while (*name && strcmp(*name, json_key(member)) != 0)
            name++;
        if (!*name)
            return memory_format("%s%s", where, json_key(member));
    }
    return NULL;
}

char *template_fields_unknown(const struct json *template)
{
    static const char *const members[] = {"apiVersion", "kind", "metadata", "spec", NULL};
    /* Fields of ObjectMeta: a template may have been copied from a pod. Values that follow from the job are replaced. */
    static const char *const metadata[] = {
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
        NULL,
    };
    char *field = unknown(template, members, "");
    return field ? field : unknown(json_member(template, "metadata"), metadata, "metadata.");
}
