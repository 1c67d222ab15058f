/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/group_view.h"

#include <string.h>

#include "common/memory.h"
#include "common/utf8.h"
#include "operator/controller/observed/owner.h"

#define WORDS_MAX 1024

/* By which conditions a scheduler says that it has not placed the group. */
static const char *words_of(const struct json *group)
{
    static const char *const telling[][2] = {
        {"Unschedulable", "True"},              /* Volcano */
        {"PodGroupScheduled", "False"},         /* Kubernetes 1.36 */
        {"PodGroupInitiallyScheduled", "False"} /* Kubernetes from 1.37 on */
    };
    const struct json *conditions = json_at(group, "status.conditions");
    for (const struct json *item = json_first(conditions); item; item = json_next(item))
        for (size_t i = 0; i < sizeof telling / sizeof telling[0]; i++)
            if (strcmp(json_string_at(item, "type", ""), telling[i][0]) == 0 &&
                strcmp(json_string_at(item, "status", ""), telling[i][1]) == 0)
                return json_string_at(item, "message", "");
    return "";
}

struct group_view *group_view_new(const struct json *group)
{
    const char *texts[] = {
        json_string_at(group, "metadata.uid", ""), owner_of(group).uid, owner_label(group),
        json_string_at(group, "status.phase", ""), words_of(group),
    };
    size_t lengths[5], total = 0;
    for (size_t i = 0; i < 5; i++)
        total += (lengths[i] = utf8_fit(texts[i], WORDS_MAX)) + 1;
    struct group_view *view = memory_allocate(1, sizeof *view + total);
    char *text = (char *)(view + 1);
    const char **members[] = {&view->uid, &view->owner_uid, &view->job_uid, &view->phase, &view->words};
    for (size_t i = 0; i < 5; i++) {
        *members[i] = memcpy(text, texts[i], lengths[i]);
        text += lengths[i] + 1;
    }
    view->deleting = json_at(group, "metadata.deletionTimestamp") != NULL;
    return view;
}
